"""Arms around a stand-in for the host: what the journal hears of, and what it does not."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from openrecipes.errors import RunError
from openrecipes.launch.outcome import Outcome
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.arms import reference_plans, run_arm, trial_plan
from openrecipes.tune.journal import Journal
from openrecipes.tune.task import Task
from openrecipes.tune.workload import load_workload

WORKLOAD = Path(__file__).parents[2] / "examples" / "tiny-qwen3.5-moe.workload.yaml"


class Host:
    """Answers each job with one outcome, and writes the log the engine would write."""

    def __init__(self, outcome: Outcome, log: str = "") -> None:
        self.outcome, self.log = outcome, log

    def run(self, job: Path, *, on_step: Any) -> Outcome:
        (job.parent / "run.log").write_text(self.log)
        return self.outcome


def run(tmp_path: Path, host: Host) -> Journal:
    workload = load_workload(WORKLOAD)
    with Journal(tmp_path, {}) as journal:
        model: Any = None
        task = Task(path=WORKLOAD, workload=workload, model=model, rows={}, out=tmp_path, journal=journal)
        stand_in: Any = host
        run_arm(trial_plan(Layout(pp=2), 4, 100.0), task, host=stand_in, on_step=lambda step: None)
    with Journal(tmp_path, {}) as journal:
        return journal


def test_a_failed_arm_is_kept_with_its_cause(tmp_path):
    journal = run(tmp_path, Host(Outcome(ok=False, cause="ValueError: no", rank=3)))
    record = journal.arms["pp2-dp2"]
    assert not record.ok
    assert record.cause == "rank 3: ValueError: no"
    assert (tmp_path / "pp2-dp2" / "run.log").exists()


def test_a_run_without_step_records_did_not_run_well(tmp_path):
    journal = run(tmp_path, Host(Outcome(ok=True), log='step {"step": 0, "loss": \n'))
    assert "run.log: line 1" in str(journal.arms["pp2-dp2"].cause)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_says_nothing_about_a_layout(tmp_path, number):
    error = f"OSError: [Errno {number}] {os.strerror(number)}"
    with pytest.raises(RunError, match="make room, and the same command goes on from here"):
        run(tmp_path, Host(Outcome(ok=False, cause=error)))
    with Journal(tmp_path, {}) as journal:
        assert journal.arms == {}
    assert not list(tmp_path.glob("*.partial"))


def test_every_second_reference_run_reverses_the_rows():
    workload = load_workload(WORKLOAD)
    assert [plan.row_order for plan in reference_plans(workload)] == ["natural", "reversed"]
