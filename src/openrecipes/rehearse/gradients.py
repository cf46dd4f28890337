"""The norm of each parameter's gradient over the whole model, whatever the layout.

Taken after Megatron has reduced the gradients and before it clips them. With the distributed optimizer
a rank holds the reduced gradient of its own shard only, so squares are summed shard by shard, in FP64,
and a tensor that several TP ranks hold a copy of is counted on one of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from megatron.core.optimizer import ChainedOptimizer, MegatronOptimizer

from openrecipes.rehearse.weights import Placed


def gradient_norms(optimizer: MegatronOptimizer, placed: Iterable[Placed]) -> dict[str, float]:
    """{global parameter name: L2 norm of its gradient}; complete on rank 0, empty on the others.

    A collective call: every rank has to make it.
    """
    owned = {place.parameter: place.name for place in placed if place.owner}
    squares: defaultdict[str, float] = defaultdict(float)
    for parameter, shard in _shards(optimizer):
        if parameter in owned:
            squares[owned[parameter]] += shard.double().square().sum().item()
    ranks = torch.distributed.get_world_size()
    gathered: list[dict[str, float]] | None = [{}] * ranks if torch.distributed.get_rank() == 0 else None
    torch.distributed.gather_object(squares, gathered)
    whole: defaultdict[str, float] = defaultdict(float)
    for part in gathered or ():
        for name, square in part.items():
            whole[name] += square
    return {name: math.sqrt(square) for name, square in sorted(whole.items())}


def _shards(optimizer: Any) -> Iterator[tuple[torch.nn.Parameter, torch.Tensor]]:
    """Each parameter with the flat part of its gradient that this rank's optimizer owns."""
    parts: list[Any] = optimizer.chained_optimizers if isinstance(optimizer, ChainedOptimizer) else [optimizer]
    for part in parts:
        for buffer in part.gbuf_ranges:
            for buckets in buffer.values():
                for bucket in buckets:
                    for parameter, ranges in bucket["param_map"].items():
                        owned = ranges["param"]
                        yield parameter, parameter.main_grad.view(-1)[owned.start : owned.end]
