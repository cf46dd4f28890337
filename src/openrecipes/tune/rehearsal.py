"""One layout, one run: does it train, and what does each step compute?"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from openrecipes.engines.rehearsal import RehearsalJob
from openrecipes.engines.steps import StepRecord
from openrecipes.errors import RunError, UsageError
from openrecipes.launch.local import RehearsalHost
from openrecipes.model.config import read_config
from openrecipes.plan.rules import require_legal
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.arms import job_for, keep_steps
from openrecipes.tune.observer import Observer
from openrecipes.tune.task import ROWS, arm_steps, build_rows_for
from openrecipes.tune.workload import load_workload


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """A finished rehearsal; its files (`docs/design.md`) stand in `out`."""

    layout: Layout
    ranks: int
    steps: tuple[StepRecord, ...]
    out: Path


def job(path: Path, layout_text: str, out: Path, *, ranks: int | None = None, steps: int | None = None) -> RehearsalJob:
    """The job of the workload at `path` under a layout; `ranks` and `steps` are the workload's where None.

    Raises:
        UsageError: the layout cannot train on that many ranks (every broken rule is named), or `out` is in use.
        ContentError: the workload or the model's configuration is wrong.
    """
    layout = Layout.parse(layout_text)
    workload = load_workload(path)
    ranks, steps = ranks or workload.ranks, steps or workload.steps
    model = read_config(workload.model_path(path))
    require_legal(layout, model, workload.for_planner(ranks))
    needed, built = steps * workload.global_batch, workload.data.rows
    if needed > built:
        most = built // workload.global_batch
        raise UsageError(f"{steps} steps need {needed} rows, the workload builds {built}; give --steps {most} or less")
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; give the folder of a new run")
    return job_for(
        workload, path, layout=layout, ranks=ranks, steps=steps, rows=out / ROWS, out=out, row_order="natural"
    )


def rehearse(path: Path, planned: RehearsalJob, observer: Observer) -> Rehearsed:
    """Run what `job` planned for the workload at `path`.

    Raises:
        MissingToolError: a package of the `rehearse` or `data` extra is missing.
        RunError: the run failed; the message names the cause.
    """
    out, layout = Path(planned.out), Layout.parse(planned.layout)
    observer.phase("fixed rows")
    workload = load_workload(path)
    build_rows_for(workload, read_config(workload.model_path(path)), out)
    label = layout.label(planned.ranks)
    observer.arm_started(label, planned.steps)
    planned.write(out / "job.json")
    with RehearsalHost(out / "host.log") as host:
        outcome = host.run(out / "job.json", on_step=lambda step, steps: observer.step(step))
    cause = keep_steps(out) if outcome.ok else outcome.described
    if cause:
        raise RunError(f"{label} failed: {cause}; see {out / 'run.log'}")
    return Rehearsed(layout=layout, ranks=planned.ranks, steps=tuple(arm_steps(out)), out=out)
