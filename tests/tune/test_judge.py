"""Real runs judged as trials; each fault is put into the files of one that passes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tune.conftest import Ran

from openrecipes.recipe.parallel import Layout
from openrecipes.tune.arms import trial_plan
from openrecipes.tune.journal import ArmRecord
from openrecipes.tune.judge import Judge
from openrecipes.tune.task import STEPS
from openrecipes.tune.trial import Trial

WRONG_GROUP = Layout.parse("tp=2,etp=1")


def judged(ran: Ran) -> Trial:
    return Judge(ran.task)(ran.plan, ran.record)


def set_argument(folder: Path, name: str, value: object) -> None:
    path = folder / "resolved.json"
    content = json.loads(path.read_text())
    content["arguments"][name] = value
    path.write_text(json.dumps(content))


def change_steps(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    path = folder / STEPS
    records = [json.loads(line) for line in path.read_text().splitlines()]
    change(records)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_a_run_that_trains_as_the_references_do_passes_with_its_figures(ran):
    trial = judged(ran)
    assert trial.verdict == "pass"
    assert trial.cause.startswith("all 11 gates pass")
    assert trial.figures
    assert (trial.figures.first, trial.figures.last) == ran.task.workload.window
    window = [json.loads(line) for line in (ran.folder / STEPS).read_text().splitlines()][5:]
    assert trial.tokens_per_s == pytest.approx(15 * 4 * 32 / sum(record["step_time_s"] for record in window))
    assert trial.warnings == ()


def test_a_run_that_ended_badly_is_kept_with_its_cause_and_the_warnings(ran):
    plan = trial_plan(WRONG_GROUP, 2, 100.0)
    record = ArmRecord(
        arm=plan.arm,
        layout=str(plan.layout),
        ok=False,
        cause="rank 1: killed by signal 9",
        predicted_tokens_per_s=100.0,
        wall_s=1.0,
    )
    trial = Judge(ran.task)(plan, record)  # there is no folder of this arm, so nothing of it can be read
    assert (trial.verdict, trial.cause) == ("no run", "rank 1: killed by signal 9")
    assert (trial.figures, trial.convergence) == (None, None)
    assert [warning.id for warning in trial.warnings] == ["L201"]


def test_a_warning_alone_decides_nothing(ran):
    trial = Judge(ran.task)(dataclasses.replace(ran.plan, layout=WRONG_GROUP), ran.record)
    assert [warning.id for warning in trial.warnings] == ["L201"]
    assert trial.verdict == "pass"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("lr", 0.0011, "lr: 0.0011 against 0.001"),
        ("num_layers", 5, "num_layers: 5 against 4"),
        ("brand_new_option", True, "brand_new_option: true against not set (not in the numerics list)"),
    ],
)
def test_another_configuration_fails_although_it_trains_the_same(ran, name, value, told):
    set_argument(ran.folder, name, value)
    trial = judged(ran)
    assert (trial.verdict, trial.reason) == ("fail", "configuration")
    assert told in trial.cause
    assert trial.convergence
    assert trial.convergence.result.value == "pass"


@pytest.mark.parametrize(
    ("change", "gate", "has_speed"),
    [
        (lambda steps: steps[7].update(loss=float("nan")), "finite", False),
        (lambda steps: steps.pop(7), "steps", False),
        (lambda steps: steps.pop(), "steps", False),
        (lambda steps: steps[0].update(loss=steps[0]["loss"] * 1.001), "step0_loss", True),
        (lambda steps: steps[0].update(grad_norm=steps[0]["grad_norm"] * 1.0018), "step0_grad_norm", True),
        (lambda steps: steps[12].update(grad_norm=steps[12]["grad_norm"] * 1.002), "curve_grad_norm", True),
    ],
    ids=["NaN", "no step 7", "no last step", "loss", "grad norm", "curve"],
)
def test_a_run_that_trains_otherwise_fails_at_its_gate(ran, change, gate, has_speed):
    change_steps(ran.folder, change)
    trial = judged(ran)
    assert trial.verdict == "fail"
    assert trial.reason.split()[0] == gate
    assert trial.cause.startswith(gate)
    assert (trial.figures is not None) == has_speed


def test_other_rows_fail_before_any_number_is_compared(ran):
    set_argument(ran.folder, "rows_sha256", "0" * 64)
    trial = judged(ran)
    assert trial.verdict == "fail"
    assert "rows_sha256" in trial.cause
    assert trial.convergence
    assert [gate.id for gate in trial.convergence.gates if not gate.passed] == ["rows"]


def test_without_noise_between_the_references_nothing_passes(ran):
    first, second = (ran.task.out / f"reference-{run}" for run in range(2))
    (second / STEPS).write_bytes((first / STEPS).read_bytes())
    trial = judged(ran)
    assert (trial.verdict, trial.reason) == ("inconclusive", "references")
