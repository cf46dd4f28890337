"""The work that a layout is planned for: one optimizer step."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanWorkload:
    """One optimizer step: `global_batch` rows of `row_tokens` tokens over `ranks` processes or GPUs.

    `recompute` is full recompute: every layer's forward pass runs a second time in the backward pass.
    """

    ranks: int
    global_batch: int
    row_tokens: int
    recompute: bool = False
