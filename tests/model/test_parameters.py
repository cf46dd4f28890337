from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
)

from openrecipes.facts import model_configs
from openrecipes.model.config import read_config
from openrecipes.model.parameters import (
    Kind,
    active_layer_parameters,
    active_parameters,
    embedding_weights,
    head_weights,
    layer_weights,
    total_parameters,
    weights,
)
from openrecipes.model.shape import ModelShape

DENSE = {"model_type": "qwen3_5_text", "intermediate_size": 17}
VARIANTS = [
    pytest.param({}, id="moe"),
    pytest.param({"attention_bias": True}, id="with biases"),
    pytest.param({"layer_types": ["full_attention", "linear_attention"] * 2 + ["full_attention"]}, id="layers listed"),
    pytest.param(DENSE, id="dense"),
    pytest.param(DENSE | {"tie_word_embeddings": True}, id="dense, tied head"),
]


def shapes(shape: ModelShape) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for weight in weights(shape):
        found[weight.shape] += weight.count
    return found


def shapes_in_transformers(config: dict[str, Any]) -> Counter[tuple[int, ...]]:
    """The shapes of the model transformers builds from the same config, on the meta device (no memory)."""
    fields = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        if config["model_type"] == "qwen3_5_moe_text":
            model = Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**fields))
        else:
            model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**fields))
    return Counter(tuple(parameter.shape) for parameter in model.parameters())


@pytest.mark.parametrize("changes", VARIANTS)
def test_every_weight_has_the_shape_transformers_gives_it(tiny: dict[str, Any], changes: dict[str, Any]) -> None:
    config = tiny | changes
    assert shapes(read_config(config)) == shapes_in_transformers(config)


def test_the_comparison_notices_a_single_size(tiny: dict[str, Any]) -> None:
    other = tiny | {"linear_value_head_dim": tiny["linear_value_head_dim"] + 1}
    assert shapes(read_config(tiny)) != shapes_in_transformers(other)


def test_the_recorded_model_has_its_published_counts(qwen_397b: dict[str, Any]) -> None:
    shape = read_config(qwen_397b)
    assert total_parameters(shape) == 396_346_350_336
    assert active_parameters(shape) == 16_331_407_360


def test_the_active_count_agrees_with_the_sum_written_out(qwen_397b: dict[str, Any]) -> None:
    gated_delta_net = 45 * (4096 * (12288 + 8192 + 128) + 12288 * 4 + 8192 * 4096)
    attention = 15 * (4096 * (16384 + 1024) + 8192 * 4096)
    experts = 60 * (4096 * 512 + 11 * 3 * 4096 * 1024 + 4096)
    head = 4096 * 248320
    assert active_parameters(read_config(qwen_397b)) == gated_delta_net + attention + experts + head


@pytest.mark.parametrize("field", ["num_experts_per_tok", "shared_expert_intermediate_size", "head_dim", "vocab_size"])
def test_the_active_count_notices_a_changed_size(qwen_397b: dict[str, Any], field: str) -> None:
    text = qwen_397b["text_config"]
    other = qwen_397b | {"text_config": text | {field: text[field] * 2}}
    assert active_parameters(read_config(other)) != 16_331_407_360


def test_active_leaves_out_embedding_norms_and_idle_experts(tiny: dict[str, Any]) -> None:
    shape = read_config(tiny)
    left_out = sum(w.elements * w.count for w in weights(shape) if len(w.shape) == 1 or w.kind is Kind.EMBEDDING)
    routed = sum(w.elements * w.count for w in weights(shape) if w.kind is Kind.ROUTED_EXPERTS)
    assert active_parameters(shape) == total_parameters(shape) - left_out - routed * 9 // 12


@given(layers=st.integers(1, 12), interval=st.integers(1, 6), top_k=st.integers(1, 8))
def test_the_whole_is_the_sum_of_its_layers(layers: int, interval: int, top_k: int) -> None:
    text = dict(model_configs()["Qwen3.5-397B-A17B"].config["text_config"])
    sizes = {"num_hidden_layers": layers, "full_attention_interval": interval, "num_experts_per_tok": top_k}
    shape = read_config(text | sizes)
    outside = (*embedding_weights(shape), *head_weights(shape))
    inside = [weight for kind in shape.layer_types for weight in layer_weights(shape, kind)]
    assert total_parameters(shape) == sum(weight.elements for weight in (*outside, *inside))
    head = shape.vocab_size * shape.hidden_size
    assert active_parameters(shape) == head + sum(active_layer_parameters(shape, kind) for kind in shape.layer_types)
