"""How many messages a rank sends, and how many bytes, under one layout.

Counted are the collectives of Megatron-Core with sequence parallel wherever TP > 1, the all-to-all token
dispatcher and the distributed optimizer (`core/tensor_parallel/layers.py`, `core/transformer/moe/token_dispatcher.py`,
`core/distributed/param_and_grad_buffer.py`, https://github.com/NVIDIA/Megatron-LM, release 0.16.1).
Values travel in FP32. Routing is taken as balanced, weights as equally divided over TP.
"""

from __future__ import annotations

import dataclasses

from openrecipes.model.parameters import Kind, embedding_weights, head_weights, layer_weights
from openrecipes.model.shape import LayerType, ModelShape
from openrecipes.recipe.parallel import Layout

_VALUE_BYTES = 4


@dataclasses.dataclass(frozen=True)
class Traffic:
    """What one rank sends: a number of messages (collective calls included) and of bytes."""

    messages: float = 0
    bytes: float = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.messages + other.messages, self.bytes + other.bytes)

    def __mul__(self, times: float) -> Traffic:
        return Traffic(self.messages * times, self.bytes * times)


def layer_traffic(layout: Layout, model: ModelShape, tokens: int) -> Traffic:
    """One layer's forward pass over a micro-batch of `tokens` tokens.

    TP gathers the tokens before the mixer and the MLP (or shared expert) and scatters the sums after
    them: 4 messages of tokens * hidden * (TP - 1) / TP values. EP sends each token to `top_k` experts
    and back, its router probabilities along: 3 messages. ETP gathers and scatters what EP brought: 3
    more. Both agree on the counts first: 1 message.
    """
    activations = tokens * model.hidden_size * _VALUE_BYTES
    traffic = Traffic()
    if layout.tp > 1:
        traffic += Traffic(4, 4 * activations * (layout.tp - 1) / layout.tp)
    if model.experts and layout.ep * layout.etp > 1:
        routed = activations / layout.tp * model.experts.top_k
        traffic += Traffic(1, 0)
        if layout.ep > 1:
            traffic += Traffic(3, 2 * routed * (layout.ep - 1) / layout.ep)
        if layout.etp > 1:
            traffic += Traffic(3, 2 * routed * (layout.etp - 1))
    return traffic


def stage_boundary_traffic(layout: Layout, model: ModelShape, tokens: int) -> Traffic:
    """Activations forward and their gradients backward, once per micro-batch and model chunk."""
    if layout.pp == 1:
        return Traffic()
    return Traffic(2, 2 * tokens * model.hidden_size * _VALUE_BYTES / layout.tp) * layout.vpp


def gradient_traffic(layout: Layout, model: ModelShape, ranks: int, layer_types: tuple[LayerType, ...]) -> Traffic:
    """Once a step, for a stage of these layers: reduce-scatter of the gradients, all-gather of the weights.

    Dense weights over DP, routed experts over EDP; each model chunk has a buffer of its own for both.
    Embedding and head are counted as a stage's alone where PP is 1, and shared out evenly otherwise.
    """
    outer = sum(weight.elements for weight in (*embedding_weights(model), *head_weights(model)))
    dense, routed = outer / layout.pp / layout.tp, 0.0
    for layer_type in layer_types:
        for weight in layer_weights(model, layer_type):
            if weight.kind is Kind.ROUTED_EXPERTS:
                routed += weight.elements / (layout.ep * layout.etp)
            else:
                dense += weight.elements / layout.tp
    traffic = Traffic()
    for elements, group in ((dense, layout.dp(ranks)), (routed, layout.edp(ranks))):
        if elements and group > 1:
            traffic += Traffic(2 * layout.vpp, 2 * elements * _VALUE_BYTES * (group - 1) / group)
    return traffic
