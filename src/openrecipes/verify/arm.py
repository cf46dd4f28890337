"""One run as the verifier sees it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from openrecipes.engines.steps import StepRecord


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arm:
    """The steps of one run, and what is needed to know that it may be compared.

    `name` is for messages (`reference run 1`). `row_order` is the order in which the rows of one global
    batch were taken. `gradients` maps global parameter names to gradient norms at step 0, before
    clipping. What is not known is None.
    """

    name: str
    steps: Sequence[StepRecord]
    rows_sha256: str | None
    row_order: str | None = None
    gradients: Mapping[str, float] | None = None

    @property
    def loss(self) -> list[float]:
        """The loss of each step, nats a supervised token."""
        return [record.loss for record in self.steps]

    @property
    def grad_norm(self) -> list[float]:
        """The gradient norm of each step, before clipping."""
        return [record.grad_norm for record in self.steps]
