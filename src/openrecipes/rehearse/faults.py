"""Deliberate faults, to show that a verifier finds them.

Each is injected below the arguments: the resolved arguments of a faulty run equal those of an honest
one, so only its numbers can give it away.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable

from openrecipes.errors import UsageError

FAULTS = {
    "norm_grads_unreduced_over_tp": (
        "The gradients of norm weights are not summed over TP, as when a norm lacks its sequence-parallel mark. "
        "Shows where TP is above 1."
    ),
    "loss_scaled_by_dp": (
        "The loss that is differentiated is multiplied by DP, as when an average over DP is undone twice. "
        "The reported loss is right. Shows where DP is above 1."
    ),
    "microbatch_dropped": "The last micro-batch of the first data-parallel rank counts for nothing, at every step.",
    "rows_shuffled": "The rows of all steps are permuted among the steps.",
    "nan_at_step_N": "The loss reported at step N is NaN; training itself goes on. N is a number, as in nan_at_step_7.",
    "lr_x1.1": "The optimizer runs at 1.1 times the learning rate it was given.",
}

_NAN_AT_STEP = re.compile(r"nan_at_step_(\d{1,6})")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Faults:
    """The faults of one run, each off by default."""

    norm_grads_unreduced_over_tp: bool = False
    loss_scaled_by_dp: bool = False
    microbatch_dropped: bool = False
    rows_shuffled: bool = False
    nan_steps: frozenset[int] = frozenset()
    lr_factor: float = 1.0

    @classmethod
    def parse(cls, names: Iterable[str]) -> Faults:
        """Read the names of faults.

        Raises:
            UsageError: naming each name that is not in `FAULTS`.
        """
        names = list(names)
        nan_steps = {name: int(found[1]) for name in names if (found := _NAN_AT_STEP.fullmatch(name))}
        flags = {field.name for field in dataclasses.fields(cls)} & FAULTS.keys()
        if unknown := [name for name in names if name not in flags | {"lr_x1.1"} | nan_steps.keys()]:
            raise UsageError(f"unknown fault {', '.join(map(repr, unknown))}; known are {', '.join(FAULTS)}")
        return cls(
            **{name: True for name in names if name in flags},
            nan_steps=frozenset(nan_steps.values()),
            lr_factor=1.1 if "lr_x1.1" in names else 1.0,
        )

    def reported_loss(self, step: int, loss: float) -> float:
        """The loss as this run reports it."""
        return math.nan if step in self.nan_steps else loss
