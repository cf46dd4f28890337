"""What a tune tells whoever watches; the library itself never prints."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Receives the progress of a tune."""

    def phase(self, text: str) -> None:
        """A stage began, such as building the rows."""

    def arms(self, total: int, finished: int) -> None:
        """There are `total` arms in this tune, `finished` of them from an earlier start."""

    def arm_started(self, label: str, steps: int) -> None:
        """An arm began; it will run `steps` steps."""

    def step(self, done: int) -> None:
        """The running arm has finished `done` steps."""

    def arm_finished(self, label: str, summary: str, *, ok: bool) -> None:
        """An arm ended; `summary` is one line."""
