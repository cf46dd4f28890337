"""The speed of a run over its window.

    window_tokens        = sum of `tokens` over the steps first..last, both included
    tokens/s/GPU         = window_tokens / (sum of the window's step times) / GPUs
    step_time_cv_percent = 100 * sample standard deviation / mean of the window's step times

The window leaves out warm-up. Records that cannot be trusted are refused, never repaired: a step that
is missing, doubled or out of order has shifted every step after it.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from openrecipes.engines.steps import StepRecord
from openrecipes.errors import ContentError, Finding, Severity


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figures:
    """What a window of `step_times_s` shows; the other figures follow from it, the tokens and the GPUs."""

    first: int
    last: int
    gpus: int
    window_tokens: int
    step_times_s: tuple[float, ...]
    step_time_mean_s: float
    step_time_cv_percent: float
    tokens_per_s_per_gpu: float

    @property
    def formula(self) -> str:
        """The rate with its numbers, for a table or the detail of a check."""
        total_s = math.fsum(self.step_times_s)
        return f"{self.window_tokens} tokens / {total_s:.6g} s / {self.gpus} GPUs = {self.tokens_per_s_per_gpu:.6g}"


def measure(records: Sequence[StepRecord], *, window: tuple[int, int], gpus: int, path: Path | None = None) -> Figures:
    """The figures of one run.

    `records` are all steps of the run, `window` its first and last measured step (inclusive), `path`
    names the place of an error.

    Raises:
        ContentError: a step is missing, doubled, out of order, empty or not finite, or the window does not
            hold at least two steps of the run (one step has no standard deviation).
    """
    findings = _faults(records, path) or _window_faults(len(records), window, gpus, path)
    if findings:
        raise ContentError(findings)
    first, last = window
    measured = records[first : last + 1]
    times_s = tuple(record.step_time_s for record in measured)
    tokens = sum(record.tokens for record in measured)
    try:
        mean_s = statistics.fmean(times_s)
        rate = tokens / math.fsum(times_s) / gpus
        cv_percent = 100 * statistics.stdev(times_s, mean_s) / mean_s
    except OverflowError:
        mean_s = rate = cv_percent = math.inf
    if not all(map(math.isfinite, (mean_s, rate, cv_percent))):
        extent = f"{min(times_s):g}..{max(times_s):g} s"
        raise ContentError([_finding(path, f"step times of {extent} give no finite rate", "give wall time in seconds")])
    return Figures(
        first=first,
        last=last,
        gpus=gpus,
        window_tokens=tokens,
        step_times_s=times_s,
        step_time_mean_s=mean_s,
        step_time_cv_percent=cv_percent,
        tokens_per_s_per_gpu=rate,
    )


def _faults(records: Sequence[StepRecord], path: Path | None) -> list[Finding]:
    """Everything that makes the records unfit; `records[n]` must be step n."""
    faults: list[tuple[str, str]] = []
    seen: set[int] = set()
    expected = 0
    for record in records:
        step = record.step
        if step in seen:
            faults.append((f"step {step} is there twice", "keep the records of one run and one rank"))
        elif step < expected:
            faults.append((f"step {step} comes after step {expected - 1}", "keep the order of the run"))
        elif step > expected:
            gap = f"step {expected}" if step == expected + 1 else f"steps {expected}..{step - 1}"
            faults.append((f"{gap} missing before step {step}", "give every step from 0 on"))
        seen.add(step)
        expected = max(expected, step + 1)
        for name in ("loss", "grad_norm", "step_time_s"):
            value = getattr(record, name)
            if not math.isfinite(value):
                faults.append((f"step {step}: {name} is {value}", "a run that diverged has no speed to report"))
        if record.tokens <= 0 or record.step_time_s <= 0:
            empty = f"step {step}: {record.tokens} tokens in {record.step_time_s} s"
            faults.append((empty, "every step trains on at least one token and takes time"))
    return [_finding(path, message, remedy) for message, remedy in faults]


def _window_faults(steps: int, window: tuple[int, int], gpus: int, path: Path | None) -> list[Finding]:
    first, last = window
    if gpus < 1:
        return [_finding(path, f"{gpus} GPUs", "a run has at least one GPU", field="gpu.count")]
    if 0 <= first < last < steps:
        return []
    ran = f"the run has steps 0..{steps - 1}" if steps else "the run has no step"
    remedy = "give the first and last measured step, two or more of them, both inside the run"
    return [_finding(path, f"window {first}..{last}, but {ran}", remedy, field="result.window")]


def _finding(path: Path | None, message: str, remedy: str, field: str | None = None) -> Finding:
    return Finding(id="M002", severity=Severity.ERROR, message=message, remedy=remedy, path=path, field=field)
