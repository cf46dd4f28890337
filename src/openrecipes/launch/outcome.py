"""How a run ended, whatever ran it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of one run: `cause` says why a failed one failed, `rank` where, if one rank did."""

    ok: bool
    cause: str | None = None
    rank: int | None = None

    @property
    def described(self) -> str:
        """The cause of a failed run, with the rank it struck first where that is known."""
        cause = self.cause or "no cause was recorded"
        return cause if self.rank is None else f"rank {self.rank}: {cause}"
