"""A toy Qwen3.5-MoE built from Megatron-Core's own layers, from an HF `config.json`.

What runs is Megatron-Core: gated delta net and full attention 3:1, output gate, norms of query and key,
partial rotary embedding, a mixture of experts with a gated shared expert in every layer, untied head.

Where it differs from the released model, because Megatron-Core 0.16.1 has no form that runs without
Transformer Engine, or because a text rehearsal has no use for it:

* Norm weights multiply as they are; the released model stores them minus one. Same function, other storage.
* The layer specification puts PyTorch's RMSNorm in front of each projection instead of the fused
  norm-and-projection of the stock gated-delta-net specification.
* Rotary positions are one-dimensional. The released model splits them in three for images; on text the
  three are equal, and so is the result.
* No vision tower, no multi-token prediction layer, no auxiliary load-balancing loss.
* The example's `rms_norm_eps` is 1e-4, not 1e-6. The gated norm of a narrow head divides by outputs
  near zero; with 1e-6 a single token decides the gradient norm and rounding grows a thousandfold in eight steps.
* Experts run one after the other, not as one grouped matrix product.

slime replaces Megatron-Core's gated delta net by a wrapper that is not sharded over TP: this engine
rehearses Megatron-Core's layer, which is.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.fusions.fused_bias_dropout import get_bias_dropout_add
from megatron.core.models.backends import LocalSpecProvider
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.ssm.gated_delta_net import GatedDeltaNet, GatedDeltaNetSubmodules
from megatron.core.transformer.enums import AttnBackend
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.core.transformer.transformer_layer import (
    TransformerLayer,
    TransformerLayerSubmodules,
    get_transformer_layer_offset,
)

from openrecipes.engines.rehearsal import Recompute
from openrecipes.errors import ContentError, Finding, Severity
from openrecipes.recipe.parallel import Layout

ARCHITECTURES = ("qwen3_5_moe", "qwen3_5_moe_text")


def read_text_config(path: Path) -> Mapping[str, Any]:
    """The text part of an HF `config.json` of a Qwen3.5-MoE.

    Raises:
        ContentError: the file is not JSON, or is of another architecture.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        architecture = found["model_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unusable(path, f"not a readable HF config.json ({type(error).__name__}: {error})") from None
    if architecture not in ARCHITECTURES:
        raise _unusable(path, f"model_type is {architecture!r}")
    return found.get("text_config", found)


def _unusable(path: Path, message: str) -> ContentError:
    remedy = f"give the config.json of a model whose model_type is one of {', '.join(ARCHITECTURES)}"
    return ContentError([Finding(id="R001", severity=Severity.ERROR, message=message, remedy=remedy, path=path)])


def transformer_config(text: Mapping[str, Any], layout: Layout, recompute: Recompute | None) -> TransformerConfig:
    """Megatron's configuration of the toy under a layout, in FP32 and without dropout.

    Raises whatever Megatron-Core raises about a combination it refuses.
    """
    interleaved = layout.vpp > 1
    recomputed: dict[str, Any] = {}
    if recompute:
        recomputed = {f"recompute_{name}": value for name, value in dataclasses.asdict(recompute).items()}
    return TransformerConfig(
        num_layers=text["num_hidden_layers"],
        hidden_size=text["hidden_size"],
        ffn_hidden_size=text["moe_intermediate_size"],
        num_attention_heads=text["num_attention_heads"],
        num_query_groups=text["num_key_value_heads"],
        kv_channels=text["head_dim"],
        attention_output_gate=True,
        qk_layernorm=True,
        experimental_attention_variant="gated_delta_net",
        linear_attention_freq=text["full_attention_interval"],
        linear_conv_kernel_dim=text["linear_conv_kernel_dim"],
        linear_key_head_dim=text["linear_key_head_dim"],
        linear_value_head_dim=text["linear_value_head_dim"],
        linear_num_key_heads=text["linear_num_key_heads"],
        linear_num_value_heads=text["linear_num_value_heads"],
        num_moe_experts=text["num_experts"],
        moe_router_topk=text["num_experts_per_tok"],
        moe_ffn_hidden_size=text["moe_intermediate_size"],
        moe_shared_expert_intermediate_size=text["shared_expert_intermediate_size"],
        moe_shared_expert_gate=True,
        moe_router_load_balancing_type="none",
        moe_router_dtype="fp32",
        moe_token_dispatcher_type="alltoall",
        normalization="RMSNorm",
        layernorm_epsilon=text["rms_norm_eps"],
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        params_dtype=torch.float32,
        pipeline_dtype=torch.float32,
        calculate_per_token_loss=True,
        attention_backend=AttnBackend.unfused,
        tensor_model_parallel_size=layout.tp,
        pipeline_model_parallel_size=layout.pp,
        virtual_pipeline_model_parallel_size=layout.vpp if interleaved else None,
        context_parallel_size=layout.cp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp,
        sequence_parallel=layout.sp,
        # Interleaving over two stages is wrong without overlap, and overlap excludes batched messages.
        overlap_p2p_comm=interleaved,
        batch_p2p_comm=not interleaved,
        **recomputed,
        # Kernels that need a GPU.
        bias_activation_fusion=False,
        gradient_accumulation_fusion=False,
        masked_softmax_fusion=False,
        persist_layer_norm=False,
        # Every weight is written over afterwards (see `weights`), but only initialisation marks it as sharded.
        use_cpu_initialization=True,
        deallocate_pipeline_outputs=False,
    )


def build_chunks(text: Mapping[str, Any], config: TransformerConfig, row_tokens: int) -> list[GPTModel]:
    """This rank's part of the model: one chunk, or one for each virtual pipeline stage."""
    rope = text["rope_parameters"]
    stages = config.virtual_pipeline_model_parallel_size
    return [
        GPTModel(
            config,
            _block_spec(config, stage),
            vocab_size=text["vocab_size"],
            max_sequence_length=row_tokens,
            pre_process=parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=stage),
            post_process=parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=stage),
            share_embeddings_and_output_weights=False,
            position_embedding_type="rope",
            rotary_percent=rope["partial_rotary_factor"],
            rotary_base=rope["rope_theta"],
            vp_stage=stage,
        )
        for stage in (range(stages) if stages else (None,))
    ]


def _block_spec(config: Any, stage: int | None) -> Any:
    first = get_transformer_layer_offset(config, vp_stage=stage)
    count = get_num_layers_to_build(config, vp_stage=stage)
    bias_dropout_add: Any = get_bias_dropout_add
    backend: Any = LocalSpecProvider()
    full: Any = get_gpt_layer_local_spec(num_experts=config.num_moe_experts, qk_layernorm=True, normalization="RMSNorm")
    linear = ModuleSpec(
        module=TransformerLayer,
        submodules=TransformerLayerSubmodules(
            input_layernorm=backend.layer_norm(rms_norm=True),
            self_attention=ModuleSpec(
                module=GatedDeltaNet,
                submodules=GatedDeltaNetSubmodules(
                    in_proj=backend.column_parallel_linear(),
                    out_norm=backend.layer_norm(rms_norm=True),
                    out_proj=backend.row_parallel_linear(),
                ),
            ),
            self_attn_bda=bias_dropout_add,
            pre_mlp_layernorm=backend.layer_norm(rms_norm=True),
            mlp=full.submodules.mlp,
            mlp_bda=bias_dropout_add,
        ),
    )
    every = config.linear_attention_freq
    return TransformerBlockSubmodules(
        layer_specs=[full if (layer + 1) % every == 0 else linear for layer in range(first, first + count)],
        layer_norm=backend.layer_norm(rms_norm=True),
    )
