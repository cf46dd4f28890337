"""Is a second run as fast as the first, within what both show of their noise?

With mean step times m1, m2, sample standard deviations s1, s2 and n1, n2 steps in the windows, the two
are the same speed when

    |m1 - m2| <= h,   h = t(0.995, v) * sqrt(s1^2/n1 + s2^2/n2)

where t is Student's quantile (two-sided, 99 %) and v are Welch's degrees of freedom
    v = (s1^2/n1 + s2^2/n2)^2 / ((s1^2/n1)^2/(n1-1) + (s2^2/n2)^2/(n2-1))
(B. L. Welch, Biometrika 34, 1947, https://doi.org/10.1093/biomet/34.1-2.28).

Two limits keep noise from passing as agreement: at least five steps in each window, and h at most a
tenth of the first mean. Beyond them the answer is None: these windows cannot tell.

Steps are taken as independent. Where neighbouring steps are alike, h is too small and an honest repeat
may fail; it never makes a different speed pass.
"""

from __future__ import annotations

import dataclasses
import math
import statistics

from openrecipes.measure.window import Figures

CONFIDENCE = 0.99
LEAST_STEPS = 5
LARGEST_HALF_WIDTH = 0.10


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeedComparison:
    """`same` is None where the windows cannot tell; `detail` is the formula with its numbers."""

    same: bool | None
    detail: str


def compare_speed(first: Figures, second: Figures) -> SpeedComparison:
    """Compare the mean step times of two runs of one entry."""
    steps = min(len(first.step_times_s), len(second.step_times_s))
    if steps < LEAST_STEPS:
        return SpeedComparison(same=None, detail=f"a window has {steps} steps, at least {LEAST_STEPS} are needed")
    if first.step_times_s == second.step_times_s:
        return SpeedComparison(same=False, detail="the step times are equal in every digit: a copy, not a second run")
    half_width_s = _half_width(first.step_times_s, second.step_times_s)
    difference_s = abs(first.step_time_mean_s - second.step_time_mean_s)
    detail = (
        f"mean step {first.step_time_mean_s:.6g} s and {second.step_time_mean_s:.6g} s "
        f"({first.tokens_per_s_per_gpu:.6g} and {second.tokens_per_s_per_gpu:.6g} tokens/s/GPU): "
        f"difference {difference_s:.3g} s, {CONFIDENCE:.0%} noise {half_width_s:.3g} s"
    )
    if half_width_s > LARGEST_HALF_WIDTH * first.step_time_mean_s:
        too_noisy = f"the noise is more than {LARGEST_HALF_WIDTH:.0%} of the mean, so these windows cannot tell"
        return SpeedComparison(same=None, detail=f"{detail}; {too_noisy}")
    return SpeedComparison(same=difference_s <= half_width_s, detail=detail)


def _half_width(first_s: tuple[float, ...], second_s: tuple[float, ...]) -> float:
    errors = [(statistics.stdev(times) / math.sqrt(len(times)), len(times) - 1) for times in (first_s, second_s)]
    error = math.hypot(*(part for part, _ in errors))
    if error == 0:
        return 0.0
    freedom = 1 / sum((part / error) ** 4 / n for part, n in errors)
    return student_quantile(1 - (1 - CONFIDENCE) / 2, freedom) * error


def student_quantile(probability: float, freedom: float) -> float:
    """Student's t quantile for `freedom` >= 4, to 0.3 % at 0.995 (Abramowitz and Stegun, 26.7.5)."""
    z = statistics.NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
