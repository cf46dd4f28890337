"""The shape of a text model: what fixes its weights and the work of one token."""

from __future__ import annotations

import dataclasses
from enum import Enum


class LayerType(str, Enum):
    """What mixes tokens in a layer; the values are those of `layer_types` in an HF config."""

    FULL_ATTENTION = "full_attention"
    LINEAR_ATTENTION = "linear_attention"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FullAttention:
    """Softmax attention with grouped KV heads and an output gate as wide as the queries."""

    heads: int
    kv_heads: int
    head_dim: int
    bias: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatedDeltaNet:
    """Linear attention by the gated delta rule, behind a short causal convolution of its q, k and v."""

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int

    @property
    def key_width(self) -> int:
        """Elements of all keys of one token."""
        return self.key_heads * self.key_head_dim

    @property
    def value_width(self) -> int:
        """Elements of all values of one token."""
        return self.value_heads * self.value_head_dim


@dataclasses.dataclass(frozen=True, kw_only=True)
class DenseMlp:
    """A gated MLP of this intermediate width."""

    width: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experts:
    """Routed experts, `top_k` of them per token, beside one shared expert with a gate of its own."""

    experts: int
    top_k: int
    width: int
    shared_width: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A decoder-only text model; `layer_types` has one entry per layer, first layer first.

    `tied_head` says that the output head is the token embedding and has no weight of its own.
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    layer_types: tuple[LayerType, ...]
    attention: FullAttention
    gated_delta_net: GatedDeltaNet
    mlp: DenseMlp | Experts
    tied_head: bool = False

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.layer_types)

    @property
    def experts(self) -> Experts | None:
        """The experts of an MoE model, None for a dense one."""
        return self.mlp if isinstance(self.mlp, Experts) else None
