"""Arms: one run each, in a folder of its own, kept in the journal."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from openrecipes.engines.rehearsal import RehearsalJob, read_log
from openrecipes.engines.steps import format_steps
from openrecipes.errors import RunError
from openrecipes.launch.local import RehearsalHost
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.journal import ArmRecord
from openrecipes.tune.task import LOG, ROWS, STEPS, Task, arm_steps
from openrecipes.tune.workload import Workload
from openrecipes.verify.arm import Arm

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """An arm that is to run: its folder's name, its layout, and how it is shown."""

    arm: str
    label: str
    layout: Layout
    ranks: int
    row_order: str = "natural"
    predicted_tokens_per_s: float | None = None


def reference_plans(workload: Workload) -> list[Plan]:
    """The reference runs; every second one takes the rows of a batch in reversed order."""
    layout, ranks = workload.reference_layout, workload.reference.ranks
    return [
        Plan(
            arm=f"reference-{run}",
            label=f"reference {layout.label(ranks)}, {order} order",
            layout=layout,
            ranks=ranks,
            row_order=order,
        )
        for run in range(workload.reference.runs)
        for order in ("reversed" if run % 2 else "natural",)
    ]


def trial_plan(layout: Layout, ranks: int, predicted_tokens_per_s: float) -> Plan:
    """One trial of a layout."""
    label = layout.label(ranks)
    return Plan(
        arm=label.lower().replace(" ", "-"),
        label=label,
        layout=layout,
        ranks=ranks,
        predicted_tokens_per_s=predicted_tokens_per_s,
    )


def job_for(
    workload: Workload, path: Path, *, layout: Layout, ranks: int, steps: int, rows: Path, out: Path, row_order: str
) -> RehearsalJob:
    """The engine's job for one run of the workload that was read from `path`."""
    return RehearsalJob(
        model=str(workload.model_path(path).absolute()),
        rows=str(rows.absolute()),
        layout=str(layout),
        ranks=ranks,
        steps=steps,
        global_batch=workload.global_batch,
        out=str(out.absolute()),
        optimizer=workload.job_optimizer,
        recompute=workload.job_recompute,
        row_order=row_order,
    )


def run_arm(plan: Plan, task: Task, *, host: RehearsalHost, on_step: Callable[[int], None]) -> ArmRecord:
    """Run an arm to its end, well or badly, and put it into the journal.

    Raises:
        RunError: the disk is full. That says nothing about the layout, so the journal does not hear of it.
    """
    folder = task.journal.begin(plan.arm)
    job = job_for(
        task.workload,
        task.path,
        layout=plan.layout,
        ranks=plan.ranks,
        steps=task.workload.steps,
        rows=task.out / ROWS,
        out=folder,
        row_order=plan.row_order,
    )
    path = folder / "job.json"
    job.write(path)
    started = time.monotonic()
    outcome = host.run(path, on_step=lambda step, steps: on_step(step))
    cause = keep_steps(folder) if outcome.ok else outcome.described
    if cause and any(os.strerror(number) in cause for number in _DISK_FULL):
        raise RunError(f"{plan.label}: {cause} ({task.out}); make room, and the same command goes on from here")
    record = ArmRecord(
        arm=plan.arm,
        layout=str(plan.layout),
        ok=cause is None,
        cause=cause,
        predicted_tokens_per_s=plan.predicted_tokens_per_s,
        wall_s=round(time.monotonic() - started, 3),
    )
    task.journal.finish(record)
    return record


def keep_steps(folder: Path) -> str | None:
    """Write `steps.jsonl` from the raw log beside it; answer why that is impossible, or None."""
    try:
        with (folder / LOG).open(encoding="utf-8", errors="replace") as log:
            records = read_log(log)
    except ValueError as error:
        return f"{LOG}: {error}"
    (folder / STEPS).write_text(format_steps(records), encoding="utf-8")
    return None


def as_verified_arm(name: str, folder: Path) -> Arm:
    """A finished arm as the verifier sees it."""
    arguments = json.loads((folder / "resolved.json").read_text(encoding="utf-8"))["arguments"]
    return Arm(
        name=name,
        steps=arm_steps(folder),
        rows_sha256=arguments["rows_sha256"],
        row_order=arguments["row_order"],
        gradients=json.loads((folder / "gradients.json").read_text(encoding="utf-8")),
    )
