"""Layouts in the order in which trying them promises most."""

from __future__ import annotations

from collections.abc import Iterable

from openrecipes.errors import UsageError
from openrecipes.model.shape import ModelShape
from openrecipes.plan.cost import CpuCosts, Prediction, predict
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.parallel import Layout


def rank(
    model: ModelShape, workload: PlanWorkload, layouts: Iterable[Layout], *, cores: int, costs: CpuCosts | None = None
) -> tuple[Prediction, ...]:
    """Predictions for legal layouts, most tokens per second first; equal ones in the order of their text.

    `cores` are shared by all ranks; `costs` are the documented assumptions unless given.

    Raises:
        UsageError: a figure of the cost model is not above 0.
    """
    costs = costs or CpuCosts()
    wrong = [f"{name} is {value}" for name, value in {"cores": cores, **vars(costs)}.items() if not value > 0]
    if wrong:
        raise UsageError(f"cost model: {', '.join(wrong)}; expected numbers above 0")
    predictions = (predict(layout, model, workload, cores=cores, costs=costs) for layout in layouts)
    return tuple(sorted(predictions, key=lambda p: (-p.tokens_per_s, str(p.layout))))


def reason(prediction: Prediction) -> str:
    """Why the layout stands where it does, such as `bubble 33 %, 96 messages, 2.1 MB a step`."""
    parts = []
    if prediction.bubble:
        idle = " (other ranks use the idle cores)" if prediction.limited_by_cores else ""
        parts.append(f"bubble {100 * prediction.bubble:.0f} %{idle}")
    if prediction.imbalance > 0.005:
        parts.append(f"slowest stage {100 * prediction.imbalance:.0f} % above the mean")
    parts.append(f"{prediction.messages:.0f} messages, {prediction.bytes / 1e6:.1f} MB a step and rank")
    return ", ".join(parts)
