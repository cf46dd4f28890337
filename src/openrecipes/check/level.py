"""The level of an entry: what its evidence supports, whatever its author claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from openrecipes.errors import Finding, Severity
from openrecipes.recipe.checkable import Case, Check, Level, Outcome, Status


def level_of(checks: Iterable[Check], outcomes: Mapping[str, Outcome]) -> Level:
    """The highest level that every check at it and below lets the entry reach.

    A check lets it pass with `pass` or `not applicable`. A level at which no check passed rests on nothing
    and is not reached.
    """
    reached = Level.DRAFT
    by_level: dict[Level, list[Status]] = {}
    for check in checks:
        by_level.setdefault(check.level, []).append(outcomes[check.id].status)
    for level in sorted(Level):
        answers = by_level.get(level, [])
        if any(answer not in (Status.PASS, Status.NOT_APPLICABLE) for answer in answers):
            break
        if Status.PASS in answers:
            reached = level
        elif level is not Level.DRAFT:
            break
    return reached


def claim_finding(case: Case, level: Level) -> Finding | None:
    """V000: the entry claims more than its evidence supports; None where it does not."""
    claimed = Level[case.recipe.status.upper()]
    if claimed <= level:
        return None
    return case.finding(
        "V000",
        "status",
        f"status claims `{claimed}`, the entry stands at level `{level}`",
        f"attach the evidence that `{claimed}` needs, or write `status: {level}`",
        severity=Severity.WARNING,
    )
