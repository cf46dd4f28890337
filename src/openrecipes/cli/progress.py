"""A progress display on stderr for whoever watches a tune."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class ProgressDisplay:
    """Two bars, the arms of the tune and the steps of the running arm, under a line for each finished arm."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # a log gets the lines, not the bars
        )
        self._arms = self._progress.add_task("arms", total=None, visible=False)
        self._steps = self._progress.add_task("steps", total=None, visible=False)

    def __enter__(self) -> ProgressDisplay:
        """Start drawing."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bars off the terminal."""
        self._progress.stop()

    def phase(self, text: str) -> None:
        """Print the stage that began."""
        self._progress.console.print(f"[dim]{escape(text)}[/dim]")

    def arms(self, total: int, finished: int) -> None:
        """Show the bar over all arms."""
        self._progress.update(self._arms, total=total, completed=finished, visible=True)
        if finished:
            self.phase(f"{finished} of {total} arms are in the journal and are not repeated")

    def arm_started(self, label: str, steps: int) -> None:
        """Show the bar over the steps of one arm."""
        self._progress.reset(self._steps, total=steps, visible=True, description=escape(label))

    def step(self, done: int) -> None:
        """Move the bar of the running arm."""
        self._progress.update(self._steps, completed=done)

    def arm_finished(self, label: str, summary: str, *, ok: bool) -> None:
        """Print the arm's line and move the bar over all arms."""
        mark = "[green]✓[/green]" if ok else "[red]✗[/red]"
        self._progress.update(self._steps, visible=False)
        self._progress.console.print(f"{mark} {escape(label)}: {escape(summary)}", highlight=False)
        self._progress.advance(self._arms)
