"""Arithmetic on curves that hold one positive value a step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

Curve = Sequence[float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distance:
    """How far a candidate is from its references, step by step, and how far those are from each other.

    `distances[n]` = |log candidate - mean of log reference| at step n, `noise[n]` = max - min of log
    reference over the reference runs: relative differences where they are small.
    """

    distances: tuple[float, ...]
    noise: tuple[float, ...]

    @property
    def worst_step(self) -> int:
        """The first step with the largest distance."""
        return max(range(len(self.distances)), key=self.distances.__getitem__)


def distance(candidate: Curve, references: Sequence[Curve]) -> Distance:
    """Compare positive finite curves of equal length with at least one reference curve."""
    logs = [[math.log(value) for value in values] for values in zip(*references, strict=True)]
    means = [math.fsum(values) / len(values) for values in logs]
    return Distance(
        distances=tuple(abs(math.log(value) - mean) for value, mean in zip(candidate, means, strict=True)),
        noise=tuple(max(values) - min(values) for values in logs),
    )


def mean_curve(curves: Sequence[Curve]) -> list[float]:
    """The mean of the curves at each step."""
    return [math.fsum(values) / len(values) for values in zip(*curves, strict=True)]


def correlation(one: Curve, other: Curve) -> float | None:
    """Pearson's correlation; None where a side does not vary."""
    mean_one, mean_other = math.fsum(one) / len(one), math.fsum(other) / len(other)
    centred = [(a - mean_one, b - mean_other) for a, b in zip(one, other, strict=True)]
    scale = math.hypot(*(a for a, _ in centred)) * math.hypot(*(b for _, b in centred))
    if not scale:
        return None
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in centred) / scale))  # rounding may pass 1 by an ulp
