"""How the model was spread over the GPUs.

`LayoutFields` is what an entry states, prose included; `openrecipes.recipe.parallel.Layout` is the
bare set of parallel sizes that the planner works with.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from openrecipes.recipe.fields.kinds import Fields, Flag, Size, Text


class RecomputeFields(Fields):
    """Which activations are computed again in the backward pass instead of kept, in Megatron's terms."""

    granularity: Literal["full", "selective"] = Field(examples=["full"])
    """`full` recomputes whole layers, `selective` only chosen parts of each."""

    method: Literal["uniform", "block"] | None = Field(examples=["uniform"])
    """How layers are grouped under `full`; null under `selective`."""

    num_layers: Size | None = Field(examples=[1], json_schema_extra={"unit": "layers"})
    """Layers in a group (`uniform`), or layers recomputed per stage (`block`); null under `selective`."""


class LayoutFields(Fields):
    """Parallel sizes and the settings that go with them."""

    label: Text = Field(examples=["TP2 PP6 EP8 DP4"])
    """Short text for tables: the sizes above 1."""

    summary: Text = Field(examples=["TP 2, PP 6, EP 8, DP 4 with sequence parallel and full recompute"])
    """The layout in one sentence."""

    highlights: Text | None = Field(examples=["max 8,192 tokens/GPU, no offload"])
    """What sets this layout apart from its neighbours."""

    tp: Size = Field(examples=[2], json_schema_extra={"unit": "ranks"})
    """Tensor-parallel size (TP)."""

    pp: Size = Field(examples=[6], json_schema_extra={"unit": "stages"})
    """Pipeline-parallel size (PP)."""

    vpp: Size = Field(examples=[1], json_schema_extra={"unit": "chunks per stage"})
    """Virtual pipeline chunks per stage (VPP); 1 is a pipeline without interleaving."""

    cp: Size = Field(examples=[1], json_schema_extra={"unit": "ranks"})
    """Context-parallel size (CP)."""

    ep: Size = Field(examples=[8], json_schema_extra={"unit": "ranks"})
    """Expert-parallel size (EP)."""

    etp: Size = Field(examples=[1], json_schema_extra={"unit": "ranks"})
    """Expert tensor-parallel size (ETP)."""

    dp: Size = Field(examples=[4], json_schema_extra={"unit": "ranks"})
    """Data-parallel size: DP = GPUs / (TP * PP * CP)."""

    sequence_parallel: Flag = Field(examples=[True])
    """Whether activations outside the TP regions are split along the sequence."""

    layer_split: tuple[Size, ...] | None = Field(
        examples=[[10, 10, 10, 10, 10, 10]], json_schema_extra={"unit": "layers"}
    )
    """Layers of each pipeline stage, first to last; null for an even split."""

    max_tokens_per_gpu: Size | None = Field(examples=[8192], json_schema_extra={"unit": "tokens"})
    """Bound on the tokens of one micro-batch on one GPU; null where the trainer has none."""

    rows_per_microbatch: Size = Field(examples=[1], json_schema_extra={"unit": "rows"})
    """Rows in one micro-batch of one data-parallel rank."""

    recompute: RecomputeFields | None
    """Recompute settings; null for none."""

    offload: Text | None = Field(examples=["optimizer state to host memory"])
    """What is kept in host memory; null for nothing."""

    dispatcher: Literal["allgather", "alltoall", "flex"] | None = Field(examples=["alltoall"])
    """Megatron's MoE token dispatcher; null for a dense model."""
