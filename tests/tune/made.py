"""Trials made by hand, for tests that need no run."""

from __future__ import annotations

import math
import statistics

from openrecipes.measure.window import Figures
from openrecipes.plan.rules import Violation
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.journal import ArmRecord
from openrecipes.tune.trial import Trial
from openrecipes.verify.convergence import Convergence
from openrecipes.verify.verdict import Gate, Result

TOKENS = 256
WARNING = Violation(id="L201", message="the wrong group", remedy="use ETP = TP", url="https://example.org/5916")


def figures(step_times_s: list[float], ranks: int = 4) -> Figures:
    """The figures of a window of steps of TOKENS tokens."""
    mean = statistics.mean(step_times_s)
    return Figures(
        first=0,
        last=len(step_times_s) - 1,
        gpus=ranks,
        window_tokens=TOKENS * len(step_times_s),
        step_times_s=tuple(step_times_s),
        step_time_mean_s=mean,
        step_time_cv_percent=100 * statistics.stdev(step_times_s) / mean,
        tokens_per_s_per_gpu=TOKENS * len(step_times_s) / math.fsum(step_times_s) / ranks,
    )


def convergence(result: Result, measured: float = 1e-6, bound: float = 1e-4) -> Convergence:
    """A verdict that one gate decides."""
    gates = (
        Gate(id="finite", result=Result.PASS, detail="all losses are numbers"),
        Gate(id="curve_loss", result=Result.PASS, detail="close", measured=1e-9, bound=1e-4, at="step 3"),
        Gate(id="step0_grad_norm", result=result, detail="measured", measured=measured, bound=bound, at="step 0"),
    )
    return Convergence(result=result, steps=20, gates=gates, cause=f"step0_grad_norm: {measured:g}, bound {bound:g}")


def trial(
    text: str = "pp=2",
    result: Result | None = Result.PASS,
    *,
    step_times_s: list[float] | None = None,
    measured: float = 1e-6,
    cause: str | None = None,
    warnings: tuple[Violation, ...] = (),
) -> Trial:
    """A trial on four ranks; `result` None is one that did not run, for `cause`."""
    layout = Layout.parse(text)
    ran = result is not None
    return Trial(
        layout=layout,
        label=layout.label(4),
        record=ArmRecord(
            arm=layout.label(4).lower().replace(" ", "-"),
            layout=str(layout),
            ok=ran,
            cause=cause,
            predicted_tokens_per_s=1234.5,
            wall_s=3.25,
        ),
        warnings=warnings,
        figures=figures(step_times_s or [0.1, 0.11, 0.09]) if ran else None,
        convergence=convergence(result, measured) if result else None,
    )
