"""What can go wrong, and how it is reported.

The exception tree, each leaf with the exit code of the command that meets it:

    OpenRecipesError
    |-- ContentError       1    a file was read and its content is wrong; carries findings
    |-- UsageError         2    a path is missing, an option is wrong
    |-- MissingToolError   3    a tool, package or environment is not there
    `-- RunError           4    a run was started and failed

A `Finding` is one thing that is wrong in one place. Findings are values: they are collected, so that
a person sees all of them at once, and become an exception only where nothing more can be done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import Enum
from pathlib import Path


class Severity(str, Enum):
    """How much a finding matters.

    An *error* is decided by the text alone: the trainer refuses, hangs or does other than what is
    written. A *warning* depends on a version, an environment or a path that the text does not
    settle. A *note* is information.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, where, and how to mend it.

    `line` and `column` count from 1 and are None where the place has none (a missing file).
    `field` is a dotted path such as `layout.tp` or `result.window[1]`.
    """

    id: str
    severity: Severity
    message: str
    remedy: str
    path: Path | None = None
    line: int | None = None
    column: int | None = None
    field: str | None = None
    url: str | None = None

    @property
    def where(self) -> str:
        """`file:line:column: field`, as much of it as is known."""
        parts = [str(self.path)] if self.path else []
        parts += [str(n) for n in (self.line, self.column) if n is not None]
        place = ":".join(parts)
        return ": ".join(p for p in (place, self.field) if p)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.severity.value} {self.id}: {self.message}\n    {self.remedy}"

    def to_json(self) -> dict[str, object]:
        """The finding as the JSON object that `--json` prints."""
        found = dataclasses.asdict(self)
        found["severity"] = self.severity.value
        found["path"] = None if self.path is None else str(self.path)
        order = ["id", "severity", "path", "line", "column", "field", "message", "remedy", "url"]
        return {key: found[key] for key in order}


def printable(text: str) -> str:
    """The text without control characters, so that a file cannot steer the terminal."""
    return "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)


class OpenRecipesError(Exception):
    """Base of all errors that are reported without a traceback."""

    exit_code = 1


class ContentError(OpenRecipesError):
    """A file was read and its content is wrong; `findings` says everything that is."""

    exit_code = 1

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))

    def __reduce__(self) -> tuple[type[ContentError], tuple[tuple[Finding, ...]]]:
        """Pickle by the findings, not by the message, so that an error of a worker process arrives whole."""
        return type(self), (self.findings,)


class UsageError(OpenRecipesError):
    """A path is missing or an option is wrong; the message says which and what was expected."""

    exit_code = 2


class MissingToolError(OpenRecipesError):
    """A tool, package or environment is not there; the message says how to install it."""

    exit_code = 3


class RunError(OpenRecipesError):
    """A run was started and failed; the message names the cause."""

    exit_code = 4
