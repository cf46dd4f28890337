from pathlib import Path

import pytest

from openrecipes.check.registry import CHECKS
from openrecipes.check.run import check_entry
from openrecipes.errors import ContentError, Finding, MissingToolError, Severity, UsageError
from openrecipes.recipe.checkable import Case, Check, Level, Outcome, Status, passed

ERROR = Finding(id="X102", severity=Severity.ERROR, message="damaged", remedy="mend it")


def checks(*runs: object) -> dict[str, Check]:
    return {
        f"X10{i}": Check(id=f"X10{i}", title="", level=Level.CONSISTENT, explanation="", run=run)  # type: ignore[arg-type]
        for i, run in enumerate(runs)
    }


def raising(error: Exception) -> object:
    def run(case: Case) -> Outcome:
        raise error

    return run


def test_the_seed_has_exactly_one_error_and_stands_at_draft(seed: Path) -> None:
    report = check_entry(seed)
    assert [f.id for f in report.findings if f.severity is Severity.ERROR] == ["C102"]
    assert (report.level, report.claimed) == (Level.DRAFT, Level.VERIFIED)
    arithmetic = [outcome.status for id, outcome in report.outcomes.items() if id.startswith("A")]
    assert set(arithmetic) == {Status.PASS}
    assert set(report.outcomes) == set(CHECKS)
    (claim,) = [finding for finding in report.findings if finding.id == "V000"]
    assert claim.severity is Severity.WARNING
    assert claim.message == "status claims `verified`, the entry stands at level `draft`"


def test_a_claim_that_is_no_higher_than_the_level_is_no_finding(seed: Path) -> None:
    seed.write_text(seed.read_text(encoding="utf-8").replace("status: verified", "status: draft"), encoding="utf-8")
    assert not [finding for finding in check_entry(seed).findings if finding.id == "V000"]


def test_a_malformed_file_has_findings_and_no_level(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("model: [", encoding="utf-8")
    report = check_entry(path)
    assert report.recipe is None
    assert report.level is None
    assert [finding.id[0] for finding in report.findings] == ["D"]


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        check_entry(tmp_path / "none.yaml")


def test_the_price_reaches_the_checks(seed: Path) -> None:
    seen = []

    def run(case: Case) -> Outcome:
        seen.append(case.usd_per_gpu_hour)
        return passed("")

    check_entry(seed, usd_per_gpu_hour=2.5, checks=checks(run))
    assert seen == [2.5]


def test_a_check_that_meets_damage_answers_with_it(seed: Path) -> None:
    report = check_entry(
        seed,
        checks=checks(
            lambda case: passed("fine"),
            raising(ContentError([ERROR])),
            raising(ContentError([ERROR])),
            raising(MissingToolError("no such tool")),
        ),
    )
    assert [outcome.status.value for outcome in report.outcomes.values()] == ["pass", "fail", "fail", "not checked"]
    assert report.findings.count(ERROR) == 1
    assert ("X103", Severity.WARNING, "no such tool") in [(f.id, f.severity, f.message) for f in report.findings]
    assert report.level is Level.DRAFT


def test_evidence_that_cannot_be_read_is_found_and_leaves_the_level_unsupported(seed: Path) -> None:
    reference = f"evidence:\n  manifest: gone/evidence.json\n  sha256: {'0' * 64}\n"
    text = seed.read_text(encoding="utf-8").replace("python3 -m --async", "python3 train_async.py")
    seed.write_text(f"{text.rstrip()}\n{reference}", encoding="utf-8")
    report = check_entry(seed)
    assert [f.id for f in report.findings if f.severity is Severity.ERROR] == ["D201"]
    assert report.level is Level.CONSISTENT
