"""What the builder needs of a source, and the record that could not be read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

# A conversation of 8 MiB has about two million tokens. What is longer is no conversation, and a bound here
# bounds the memory of everything behind it.
MAX_RECORD_BYTES = 8 * 2**20


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """A record that is there but is no JSON object in UTF-8 of bounded length; it is counted, never dropped."""

    kind: str
    detail: str


Record = Mapping[str, Any] | Unreadable


class Source(Protocol):
    """Records by place, 0 .. len - 1; memory does not grow with their number."""

    def __len__(self) -> int:
        """How many records there are, unreadable ones included."""
        ...

    def read(self, places: Sequence[int]) -> list[Record]:
        """The records at these places, in the order asked for."""
        ...

    def where(self, place: int) -> str:
        """Where a person finds the record, such as `chat.jsonl:17`."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the records are: revision, and size and SHA-256 of every file."""
        ...

    def require_untouched(self) -> None:
        """Raise a UsageError where what was read so far may be of other bytes than those described."""
        ...
