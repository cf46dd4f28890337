"""The entry of a winner says what was built, run and judged, and stands at its level."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.tune.conftest import ROOT, Ran

from openrecipes.check.run import check_entry
from openrecipes.recipe.checkable import Level, Status
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import load_recipe, parse_recipe
from openrecipes.recipe.writer import dump_recipe
from openrecipes.tune.entry import publish_winner
from openrecipes.tune.judge import Judge
from openrecipes.tune.trial import Trial
from openrecipes.verify.verdict import Result


@pytest.fixture
def best(ran: Ran) -> Trial:
    return Judge(ran.task)(ran.plan, ran.record)


@pytest.fixture
def entry(ran: Ran, best: Trial) -> Path:
    return publish_winner(ran.task, best)


@pytest.fixture
def recipe(entry: Path) -> Recipe:
    return load_recipe(entry).recipe


def manifest(entry: Path) -> list[dict[str, Any]]:
    return json.loads((entry.with_suffix(".evidence") / "evidence.json").read_text())["files"]


def files_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_entry_is_found_verified(entry, ran):
    assert entry == ran.task.out / "entry" / f"tiny-qwen3.5-moe-1rank-{ran.plan.arm}.yaml"
    report = check_entry(entry)
    assert (report.level, report.claimed) == (Level.VERIFIED, Level.VERIFIED)
    assert [finding for finding in report.findings if finding.severity == "error"] == []


def test_the_entry_is_the_same_after_another_reading_and_writing(recipe):
    assert parse_recipe(dump_recipe(recipe), Path("again.yaml")).recipe == recipe


def test_the_entry_states_what_was_measured_and_when(recipe, best):
    assert recipe.result.tokens_per_s_per_gpu == pytest.approx(best.tokens_per_s, abs=0.005)
    assert recipe.result.step_time_cv_percent == pytest.approx(best.figures.step_time_cv_percent, abs=0.005)
    assert recipe.result.window == (5, 19)
    assert recipe.result.window_tokens == 15 * 4 * 32
    assert recipe.result.gpu_hours == 0.01  # one process, 36 s
    assert recipe.result.measured == recipe.correctness.component_tests[0].date == "2026-11-30"
    assert recipe.correctness.convergence
    assert recipe.correctness.convergence.correlation == best.convergence.correlation


def test_what_is_unknown_is_null_with_its_reason(recipe):
    assert (recipe.result.usd_per_million_tokens, recipe.result.mfu) == (None, None)
    assert recipe.result.usd_note == "CPU processes have no price per GPU-hour"
    assert recipe.result.mfu_note == "no dense peak FLOP/s is recorded for CPU processes"


def test_the_entry_states_what_ran(recipe, ran):
    assert (recipe.gpu.type, recipe.gpu.count, recipe.gpu.per_node) == ("cpu", 1, 1)
    assert (recipe.layout.rows_per_microbatch, recipe.layout.dp, recipe.layout.recompute.granularity) == (2, 1, "full")
    assert recipe.run == f"openrecipes rehearse toy.workload.yaml --layout {ran.plan.layout} --ranks 1 --steps 20\n"
    assert recipe.stack.megatron_lm == "megatron-core 0.16.1"
    assert (recipe.dataset.license, recipe.dataset.rows_sha256) == ("MIT", ran.task.rows["rows_sha256"])
    assert recipe.author.name == "OpenRecipes quickstart"


def test_every_file_that_supports_the_entry_is_in_the_evidence_as_it_was(entry, ran):
    listed = manifest(entry)
    kinds = [(file["kind"], file.get("arm"), file.get("run")) for file in listed]
    of_a_run = {"log", "steps", "resolved_arguments", "gradients", "environment"}
    runs = [("candidate", 0), ("reference", 0), ("reference", 1)]
    assert sorted(kinds, key=str) == sorted(
        [(kind, arm, run) for arm, run in runs for kind in of_a_run]
        + [(kind, None, None) for kind in ("data_manifest", "model_config", "component_results", "journal")],
        key=str,
    )
    of_the_tune = files_below(ran.task.out.parent).items()
    left = {hashlib.sha256(text).hexdigest() for path, text in of_the_tune if not path.is_relative_to(entry.parent)}
    for file in listed:
        published = (entry.with_suffix(".evidence") / file["path"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(published).hexdigest()
        assert file["sha256"] in left
        assert file["created"] == "2026-11-30T00:53:20Z"


def test_the_entry_and_its_evidence_name_no_path_of_this_machine(entry, ran):
    published = files_below(entry.parent)
    assert len(published) == 21
    for path, content in published.items():
        for folder in (ran.task.out.parent, ROOT, Path.home()):
            assert f"{folder}/".encode() not in content, path


def test_publishing_again_changes_no_byte(entry, ran, best):
    before = files_below(entry.parent)
    assert publish_winner(ran.task, best) == entry
    assert files_below(entry.parent) == before


@pytest.mark.parametrize(
    ("change", "result"),
    [
        (lambda test: test.update(error=1.0), "fail"),
        (lambda test: [control.update(error=0.0) for control in test["controls"]], "fail"),
        (lambda test: test.update(controls=[]), "inconclusive"),
    ],
    ids=["wrong", "its controls pass too", "no control"],
)
def test_a_component_test_that_does_not_pass_is_stated_and_claims_less(ran, best, change, result):
    content = json.loads(ran.task.components.read_text())
    change(content["tests"][0])
    ran.task.components.write_text(json.dumps(content))
    entry = publish_winner(ran.task, best)
    stated = load_recipe(entry).recipe
    assert (stated.status, stated.correctness.result) == ("measured", result)
    assert stated.correctness.component_tests[0].result == result
    assert stated.correctness.summary.startswith(f"component tests: {result}; ")
    report = check_entry(entry)
    assert report.level is Level.MEASURED
    assert report.outcomes["V104"].status is Status.PASS


def test_only_a_trial_that_passed_is_published(ran, best):
    lost = dataclasses.replace(best, figures=None, convergence=None)
    wrong = dataclasses.replace(best, configuration_cause="lr: 0.002 against 0.001")
    unsure = dataclasses.replace(best, convergence=dataclasses.replace(best.convergence, result=Result.INCONCLUSIVE))
    for trial, verdict in ((lost, "no run"), (wrong, "fail"), (unsure, "inconclusive")):
        with pytest.raises(ValueError, match=f": {verdict}; only a trial that passed is published"):
            publish_winner(ran.task, trial)
    assert not (ran.task.out / "entry").exists()
