"""Entries made from real runs reach exactly their level, and nothing in them can be altered unnoticed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from openrecipes.check.run import EntryReport, check_entry
from openrecipes.recipe.checkable import Level, Status
from openrecipes.recipe.writer import edit_recipe

FIXTURES = Path(__file__).parents[1] / "fixtures/levels"
FILES = sorted(
    path.relative_to(FIXTURES / "reproduced/evidence").as_posix()
    for path in (FIXTURES / "reproduced/evidence").rglob("*")
    if path.is_file() and path.name != "evidence.json"
)


@pytest.fixture
def entry(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a level's entry that a test may alter."""

    def copy(level: str) -> Path:
        shutil.copytree(FIXTURES / level, tmp_path / level)
        return tmp_path / level / "recipe.yaml"

    return copy


def record_anew(recipe: Path, changes: Mapping[str, Callable[[bytes], bytes | None]]) -> None:
    """Alter files of the evidence as a forger would: with the hashes in manifest and entry made to fit.

    A change that gives None takes the file out of the manifest.
    """
    manifest_path = recipe.parent / "evidence/evidence.json"
    manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
    for file in list(manifest["files"]):
        change = changes.get(file["path"])
        if change is None:
            continue
        path = manifest_path.parent / file["path"]
        content = change(path.read_bytes())
        if content is None:
            manifest["files"].remove(file)
        else:
            path.write_bytes(content)
            file["sha256"] = hashlib.sha256(content).hexdigest()
    text = json.dumps(manifest)
    manifest_path.write_text(text, encoding="utf-8")
    edit_recipe(recipe, {"evidence.sha256": hashlib.sha256(text.encode()).hexdigest()})


def failing(report: EntryReport) -> set[str]:
    return {id for id, outcome in report.outcomes.items() if outcome.status is Status.FAIL}


def not_checked(report: EntryReport) -> set[str]:
    return {id for id, outcome in report.outcomes.items() if outcome.status is Status.NOT_CHECKED}


@pytest.mark.parametrize("level", Level)
def test_each_fixture_stands_at_exactly_its_level(level: Level) -> None:
    report = check_entry(FIXTURES / str(level) / "recipe.yaml")
    assert report.level is level
    assert report.claimed is level
    if level is not Level.DRAFT:
        assert failing(report) == set()


@pytest.mark.parametrize("path", FILES)
def test_one_altered_byte_of_any_file_is_named(entry: Callable[[str], Path], path: str) -> None:
    recipe = entry("reproduced")
    file = recipe.parent / "evidence" / path
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    report = check_entry(recipe)
    assert report.level is not None
    assert report.level < Level.MEASURED
    assert "M105" in failing(report)
    assert any(file.name in str(finding.path) and "altered" in finding.message for finding in report.findings)


def test_an_altered_manifest_and_a_missing_file_are_named(entry: Callable[[str], Path]) -> None:
    recipe = entry("reproduced")
    (recipe.parent / "evidence/candidate/run.log").unlink()
    report = check_entry(recipe)
    assert report.level is Level.CONSISTENT
    assert any("run.log" in str(finding.path) for finding in report.findings)
    manifest = recipe.parent / "evidence/evidence.json"
    manifest.write_text(manifest.read_text(encoding="utf-8") + " ", encoding="utf-8")
    report = check_entry(recipe)
    assert report.level is not None
    assert report.level < Level.MEASURED
    assert any("evidence.json" in str(finding.path) for finding in report.findings)


@pytest.mark.parametrize(
    ("field", "value", "check"),
    [
        ("result.tokens_per_s_per_gpu", 1e6, "M102"),
        ("result.step_time_cv_percent", 0.01, "M102"),
        ("result.window[0]", 6, "M102"),
        ("dataset.rows_sha256", "0" * 64, "M103"),
        ("layout.rows_per_microbatch", 1, "M104"),
        ("layout.recompute.num_layers", 2, "M104"),
        ("correctness.configuration", "fail", "V104"),
        ("correctness.convergence.correlation", 0.5, "V104"),
        ("correctness.convergence.final_loss_difference", 0.25, "V104"),
        ("correctness.convergence.pointwise_failures", 1, "V104"),
        ("correctness.component_tests[0].test", "another test", "V104"),
    ],
)
def test_a_stated_value_that_the_evidence_does_not_give_is_caught(
    entry: Callable[[str], Path], field: str, value: Any, check: str
) -> None:
    recipe = entry("verified")
    edit_recipe(recipe, {field: value})
    report = check_entry(recipe)
    assert check in failing(report)
    assert any(finding.id == check and finding.line for finding in report.findings)
    assert report.level is not None
    assert report.level < Level.VERIFIED


def replaced(before: str, after: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        assert before.encode() in content
        return content.replace(before.encode(), after.encode())

    return change


def on_each_step(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    """Change every step record of a log or a steps file."""

    def whole(content: bytes) -> bytes:
        lines = []
        for line in content.decode().splitlines():
            head, brace, rest = line.partition("{")
            if line.startswith(("step {", "{")):
                record = json.loads(brace + rest)
                change(record)
                line = head + json.dumps(record)
            lines.append(line + "\n")
        return "".join(lines).encode()

    return whole


def faster(record: dict[str, Any]) -> None:
    record["step_time_s"] /= 2


def drifting(record: dict[str, Any]) -> None:
    record["loss"] *= 1 + 1e-3 * record["step"]


FORGERIES: dict[str, tuple[dict[str, Callable[[bytes], bytes | None]], str]] = {
    "step times halved in the steps file": ({"candidate/steps.jsonl": on_each_step(faster)}, "M101"),
    "step times halved in both": (
        {"candidate/steps.jsonl": on_each_step(faster), "candidate/run.log": on_each_step(faster)},
        "M102",
    ),
    "another layout's arguments": (
        {"candidate/resolved.json": replaced('"micro_batch_size": 2', '"micro_batch_size": 1')},
        "M104",
    ),
    "another learning rate in the reference": (
        {"reference-0/resolved.json": replaced('"lr": 0.001', '"lr": 0.0011')},
        "V101",
    ),
    "references that are not repeats": (
        {"reference-1/resolved.json": replaced('"world_size": 1', '"world_size": 2')},
        "V101",
    ),
    "a component error outside its bound": (
        {
            "component_results.json": lambda content: json.dumps(
                {
                    **json.loads(content),
                    "tests": [test | {"error": 1.0} for test in json.loads(content)["tests"]],
                }
            ).encode()
        },
        "V102",
    ),
    "a candidate that drifts": (
        {"candidate/steps.jsonl": on_each_step(drifting), "candidate/run.log": on_each_step(drifting)},
        "V103",
    ),
    "a reference whose log says otherwise": ({"reference-1/run.log": on_each_step(drifting)}, "V103"),
    "a wrong gradient": (
        {
            "candidate/gradients.json": lambda content: json.dumps(
                {name: 1.01 * norm for name, norm in json.loads(content).items()}
            ).encode()
        },
        "V103",
    ),
    "a repeat that is twice as fast": (
        {"repeat/run.log": on_each_step(faster), "repeat/steps.jsonl": on_each_step(faster)},
        "R101",
    ),
    "a repeat that drifts": (
        {"repeat/run.log": on_each_step(drifting), "repeat/steps.jsonl": on_each_step(drifting)},
        "R101",
    ),
    "a repeat with other arguments": ({"repeat/resolved.json": replaced('"lr": 0.001', '"lr": 0.0011')}, "R101"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_with_fitting_hashes_is_caught(entry: Callable[[str], Path], name: str) -> None:
    changes, check = FORGERIES[name]
    recipe = entry("reproduced")
    record_anew(recipe, changes)
    report = check_entry(recipe)
    assert check in failing(report)
    assert any(finding.id == check or finding.id.startswith("V0") for finding in report.findings)


@pytest.mark.parametrize(
    ("paths", "checks", "level"),
    [
        (["candidate/run.log"], {"M101", "M102"}, Level.CONSISTENT),
        (["rows.json"], {"M103"}, Level.CONSISTENT),
        (["candidate/resolved.json"], {"M104", "V101"}, Level.CONSISTENT),
        (["component_results.json"], {"V102", "V104"}, Level.MEASURED),
        (["reference-0/steps.jsonl", "reference-1/steps.jsonl"], {"V103", "V104"}, Level.MEASURED),
        (["reference-1/steps.jsonl"], {"V103"}, Level.MEASURED),  # one reference measures no noise
        (["reference-1/gradients.json"], {"V103"}, Level.MEASURED),
        (["candidate/gradients.json"], {"V103"}, Level.MEASURED),
        (["repeat/run.log"], {"R101"}, Level.VERIFIED),
        (["repeat/resolved.json"], {"R101"}, Level.VERIFIED),
    ],
)
def test_a_file_left_out_caps_the_level_without_an_error(
    entry: Callable[[str], Path], paths: list[str], checks: set[str], level: Level
) -> None:
    recipe = entry("reproduced")
    record_anew(recipe, dict.fromkeys(paths, lambda content: None))
    report = check_entry(recipe)
    assert report.level is level
    assert checks <= not_checked(report)


def test_a_copy_of_the_candidate_is_no_repeat_and_a_copied_reference_no_second_one(
    entry: Callable[[str], Path],
) -> None:
    recipe = entry("reproduced")
    evidence = recipe.parent / "evidence"

    def copied(path: str) -> Callable[[bytes], bytes]:
        return lambda content: (evidence / path).read_bytes()

    record_anew(
        recipe,
        {
            "repeat/run.log": copied("candidate/run.log"),
            "repeat/steps.jsonl": copied("candidate/steps.jsonl"),
            "reference-1/run.log": copied("reference-0/run.log"),
            "reference-1/steps.jsonl": copied("reference-0/steps.jsonl"),
        },
    )
    report = check_entry(recipe)
    assert "R101" in failing(report)
    assert "copy" in report.outcomes["R101"].detail
    assert report.outcomes["V103"].status is Status.NOT_CHECKED
    assert "equal in every digit" in report.outcomes["V103"].detail


def test_two_files_of_one_run_are_refused(entry: Callable[[str], Path]) -> None:
    recipe = entry("verified")
    manifest_path = recipe.parent / "evidence/evidence.json"
    manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
    for file in manifest["files"]:
        if file["path"] == "reference-1/steps.jsonl":
            file["run"] = 0
    text = json.dumps(manifest)
    manifest_path.write_text(text, encoding="utf-8")
    edit_recipe(recipe, {"evidence.sha256": hashlib.sha256(text.encode()).hexdigest()})
    report = check_entry(recipe)
    assert any(finding.id == "M003" for finding in report.findings)
    assert report.level is Level.MEASURED
