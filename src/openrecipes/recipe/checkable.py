"""What a check is, what it gets to see, and what it answers.

Each stage exports its own checks as `CHECKS` in `<stage>/checks.py`; the `check` package collects,
runs and prints them. A check is a plain function with an id:

    @check("A101", title="DP follows from the GPU count and the layout", level=Level.CONSISTENT)
    def dp(case: Case) -> Outcome:
        '''Why this matters, in a sentence or two: `openrecipes explain A101` prints it.'''

Ids: D document, A arithmetic, C command, P patches and other named files, L layout rules,
M measured numbers, V verification, R reproduction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from openrecipes.errors import Finding, Severity

if TYPE_CHECKING:
    from openrecipes.recipe.evidence import Evidence
    from openrecipes.recipe.fields import Recipe


class Level(IntEnum):
    """What an entry's evidence supports; each level includes the ones before it."""

    DRAFT = 0
    CONSISTENT = 1
    MEASURED = 2
    VERIFIED = 3
    REPRODUCED = 4

    def __str__(self) -> str:
        return self.name.lower()


class Status(str, Enum):
    """The answer of one check. Only PASS and NOT_APPLICABLE let an entry reach the check's level."""

    PASS = "pass"
    FAIL = "fail"
    NOT_CHECKED = "not checked"
    NOT_APPLICABLE = "not applicable"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Where a field stands in its file; line and column count from 1."""

    line: int | None = None
    column: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """Everything a check may look at: one parsed entry, its places and its evidence.

    `path` is the recipe file; `places` maps dotted field paths to where they stand in it.
    `usd_per_gpu_hour` is the price the user gave, which overrides every recorded one.
    `evidence` is None where the entry names none, or where it could not be read (a finding then
    says so).
    """

    path: Path
    recipe: Recipe
    places: Mapping[str, Place]
    evidence: Evidence | None = None
    usd_per_gpu_hour: float | None = None

    def finding(
        self,
        id: str,
        field: str | None,
        message: str,
        remedy: str,
        *,
        severity: Severity = Severity.ERROR,
        url: str | None = None,
    ) -> Finding:
        """A finding at `field`, or at its nearest parent that stands in the file."""
        name = field or ""
        while name and name not in self.places:
            name = name.rpartition("[")[0] if name.endswith("]") else name.rpartition(".")[0]
        place = self.places.get(name, Place())
        return Finding(
            id=id,
            severity=severity,
            message=message,
            remedy=remedy,
            path=self.path,
            line=place.line,
            column=place.column,
            field=field,
            url=url,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """A check's answer. `detail` is the formula with its numbers, or the reason nothing was checked."""

    status: Status
    detail: str = ""
    findings: tuple[Finding, ...] = ()


def passed(detail: str, *notes: Finding) -> Outcome:
    """The check looked and found nothing wrong (`notes` may carry notes and warnings)."""
    return Outcome(status=Status.PASS, detail=detail, findings=notes)


def failed(detail: str, *findings: Finding) -> Outcome:
    """The check looked and found at least one error."""
    return Outcome(status=Status.FAIL, detail=detail, findings=findings)


def not_checked(reason: str, *findings: Finding) -> Outcome:
    """The check could not look: neither pass nor fail, and the level is capped."""
    return Outcome(status=Status.NOT_CHECKED, detail=reason, findings=findings)


def not_applicable(reason: str) -> Outcome:
    """There is nothing to look at, as with the MFU of an entry that gives none and says why."""
    return Outcome(status=Status.NOT_APPLICABLE, detail=reason)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """A check with its id, its one-line title, the level it guards and the reason it exists."""

    id: str
    title: str
    level: Level
    explanation: str
    run: Callable[[Case], Outcome]
    url: str | None = None


def check(id: str, *, title: str, level: Level, url: str | None = None) -> Callable[[Callable[[Case], Outcome]], Check]:
    """Turn a function into a `Check`; the function's docstring is the explanation."""

    def wrap(run: Callable[[Case], Outcome]) -> Check:
        if not run.__doc__:
            raise TypeError(f"check {id} has no docstring")
        return Check(id=id, title=title, level=level, explanation=run.__doc__.strip(), run=run, url=url)

    return wrap
