"""What `openrecipes data` prints: progress on stderr, the result as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class RowsProgress:
    """A bar over the rows with tokens a second and the time left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("rows"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("rows", total=None, visible=False, speed="")

    def __enter__(self) -> RowsProgress:
        """Nothing is drawn before there is something to show."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar off the terminal."""
        if self._progress.live.is_started:
            self._progress.stop()

    def phase(self, text: str) -> None:
        """Print the stage that began."""
        self._progress.console.print(f"[dim]{escape(text)}[/dim]", highlight=False)

    def rows(self, done: int, total: int, row_tokens: int) -> None:
        """Move the bar."""
        self._progress.start()  # does nothing the second time
        task = self._progress.tasks[0]
        self._progress.update(self._task, completed=done, total=total, visible=True)
        speed = f"{task.speed * row_tokens:,.0f} tokens/s" if task.speed else ""
        self._progress.update(self._task, speed=speed)


def summary_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The result of a build."""
    conversations, rejections = manifest["conversations"], manifest["rejections"]
    share = manifest["supervised_token_ratio"]
    yield f"name         {manifest['name']}"
    yield f"rows         {manifest['rows']} of {manifest['row_tokens']} tokens, {manifest['tokens']:,} tokens"
    yield f"supervised   {manifest['supervised_tokens']:,} tokens ({share:.1%})"
    yield (
        f"conversations {conversations['used']} used of {conversations['read']} read, "
        f"{conversations['in_source']} in the source"
    )
    if rejections["count"]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in conversations["rejected"].items())
        yield f"rejected     {kinds}; listed in {rejections['file']}, such as {rejections['first'][0]}"
    yield f"engine       {_engine(manifest['encoder'])}"
    yield f"rows_sha256  {manifest['rows_sha256']}"


def preview_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The result of a dry run."""
    sample, estimate = found["sample"], found["estimate"]
    yield f"name         {found['name']}"
    for file in found["source"]["files"]:
        yield f"source       {file['name']}: {file['records']} conversations, sha256 {file['sha256']}"
    yield f"engine       {_engine(found['encoder'])}"
    yield (
        f"sample       {sample['conversations']} conversations, {sample['tokens']} tokens, "
        f"longest {sample['longest']}, supervised {sample['supervised_token_ratio']}"
    )
    if sample["rejected"]:
        yield f"rejected     {', '.join(f'{count} {kind}' for kind, count in sample['rejected'].items())}"
    if estimate:
        enough = "enough" if estimate["enough_in_source"] else "NOT enough in the source"
        yield f"estimate     {estimate['conversations']} conversations ({enough}) for {estimate['tokens']:,} tokens"
        yield f"             {estimate['cpu_seconds_for_ids_and_masks']} CPU seconds for ids and masks"
    yield "nothing was kept"


def _engine(encoder: Mapping[str, Any]) -> str:
    """The engine's name and version, and why it is not the fast one where that was asked for."""
    engine = encoder["engine"]
    fall_back = f" ({engine['fall_back']})" if engine.get("fall_back") else ""
    return f"{engine['name']} {engine.get('version', '')}{fall_back}".rstrip()
