"""What `openrecipes check` found, as text for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from openrecipes.check.run import EntryReport
from openrecipes.errors import Finding, Severity, printable
from openrecipes.recipe.checkable import Check, Outcome, Status

_SYMBOLS = {
    Status.PASS: ("✓", "green"),
    Status.FAIL: ("✗", "red"),
    Status.NOT_CHECKED: ("?", "yellow"),
}
_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def is_ok(reports: Sequence[EntryReport], *, strict: bool) -> bool:
    """Whether no entry has an error; with `strict`, no warning either."""
    bad = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    return not any(finding.severity in bad for report in reports for finding in report.findings)


def to_text(reports: Sequence[EntryReport], checks: Mapping[str, Check]) -> Iterator[Text]:
    """The report, one block an entry and a line that sums up, without line ends.

    A check that has nothing to look at is only named; its reason is in the JSON.
    """
    for report in reports:
        yield _heading(report)
        for id, outcome in report.outcomes.items():
            if outcome.status is not Status.NOT_APPLICABLE:
                yield _check_line(checks[id], outcome)
        idle = [id for id, outcome in report.outcomes.items() if outcome.status is Status.NOT_APPLICABLE]
        if idle:
            yield Text(f"  - not applicable: {', '.join(idle)}", style="dim")
        for finding in report.findings:
            yield _finding(finding)
        yield Text()
    yield _summary(reports)


def to_json(reports: Sequence[EntryReport], checks: Mapping[str, Check]) -> list[dict[str, object]]:
    """The entries for the object that `--json` prints."""
    return [
        {
            "path": str(report.path),
            "claimed": None if report.claimed is None else str(report.claimed),
            "level": None if report.level is None else str(report.level),
            "checks": [
                {"id": id, "title": checks[id].title, "status": outcome.status.value, "detail": outcome.detail}
                for id, outcome in report.outcomes.items()
            ],
            "findings": [finding.to_json() for finding in report.findings],
        }
        for report in reports
    ]


def _heading(report: EntryReport) -> Text:
    if report.level is None:
        return Text.assemble((printable(str(report.path)), "bold"), ": not a recipe")
    return Text.assemble(
        (printable(str(report.path)), "bold"), ": level ", (str(report.level), "bold"), f", claimed {report.claimed}"
    )


def _check_line(check: Check, outcome: Outcome) -> Text:
    symbol, colour = _SYMBOLS[outcome.status]
    line = Text.assemble((f"  {symbol} ", colour), (check.id, "bold"), f"  {check.title}")
    return line.append(f": {printable(outcome.detail)}", style="dim") if outcome.detail else line


def _finding(finding: Finding) -> Text:
    place = printable(f"{finding.where}: ") if finding.where else ""
    head = (f"{finding.severity.value} {finding.id}", _COLOURS[finding.severity])
    url = f"\n      {finding.url}" if finding.url else ""
    return Text.assemble("  ", place, head, f": {printable(finding.message)}\n      {printable(finding.remedy)}{url}")


def _summary(reports: Sequence[EntryReport]) -> Text:
    answers = Counter(outcome.status for report in reports for outcome in report.outcomes.values())
    severities = Counter(finding.severity for report in reports for finding in report.findings)
    entries = _counted(len(reports), "entry", "entries")
    found = ", ".join(_counted(severities[severity], severity.value) for severity in Severity)
    counted = ", ".join(f"{answers[status]} {status.value}" for status in Status)
    return Text(f"{entries}: {found}; checks: {counted}")


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"
