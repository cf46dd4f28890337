from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.facts import model_configs
from openrecipes.model.config import read_config
from openrecipes.model.flops import (
    forward_flops_per_token,
    head_forward_flops_per_token,
    layer_forward_flops_per_token,
    training_flops_per_token,
)
from openrecipes.model.parameters import active_parameters
from openrecipes.model.shape import LayerType

SHAPE = read_config(model_configs()["Qwen3.5-397B-A17B"].config)


def test_without_context_a_token_costs_two_flops_a_weight_and_the_state() -> None:
    scores = 15 * 2 * 2 * 32 * 256  # a row of one token: one score and one value per head and element
    state = 45 * 6 * 64 * 128 * 128
    assert forward_flops_per_token(SHAPE, 1) == 2 * active_parameters(SHAPE) + scores + state


def test_the_attention_term_is_the_mean_over_a_causal_row() -> None:
    row = 8
    by_hand = sum(4 * 32 * 256 * (position + 1) for position in range(row)) / row
    with_context = layer_forward_flops_per_token(SHAPE, LayerType.FULL_ATTENTION, row)
    without = layer_forward_flops_per_token(SHAPE, LayerType.FULL_ATTENTION, 1) - 4 * 32 * 256
    assert with_context - without == by_hand


@given(row_tokens=st.integers(1, 10**6))
def test_only_full_attention_grows_with_the_row(row_tokens: int) -> None:
    def grows(kind: LayerType) -> int:
        longer = layer_forward_flops_per_token(SHAPE, kind, row_tokens + 1)
        return longer - layer_forward_flops_per_token(SHAPE, kind, row_tokens)

    assert grows(LayerType.FULL_ATTENTION) == 2 * 32 * 256
    assert grows(LayerType.LINEAR_ATTENTION) == 0


@given(row_tokens=st.integers(1, 10**6))
def test_the_model_is_the_sum_of_its_layers_and_training_three_times_it(row_tokens: int) -> None:
    layers = sum(layer_forward_flops_per_token(SHAPE, kind, row_tokens) for kind in SHAPE.layer_types)
    forward = forward_flops_per_token(SHAPE, row_tokens)
    assert forward == layers + head_forward_flops_per_token(SHAPE)
    assert training_flops_per_token(SHAPE, row_tokens) == 3 * forward


def test_a_tied_head_does_the_same_work(tiny: dict[str, Any]) -> None:
    tied = read_config(tiny | {"tie_word_embeddings": True})
    assert head_forward_flops_per_token(tied) == head_forward_flops_per_token(read_config(tiny)) == 2 * 24 * 160


@pytest.mark.parametrize("top_k", [1, 10])
def test_routed_experts_cost_as_many_as_are_chosen(tiny: dict[str, Any], top_k: int) -> None:
    def work(k: int) -> int:
        return layer_forward_flops_per_token(
            read_config(tiny | {"num_experts_per_tok": k}), LayerType.LINEAR_ATTENTION, 1
        )

    assert work(top_k + 1) - work(top_k) == 2 * 3 * 24 * 11
