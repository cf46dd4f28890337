"""The tune: propose layouts, run them, learn, verify, publish the fastest that trains right.

    rows -> component tests -> reference runs -> legal layouts, ranked -> a trial each -> entry

Everything that finished is in the journal, so a tune that was interrupted goes on where it was.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from openrecipes.check.run import check_entry
from openrecipes.errors import RunError
from openrecipes.launch.local import RehearsalHost, run_components
from openrecipes.measure.window import Figures
from openrecipes.model.config import read_config
from openrecipes.plan.cost import Prediction, calibrate, predict
from openrecipes.plan.enumerate import legal_layouts
from openrecipes.plan.rank import rank
from openrecipes.plan.rules import Violation, require_legal, warnings
from openrecipes.recipe.checkable import Level
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.arms import Plan, reference_plans, run_arm, trial_plan
from openrecipes.tune.entry import publish_winner
from openrecipes.tune.journal import Journal, require_tune_folder
from openrecipes.tune.judge import Judge
from openrecipes.tune.observer import Observer
from openrecipes.tune.task import Task, build_rows_for, identity
from openrecipes.tune.trial import PASS, Trial, fastest
from openrecipes.tune.workload import load_workload
from openrecipes.verify.components import parse_component_results


@dataclasses.dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a tune would run: the reference runs, then a trial of each prediction, beside the planner's warnings.

    The predictions are relative to one another: only a measured arm turns them into seconds.
    """

    references: tuple[Plan, ...]
    trials: tuple[tuple[Prediction, tuple[Violation, ...]], ...]
    ranks: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuned:
    """The outcome: every trial in the order it ran, the winner, and the entry written for it.

    `level` is what `openrecipes check` computes for the entry.
    """

    trials: tuple[Trial, ...]
    best: Trial | None = None
    entry: Path | None = None
    level: Level | None = None


def plan(path: Path) -> Proposal:
    """The arms that `tune` would run, in their order; nothing is run or written.

    Raises:
        UsageError: a path or a size is wrong.
        ContentError: the workload or the model's configuration is wrong.
    """
    workload = load_workload(path)
    model = read_config(workload.model_path(path))
    planned = workload.for_planner(workload.ranks)
    require_legal(workload.reference_layout, model, workload.for_planner(workload.reference.ranks))
    predictions = rank(model, planned, legal_layouts(model, planned), cores=_cores())
    return Proposal(
        references=tuple(reference_plans(workload)),
        trials=tuple((p, warnings(p.layout, model, planned)) for p in predictions),
        ranks=workload.ranks,
    )


def tune(path: Path, out: Path, observer: Observer) -> Tuned:
    """Tune the workload at `path`; `out` holds the journal, every arm, the rows and the entry.

    Raises:
        UsageError: a path or a size is wrong, or `out` belongs to another tune.
        ContentError: the workload or the model's configuration is wrong.
        MissingToolError: a package of the `rehearse` or `data` extra is missing.
        RunError: a reference run failed, so that no trial can be judged.
    """
    require_tune_folder(out)
    workload = load_workload(path)
    model = read_config(workload.model_path(path))
    layouts = legal_layouts(model, workload.for_planner(workload.ranks))
    require_legal(workload.reference_layout, model, workload.for_planner(workload.reference.ranks))

    observer.phase("fixed rows")
    rows = build_rows_for(workload, model, out)
    with (
        Journal(out, identity(workload, path, rows)) as journal,
        RehearsalHost(out / "host.log") as host,
    ):
        task = Task(path=path, workload=workload, model=model, rows=rows, out=out, journal=journal)
        if not task.components.exists():
            observer.phase("component tests")
            run_components(task.components, out / "host.log")
        parse_component_results(task.components.read_bytes(), task.components)  # now, not after all trials
        plans = reference_plans(workload)
        observer.arms(len(plans) + len(layouts), len(journal.arms))
        for plan in plans:
            _run_reference(plan, task, host, observer)
        trials = _try_all(task, layouts, host, observer)
    best = fastest(trials)
    if best is None:
        return Tuned(trials=tuple(trials))
    entry = publish_winner(task, best)
    return Tuned(trials=tuple(trials), best=best, entry=entry, level=check_entry(entry).level)


def _run_reference(plan: Plan, task: Task, host: RehearsalHost, observer: Observer) -> None:
    """Run a reference, again if it failed before: without it there is nothing to judge by."""
    done = task.journal.arms.get(plan.arm)
    if done and done.ok:
        return
    observer.arm_started(plan.label, task.workload.steps)
    record = run_arm(plan, task, host=host, on_step=observer.step)
    if not record.ok:
        raise RunError(f"{plan.label} failed, so no trial can be judged: {record.cause}; see {task.out / plan.arm}")
    observer.arm_finished(plan.label, _rate(task.figures(plan.arm, plan.ranks)), ok=True)


def _try_all(task: Task, layouts: Sequence[Layout], host: RehearsalHost, observer: Observer) -> list[Trial]:
    """A trial of each layout, most promising first; each measured trial corrects the predictions of the rest."""
    workload, model = task.workload, task.model
    cores = _cores()
    reference = predict(workload.reference_layout, model, workload.for_planner(workload.reference.ranks), cores=cores)
    measured = task.figures(reference_plans(workload)[0].arm, workload.reference.ranks)
    factors = [calibrate(reference, measured.step_time_mean_s)]
    judge = Judge(task)
    trials = []
    for prediction in rank(model, workload.for_planner(workload.ranks), layouts, cores=cores):
        scaled = prediction.scaled(statistics.median(factors))
        plan = trial_plan(prediction.layout, workload.ranks, scaled.tokens_per_s)
        done = task.journal.arms.get(plan.arm)
        if not done:
            observer.arm_started(plan.label, workload.steps)
        trial = judge(plan, done or run_arm(plan, task, host=host, on_step=observer.step))
        trials.append(trial)
        if trial.figures:
            factors.append(calibrate(prediction, trial.figures.step_time_mean_s))
        if not done:
            rate = f"{_rate(trial.figures)}, " if trial.figures else ""
            observer.arm_finished(plan.label, f"{rate}{trial.verdict}", ok=trial.verdict == PASS)
    return trials


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _rate(figures: Figures) -> str:
    return f"{figures.tokens_per_s_per_gpu * figures.gpus:,.0f} tokens/s, CV {figures.step_time_cv_percent:.1f} %"
