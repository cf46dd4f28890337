from pathlib import Path

from openrecipes.check.registry import CHECKS
from openrecipes.check.report import is_ok, to_json, to_text
from openrecipes.check.run import EntryReport
from openrecipes.errors import Finding, Severity
from openrecipes.recipe.checkable import Level, Outcome, Status


def report(*severities: Severity, message: str = "wrong") -> EntryReport:
    return EntryReport(
        path=Path("entry.yaml"),
        outcomes={
            "C101": Outcome(status=Status.PASS, detail="1 command"),
            "P101": Outcome(status=Status.NOT_APPLICABLE),
        },
        findings=tuple(Finding(id="C101", severity=each, message=message, remedy="mend it") for each in severities),
        level=Level.CONSISTENT,
        claimed=Level.VERIFIED,
    )


def lines(*reports: EntryReport) -> list[str]:
    return [line.plain for line in to_text(reports, CHECKS)]


def test_the_claim_stands_beside_the_level() -> None:
    assert lines(report())[0] == "entry.yaml: level consistent, claimed verified"


def test_each_check_is_one_line_and_those_without_object_share_one() -> None:
    assert lines(report())[1:3] == [
        "  ✓ C101  The command parses and starts one training run: 1 command",
        "  - not applicable: P101",
    ]


def test_the_last_line_counts() -> None:
    found = lines(report(Severity.ERROR, Severity.NOTE), report(Severity.ERROR))[-1]
    assert found.startswith("2 entries: 2 errors, 0 warnings, 1 note; checks: 2 pass, 0 fail")


def test_control_characters_of_a_recipe_do_not_reach_the_terminal() -> None:
    assert not any("\x1b" in line for line in lines(report(Severity.ERROR, message="\x1b[2J")))


def test_ok_is_no_error_and_under_strict_no_warning() -> None:
    assert is_ok([report(Severity.NOTE)], strict=True)
    assert is_ok([report(Severity.WARNING)], strict=False)
    assert not is_ok([report(Severity.WARNING)], strict=True)
    assert not is_ok([report(), report(Severity.ERROR)], strict=False)


def test_a_file_that_is_no_recipe_has_neither_level_nor_claim() -> None:
    broken = EntryReport(path=Path("entry.yaml"))
    assert lines(broken)[0] == "entry.yaml: not a recipe"
    (entry,) = to_json([broken], CHECKS)
    assert (entry["level"], entry["claimed"], entry["checks"]) == (None, None, [])
