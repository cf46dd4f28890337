"""Weights that are the same function of a parameter's global name under every layout.

A rank draws the whole tensor from a generator seeded by its global name and keeps the part that Megatron
places on it. Two runs with different layouts thus start from one model, bit for bit.

Fused tensors are cut part by part. The input projection of a gated delta net holds query, key, value,
output gate, beta and alpha one after the other, and TP takes a slice of each; cutting the whole
evenly would mix them. The fused query-key-value projection of full attention needs no such care: Megatron
stores it group by group.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_model import GPTModel


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placed:
    """A parameter on this rank and its place in the whole model.

    `name` numbers layers and experts over the whole model from 0. The whole tensor is cut along `dim`
    into `ways` slices, part by part where `parts` gives the sizes of fused parts; this rank holds
    slice `index`. `owner` is false on ranks that hold a copy of what another TP rank holds.
    """

    name: str
    parameter: torch.nn.Parameter
    dim: int
    ways: int
    index: int
    parts: tuple[int, ...]
    owner: bool

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Shape of the whole tensor."""
        shape = list(self.parameter.shape)
        shape[self.dim] *= self.ways
        return tuple(shape)


def fill(chunk: GPTModel, config: Any) -> None:
    """Write every weight of this rank's chunk."""
    with torch.no_grad():
        for placed in place(chunk, config):
            placed.parameter.copy_(cut(whole_weight(placed.name, placed.whole_shape), placed))


def whole_weight(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The whole tensor, FP32, drawn from a generator seeded with the SHA-256 of its name.

    Matrices have deviation 1 / sqrt(fan-in), which keeps activations near one at any width. Embeddings
    share a direction, as trained ones do: it makes the gradients of different tokens agree, so that
    a sum over too few tokens shows in the gradient norm. Norm weights scatter around one, so that a
    misplaced one shows. The decay rates of the gated delta net (`A_log`) are small enough for its
    state to outlive a chunk.
    """
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") >> 1
    generator = torch.Generator().manual_seed(seed)
    if name.endswith("A_log"):
        return torch.rand(shape, generator=generator).mul_(0.45).add_(0.05).log_()
    drawn = torch.randn(shape, generator=generator)
    if len(shape) == 1:
        return drawn.mul_(0.1).add_(1.0)
    if name.startswith("embedding."):
        return drawn.mul_(0.5).add_(torch.randn(shape[1:], generator=generator))
    return drawn.div_(math.sqrt(math.prod(shape[1:])))


def cut(whole: torch.Tensor, placed: Placed) -> torch.Tensor:
    """This rank's slice of the whole tensor."""
    parts = whole.split(placed.parts, placed.dim) if placed.parts else (whole,)
    return torch.cat([part.chunk(placed.ways, placed.dim)[placed.index] for part in parts], placed.dim)


def place(chunk: GPTModel, config: Any) -> Iterator[Placed]:
    """Every parameter of this rank's chunk with its place in the whole model."""
    tp_rank = parallel_state.get_tensor_model_parallel_rank()
    etp_rank: Any = parallel_state.get_expert_tensor_parallel_rank()
    for local_name, parameter in chunk.named_parameters():
        expert = ".local_experts." in local_name
        dim = _sharded_dim(local_name, parameter)
        if dim is None:
            ways, index = 1, 0
        elif expert:
            ways, index = config.expert_tensor_parallel_size, etp_rank
        else:
            ways, index = config.tensor_model_parallel_size, tp_rank
        # With EP 1 the experts of a layer are copied over the TP ranks that ETP does not shard them over.
        copies = config.expert_model_parallel_size == 1 if expert else True
        yield Placed(
            name=_global_name(local_name, chunk, config),
            parameter=parameter,
            dim=dim or 0,
            ways=ways,
            index=index,
            parts=_fused_parts(local_name, config),
            owner=tp_rank < ways if copies else True,
        )


def _sharded_dim(name: str, parameter: Any) -> int | None:
    if not getattr(parameter, "tensor_model_parallel", False):
        return None
    # Megatron marks these three as tensor-parallel but records no dimension; it is the first.
    if name.endswith(("conv1d.weight", "dt_bias", "A_log")):
        return 0
    return parameter.partition_dim


def _fused_parts(name: str, config: Any) -> tuple[int, ...]:
    """Sizes over the whole model of the parts that a fused tensor holds, empty for a plain one."""
    if name.endswith("linear_fc1.weight"):
        shared = ".shared_experts." in name
        width = config.moe_shared_expert_intermediate_size if shared else config.moe_ffn_hidden_size
        return (width, width)
    if name.endswith(("in_proj.weight", "conv1d.weight")):
        heads = config.linear_num_value_heads
        keys = config.linear_key_head_dim * config.linear_num_key_heads
        values = config.linear_value_head_dim * heads
        convolved = (keys, keys, values)
        return convolved if "conv1d" in name else (*convolved, values, heads, heads)
    return ()


def _global_name(name: str, chunk: Any, config: Any) -> str:
    words = name.split(".")
    if words[:2] == ["decoder", "layers"]:
        words[2] = str(chunk.decoder.layers[int(words[2])].layer_number - 1)
    if "local_experts" in words:
        at = words.index("local_experts")
        per_rank = config.num_moe_experts // config.expert_model_parallel_size
        first = parallel_state.get_expert_model_parallel_rank() * per_rank
        words[at : at + 2] = [str(first + int(words[at + 1]))]
    return ".".join(words)
