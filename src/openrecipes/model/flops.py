"""Floating-point operations of one token, layer by layer.

A multiply-add counts as two. Norms, activations, softmax and rotary embedding are left out. Only layers
and head do arithmetic: the embedding is a look-up.
"""

from __future__ import annotations

from openrecipes.model.parameters import active_layer_parameters
from openrecipes.model.shape import LayerType, ModelShape

# The backward pass multiplies once for the inputs' gradients and once for the weights'.
TRAINING_PASSES = 3


def layer_forward_flops_per_token(shape: ModelShape, layer_type: LayerType, row_tokens: int) -> int:
    """Forward FLOPs of one token in one layer, in a causal row of `row_tokens` tokens.

    2 * (weights the token is multiplied with) + the work on the context:

        full attention     scores and values, 2 * 2 * heads * head_dim * (row_tokens + 1) / 2,
                           since a token sees itself and on average half of the rest of the row
        gated delta net    6 * value_heads * key_head_dim * value_head_dim: the state is read for the
                           key, changed by an outer product and read for the query

    The second is the recurrence of the gated delta rule (https://arxiv.org/abs/2412.06464, equation 10);
    chunked kernels do more operations in fewer steps, which is not model work.
    """
    matmuls = 2 * active_layer_parameters(shape, layer_type)
    if layer_type is LayerType.FULL_ATTENTION:
        return matmuls + 2 * shape.attention.heads * shape.attention.head_dim * (row_tokens + 1)
    gdn = shape.gated_delta_net
    return matmuls + 6 * gdn.value_heads * gdn.key_head_dim * gdn.value_head_dim


def head_forward_flops_per_token(shape: ModelShape) -> int:
    """Forward FLOPs of one token in the output head, tied or not: 2 * hidden_size * vocab_size."""
    return 2 * shape.hidden_size * shape.vocab_size


def forward_flops_per_token(shape: ModelShape, row_tokens: int) -> int:
    """Forward FLOPs of one token in the whole model."""
    layers = sum(layer_forward_flops_per_token(shape, layer_type, row_tokens) for layer_type in shape.layer_types)
    return layers + head_forward_flops_per_token(shape)


def training_flops_per_token(shape: ModelShape, row_tokens: int) -> int:
    """FLOPs of one token in forward and backward pass, three times the forward; recomputation is not model work."""
    return TRAINING_PASSES * forward_flops_per_token(shape, row_tokens)
