"""The folder of a tune that has run, made from the files of real runs in the fixture of the level `verified`."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from openrecipes.model.config import read_config
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.arms import Plan, reference_plans, trial_plan
from openrecipes.tune.journal import ArmRecord, Journal
from openrecipes.tune.task import LOG, ROWS, Task
from openrecipes.tune.workload import load_workload

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/tiny-qwen3.5-moe.workload.yaml"
RUNS = ROOT / "tests/fixtures/levels/verified/evidence"
RAN_AT = 1_796_000_000  # 2026-11-30T00:53:20Z


@dataclasses.dataclass(frozen=True)
class Ran:
    """A tune of one trial: its task, the trial's plan, and the trial's record in the journal."""

    task: Task
    plan: Plan
    record: ArmRecord

    @property
    def folder(self) -> Path:
        """Where the trial's files are."""
        return self.task.out / self.plan.arm


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """One trial, two rows a micro-batch in one process, after two reference runs with one row a micro-batch."""
    fields = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    fields.update(ranks=1, recompute=True)
    fields["data"].update(row_tokens=32)
    path = tmp_path / "toy.workload.yaml"
    path.write_text(yaml.safe_dump(fields), encoding="utf-8")
    workload = load_workload(path)
    model = workload.model_path(path)
    model.parent.mkdir()
    shutil.copyfile(RUNS / "config.json", model)
    out = tmp_path / "out"
    (out / ROWS).mkdir(parents=True)
    shutil.copyfile(RUNS / "rows.json", out / ROWS / "manifest.json")
    shutil.copyfile(RUNS / "component_results.json", out / "component_results.json")
    trial = trial_plan(Layout.parse("rows_per_microbatch=2"), 1, 1300.0)
    with Journal(out, {"workload": workload.model_dump(mode="json")}) as journal:
        for plan in (*reference_plans(workload), trial):
            folder = journal.begin(plan.arm)
            source = RUNS / ("candidate" if plan is trial else plan.arm)
            shutil.copytree(source, folder, dirs_exist_ok=True)
            os.utime(folder / LOG, (RAN_AT, RAN_AT))
            journal.finish(
                ArmRecord(
                    arm=plan.arm,
                    layout=str(plan.layout),
                    ok=True,
                    cause=None,
                    predicted_tokens_per_s=plan.predicted_tokens_per_s,
                    wall_s=36.0,
                )
            )
    task = Task(
        path=path,
        workload=workload,
        model=read_config(model),
        rows=json.loads((out / ROWS / "manifest.json").read_text(encoding="utf-8")),
        out=out,
        journal=journal,
    )
    return Ran(task, trial, journal.arms[trial.arm])
