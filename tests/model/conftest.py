from __future__ import annotations

from typing import Any

import pytest

from openrecipes.facts import model_configs


@pytest.fixture
def tiny() -> dict[str, Any]:
    """A small qwen3_5_moe_text config whose sizes are all different where they can be."""
    return {
        "model_type": "qwen3_5_moe_text",
        "vocab_size": 160,
        "hidden_size": 24,
        "num_hidden_layers": 5,
        "full_attention_interval": 4,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 10,
        "attention_bias": False,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 7,
        "linear_value_head_dim": 9,
        "linear_conv_kernel_dim": 3,
        "num_experts": 12,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 11,
        "shared_expert_intermediate_size": 13,
        "tie_word_embeddings": False,
    }


@pytest.fixture
def qwen_397b() -> dict[str, Any]:
    """The recorded config of Qwen3.5-397B-A17B."""
    return dict(model_configs()["Qwen3.5-397B-A17B"].config)
