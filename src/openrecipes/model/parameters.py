"""Every weight of a text model, and how many of them there are.

The weights are those of transformers' own models (v5.24.0, `models/qwen3_5_moe/modeling_qwen3_5_moe.py`
and `models/qwen3_5/modeling_qwen3_5.py`), which a test builds without memory and compares shape by
shape. Vision towers and multi-token prediction are no part of the text model.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from enum import Enum
from functools import cache

from openrecipes.model.shape import DenseMlp, Experts, LayerType, ModelShape


class Kind(str, Enum):
    """What a weight belongs to."""

    EMBEDDING = "embedding"
    HEAD = "head"
    FULL_ATTENTION = "full attention"
    GATED_DELTA_NET = "gated delta net"
    MLP = "mlp"
    ROUTER = "router"
    ROUTED_EXPERTS = "routed experts"
    SHARED_EXPERT = "shared expert"
    NORM = "norm"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weight:
    """A tensor of the model, which occurs `count` times (once per layer that has it)."""

    name: str
    shape: tuple[int, ...]
    kind: Kind
    count: int = 1

    @property
    def elements(self) -> int:
        """Elements of one occurrence."""
        return math.prod(self.shape)


def embedding_weights(shape: ModelShape) -> tuple[Weight, ...]:
    """The weights before the first layer."""
    return (Weight(name="embed_tokens", shape=(shape.vocab_size, shape.hidden_size), kind=Kind.EMBEDDING),)


def head_weights(shape: ModelShape) -> tuple[Weight, ...]:
    """The weights after the last layer; a tied head has none of its own."""
    norm = Weight(name="norm", shape=(shape.hidden_size,), kind=Kind.NORM)
    head = Weight(name="lm_head", shape=(shape.vocab_size, shape.hidden_size), kind=Kind.HEAD)
    return (norm,) if shape.tied_head else (norm, head)


@cache
def layer_weights(shape: ModelShape, layer_type: LayerType) -> tuple[Weight, ...]:
    """The weights of one layer of this type."""
    hidden = shape.hidden_size
    norms = [Weight(name=f"{name}_layernorm", shape=(hidden,), kind=Kind.NORM) for name in ("input", "post_attention")]
    mixer = _attention(shape) if layer_type is LayerType.FULL_ATTENTION else _gated_delta_net(shape)
    mlp = _experts(shape.mlp, hidden) if isinstance(shape.mlp, Experts) else _mlp(shape.mlp, hidden)
    return (*norms, *mixer, *mlp)


def weights(shape: ModelShape) -> tuple[Weight, ...]:
    """Every weight of the text model; those of layers of one type stand once, with their count."""
    layers = [
        dataclasses.replace(weight, name=f"layers.*.{weight.name}", count=count)
        for layer_type, count in Counter(shape.layer_types).items()
        for weight in layer_weights(shape, layer_type)
    ]
    return (*embedding_weights(shape), *layers, *head_weights(shape))


def total_parameters(shape: ModelShape) -> int:
    """Elements of all text weights."""
    return sum(weight.elements * weight.count for weight in weights(shape))


def active_parameters(shape: ModelShape) -> int:
    """Weights one token is multiplied with: the N of 6 * N FLOPs per token.

    Counted are the elements of all text weights with two or more dimensions, without the token
    embedding, and of the routed experts the share top_k / num_experts. (So a tied head, which is the
    token embedding, is not counted.) The rule was found from the 16,331,407,360 which ATTUNE's recipe
    (https://arxiv.org/abs/2610.17528) states for Qwen3.5-397B-A17B, and gives exactly that number.
    """
    return sum(_active_elements(shape, weight) * weight.count for weight in weights(shape))


def active_layer_parameters(shape: ModelShape, layer_type: LayerType) -> int:
    """The part of `active_parameters` that one layer of this type holds."""
    return sum(_active_elements(shape, weight) for weight in layer_weights(shape, layer_type))


def _active_elements(shape: ModelShape, weight: Weight) -> int:
    if len(weight.shape) < 2 or weight.kind is Kind.EMBEDDING:
        return 0
    if weight.kind is Kind.ROUTED_EXPERTS and isinstance(shape.mlp, Experts):
        return weight.elements // shape.mlp.experts * shape.mlp.top_k
    return weight.elements


def _attention(shape: ModelShape) -> list[Weight]:
    hidden, attention = shape.hidden_size, shape.attention
    query, key = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    # The query projection also makes the output gate, hence twice its width.
    projections = {
        "q_proj": (2 * query, hidden),
        "k_proj": (key, hidden),
        "v_proj": (key, hidden),
        "o_proj": (hidden, query),
    }
    tensors: dict[str, tuple[int, ...]] = {}
    for name, size in projections.items():
        tensors[f"self_attn.{name}.weight"] = size
        if attention.bias:
            tensors[f"self_attn.{name}.bias"] = size[:1]
    found = [Weight(name=name, shape=size, kind=Kind.FULL_ATTENTION) for name, size in tensors.items()]
    norms = [
        Weight(name=f"self_attn.{name}", shape=(attention.head_dim,), kind=Kind.NORM) for name in ("q_norm", "k_norm")
    ]
    return [*found, *norms]


def _gated_delta_net(shape: ModelShape) -> list[Weight]:
    hidden, gdn = shape.hidden_size, shape.gated_delta_net
    conv_width = 2 * gdn.key_width + gdn.value_width
    tensors = {
        "in_proj_qkv": (conv_width, hidden),
        "in_proj_z": (gdn.value_width, hidden),
        "in_proj_b": (gdn.value_heads, hidden),
        "in_proj_a": (gdn.value_heads, hidden),
        "conv1d": (conv_width, 1, gdn.conv_kernel),  # depthwise: one filter a channel
        "A_log": (gdn.value_heads,),
        "dt_bias": (gdn.value_heads,),
        "out_proj": (hidden, gdn.value_width),
    }
    found = [
        Weight(name=f"linear_attn.{name}", shape=size, kind=Kind.GATED_DELTA_NET) for name, size in tensors.items()
    ]
    return [*found, Weight(name="linear_attn.norm", shape=(gdn.value_head_dim,), kind=Kind.NORM)]


def _mlp(mlp: DenseMlp, hidden: int, prefix: str = "mlp", kind: Kind = Kind.MLP) -> list[Weight]:
    tensors = {"gate_proj": (mlp.width, hidden), "up_proj": (mlp.width, hidden), "down_proj": (hidden, mlp.width)}
    return [Weight(name=f"{prefix}.{name}", shape=size, kind=kind) for name, size in tensors.items()]


def _experts(mlp: Experts, hidden: int) -> list[Weight]:
    routed = {
        "gate_up_proj": (mlp.experts, 2 * mlp.width, hidden),
        "down_proj": (mlp.experts, hidden, mlp.width),
    }
    return [
        Weight(name="mlp.gate", shape=(mlp.experts, hidden), kind=Kind.ROUTER),
        *(Weight(name=f"mlp.experts.{name}", shape=size, kind=Kind.ROUTED_EXPERTS) for name, size in routed.items()),
        *_mlp(DenseMlp(width=mlp.shared_width), hidden, "mlp.shared_expert", Kind.SHARED_EXPERT),
        Weight(name="mlp.shared_expert_gate", shape=(1, hidden), kind=Kind.SHARED_EXPERT),
    ]
