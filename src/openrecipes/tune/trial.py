"""A trial as the tune judged it."""

from __future__ import annotations

import dataclasses
import math

from openrecipes.measure.window import Figures
from openrecipes.plan.rules import Violation
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.journal import ArmRecord
from openrecipes.verify.convergence import Convergence

PASS, FAIL, INCONCLUSIVE, DID_NOT_RUN = "pass", "fail", "inconclusive", "no run"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """A finished trial: what was predicted, what was measured, whether it trained right, and why not.

    `warnings` are the planner's; they never decide. `figures` and `convergence` are None for a trial
    that did not run to its end.
    """

    layout: Layout
    label: str
    record: ArmRecord
    warnings: tuple[Violation, ...] = ()
    figures: Figures | None = None
    convergence: Convergence | None = None
    configuration_cause: str | None = None

    @property
    def verdict(self) -> str:
        """`pass`, `fail`, `inconclusive`, or `no run`."""
        if self.convergence is None:
            return DID_NOT_RUN
        if self.configuration_cause:
            return FAIL
        return self.convergence.result.value

    @property
    def cause(self) -> str:
        """One line: what decided the verdict."""
        if self.convergence is None:
            return self.record.cause or "no step record"
        return self.configuration_cause or self.convergence.cause

    @property
    def reason(self) -> str:
        """The cause in a few words, for a table: the gate that decided, and how much of its bound was used."""
        if self.convergence is None:
            return "-"
        if self.configuration_cause:
            return "configuration"
        gates = [gate for gate in self.convergence.gates if gate.result is self.convergence.result]
        if self.verdict == PASS:
            gates.sort(key=lambda gate: gate.share or 0.0, reverse=True)
        return f"{gates[0].id} {_share_text(gates[0].share)}".rstrip()

    @property
    def tokens_per_s(self) -> float | None:
        """Measured tokens per second of all ranks together."""
        return self.figures.tokens_per_s_per_gpu * self.figures.gpus if self.figures else None


def _share_text(used: float | None) -> str:
    """How much of a bound was used: `<1%`, `23%`, `4.8x`; nothing for a gate without a bound or a number."""
    if used is None or not math.isfinite(used):
        return ""
    if used < 0.01:
        return "<1%"
    return f"{used:.0%}" if used < 1 else f"{used:.2g}x"


def fastest(trials: list[Trial]) -> Trial | None:
    """The fastest trial that passed, or None."""
    passed = [trial for trial in trials if trial.verdict == PASS]
    return max(passed, key=lambda trial: trial.tokens_per_s or 0.0, default=None)


def tied_with(best: Trial, trials: list[Trial]) -> list[Trial]:
    """Passing trials whose mean step time differs from the best by no more than the noise of both.

    The noise is two standard errors of the difference of two means, from the step times of the
    windows: 2 * sqrt(s1^2/n1 + s2^2/n2) (Welch, Biometrika 34, 1947, without his degrees of freedom).
    """
    return [
        trial
        for trial in trials
        if trial is not best
        and trial.verdict == PASS
        and trial.figures
        and best.figures
        and abs(trial.figures.step_time_mean_s - best.figures.step_time_mean_s)
        <= 2 * math.hypot(_standard_error_s(trial.figures), _standard_error_s(best.figures))
    ]


def _standard_error_s(figures: Figures) -> float:
    sd = figures.step_time_mean_s * figures.step_time_cv_percent / 100
    return sd / math.sqrt(len(figures.step_times_s))
