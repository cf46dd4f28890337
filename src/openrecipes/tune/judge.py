"""Judge a trial: its own run is the candidate arm against the reference runs of the same tune."""

from __future__ import annotations

import dataclasses

from openrecipes.errors import ContentError
from openrecipes.measure.resolved import ResolvedArguments, parse_resolved_arguments
from openrecipes.plan.rules import warnings
from openrecipes.tune.arms import Plan, as_verified_arm, reference_plans
from openrecipes.tune.journal import ArmRecord
from openrecipes.tune.task import Task
from openrecipes.tune.trial import Trial
from openrecipes.verify.configuration import compare_arguments
from openrecipes.verify.convergence import judge
from openrecipes.verify.rules import shipped_numerics_list
from openrecipes.verify.verdict import Result


class Judge:
    """Reads the reference runs once and judges each trial against them."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._plans = reference_plans(task.workload)
        self._references = [as_verified_arm(plan.label, task.out / plan.arm) for plan in self._plans]
        self._arguments = self._resolved(self._plans[0].arm)
        self._numerics = shipped_numerics_list()

    def __call__(self, plan: Plan, record: ArmRecord) -> Trial:
        """The trial with its verdict; one that did not run has a cause and no figures."""
        task, workload = self._task, self._task.workload
        warned = warnings(plan.layout, task.model, workload.for_planner(workload.ranks))
        trial = Trial(layout=plan.layout, label=plan.label, record=record, warnings=warned)
        if not record.ok:
            return trial
        try:
            figures = task.figures(record.arm, plan.ranks)
        except ContentError:
            figures = None  # the same steps fail the gates below, which say why
        configuration = compare_arguments(self._resolved(record.arm), self._arguments, self._numerics)
        return dataclasses.replace(
            trial,
            figures=figures,
            configuration_cause=None if configuration.result is Result.PASS else configuration.cause,
            convergence=judge(
                as_verified_arm(plan.label, task.out / record.arm), self._references, steps=workload.steps
            ),
        )

    def _resolved(self, arm: str) -> ResolvedArguments:
        path = self._task.out / arm / "resolved.json"
        return parse_resolved_arguments(path.read_bytes(), path)
