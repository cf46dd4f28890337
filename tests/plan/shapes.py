"""Shapes that the planning tests share."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from openrecipes.model.shape import DenseMlp, Experts, FullAttention, GatedDeltaNet, LayerType, ModelShape
from openrecipes.plan.workload import PlanWorkload

LINEAR, FULL = LayerType.LINEAR_ATTENTION, LayerType.FULL_ATTENTION

TOY = ModelShape(
    model_type="qwen3_5_moe_text",
    vocab_size=4096,
    hidden_size=64,
    layer_types=(LINEAR, LINEAR, LINEAR, FULL),
    attention=FullAttention(heads=8, kv_heads=4, head_dim=16),
    gated_delta_net=GatedDeltaNet(key_heads=4, value_heads=8, key_head_dim=16, value_head_dim=16, conv_kernel=4),
    mlp=Experts(experts=8, top_k=2, width=32, shared_width=32),
)
DENSE = dataclasses.replace(TOY, mlp=DenseMlp(width=96))
WORK = PlanWorkload(ranks=4, global_batch=8, row_tokens=64)


@st.composite
def shapes(draw) -> ModelShape:
    """Models whose sizes have many divisors, and sometimes awkward ones."""
    size = st.sampled_from([1, 2, 3, 4, 6, 8, 12])
    groups = draw(size)
    keys = draw(size)
    moe = draw(st.booleans())
    experts = Experts(experts=draw(size), top_k=1, width=4 * draw(size), shared_width=4 * draw(size))
    return ModelShape(
        model_type="qwen3_5_moe_text",
        vocab_size=12 * draw(size),
        hidden_size=16,
        layer_types=tuple(draw(st.lists(st.sampled_from([LINEAR, FULL]), min_size=1, max_size=12))),
        attention=FullAttention(heads=groups * draw(size), kv_heads=groups, head_dim=4),
        gated_delta_net=GatedDeltaNet(
            key_heads=keys, value_heads=keys * draw(size), key_head_dim=4, value_head_dim=4, conv_kernel=2
        ),
        mlp=experts if moe else DenseMlp(width=4 * draw(size)),
    )


@st.composite
def workloads(draw) -> PlanWorkload:
    """Steps over 1 to 24 ranks."""
    return PlanWorkload(
        ranks=draw(st.integers(1, 24)),
        global_batch=draw(st.sampled_from([4, 8, 12, 24])),
        row_tokens=draw(st.sampled_from([12, 16, 24])),
        recompute=draw(st.booleans()),
    )
