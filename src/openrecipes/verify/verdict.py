"""Gates and the verdict they make together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import Enum


class Result(str, Enum):
    """The answer of a gate or a verdict. Only PASS is a pass: a noisy or absent reference is INCONCLUSIVE."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gate:
    """One question a run has to answer.

    `measured` and `bound` are relative differences, None for a gate that counts or compares text. `at`
    says where the largest difference was (`step 7`, a parameter's name).
    """

    id: str
    result: Result
    detail: str
    bound: float | None = None
    measured: float | None = None
    at: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is PASS."""
        return self.result is Result.PASS

    @property
    def share(self) -> float | None:
        """How much of the bound was used: measured / bound."""
        return None if self.bound is None or self.measured is None else self.measured / self.bound


def overall(results: Sequence[Result]) -> Result:
    """FAIL if anything failed, else PASS only if something was judged and all of it passed."""
    if Result.FAIL in results:
        return Result.FAIL
    return Result.PASS if results and set(results) == {Result.PASS} else Result.INCONCLUSIVE
