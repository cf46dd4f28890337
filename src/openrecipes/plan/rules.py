"""Which layouts Megatron-Core 0.16.1, the rehearsal engine's trainer, accepts.

A rule looks at one layout and says what breaks, with the numbers, and what would mend it. Every rule is
an error of Megatron-Core's own, at one of four moments: when the configuration is made
(`transformer_config.py`, `model_parallel_config.py`), when the process groups are made
(`parallel_state.py`), when the model is built, or in the first step. The file that refuses is named beside
each rule; all are https://github.com/NVIDIA/Megatron-LM/tree/core_v0.16.1/megatron/core, read 2026-12-01.

A warning (L2xx) is about a layout that trains, but not as it should. Warnings remove no layout: a trial
decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from openrecipes.errors import UsageError
from openrecipes.model.shape import DenseMlp, LayerType, ModelShape
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.parallel import Layout

MEGATRON_CORE = "0.16.1"
_SOURCE = f"https://github.com/NVIDIA/Megatron-LM/tree/core_v{MEGATRON_CORE}/megatron/core"
_EXPERT_GRADIENTS = "https://github.com/NVIDIA/Megatron-LM/pull/5916"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Violation:
    """One rule that a layout breaks (or, for L2xx, one thing to be warned of)."""

    id: str
    message: str
    remedy: str
    url: str

    def __str__(self) -> str:
        return f"{self.id}: {self.message}; {self.remedy}"


Broken = tuple[str, str] | None
"""What a rule answers: the message and the remedy, or None."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule of the trainer.

    `field` is the recipe's field to mend, `file` where Megatron-Core enforces the rule (or a full URL),
    `engines` the trainers it holds for. `twin` is the check that already answers it for an entry.
    """

    id: str
    title: str
    field: str
    file: str
    look: Callable[[Layout, ModelShape, PlanWorkload], Broken]
    engines: tuple[str, ...] = ("rehearsal",)
    twin: str | None = None

    @property
    def url(self) -> str:
        """Where the rule can be read."""
        return self.file if self.file.startswith("https:") else f"{_SOURCE}/{self.file}"


def violations(layout: Layout, model: ModelShape, workload: PlanWorkload) -> tuple[Violation, ...]:
    """Every rule that the layout breaks, in the order of their ids; empty for a legal layout."""
    return _answers(RULES, layout, model, workload)


def warnings(layout: Layout, model: ModelShape, workload: PlanWorkload) -> tuple[Violation, ...]:
    """What is known to go wrong with a layout that the trainer accepts; empty for most."""
    return _answers(WARNINGS, layout, model, workload)


def require_legal(layout: Layout, model: ModelShape, workload: PlanWorkload) -> None:
    """Refuse an illegal layout.

    Raises:
        UsageError: with every rule it breaks and what would mend it.
    """
    if broken := violations(layout, model, workload):
        reasons = "\n".join(f"  {violation}" for violation in broken)
        raise UsageError(f"layout `{layout}` cannot train on {workload.ranks} ranks:\n{reasons}")


def _answers(
    rules: tuple[Rule, ...], layout: Layout, model: ModelShape, workload: PlanWorkload
) -> tuple[Violation, ...]:
    return tuple(
        Violation(id=rule.id, message=broken[0], remedy=broken[1], url=rule.url)
        for rule in rules
        if (broken := rule.look(layout, model, workload))
    )


def _dense_world(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    product = layout.tp * layout.pp * layout.cp
    if workload.ranks % product == 0:
        return None
    return (
        f"{workload.ranks} ranks are no multiple of TP {layout.tp} x PP {layout.pp} x CP {layout.cp} = {product}",
        f"choose sizes whose product is one of {_divisors_text(workload.ranks)}, or a multiple of {product} ranks",
    )


def _expert_world(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    product = layout.etp * layout.ep * layout.pp
    if workload.ranks % product == 0:
        return None
    return (
        f"{workload.ranks} ranks are no multiple of ETP {layout.etp} x EP {layout.ep} x PP {layout.pp} = {product}",
        f"choose sizes whose product is one of {_divisors_text(workload.ranks)} (ETP left out means ETP = TP)",
    )


def _layers_per_stage(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if model.layers % layout.pp == 0:
        return None
    return (
        f"{model.layers} layers are no multiple of PP {layout.pp}",
        f"PP must be one of {_divisors_text(model.layers)}",
    )


def _layers_per_chunk(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    per_stage, rest = divmod(model.layers, layout.pp)
    if rest or per_stage % layout.vpp == 0:
        return None  # L103 speaks of an uneven split
    return (
        f"{per_stage} layers of a stage are no multiple of VPP {layout.vpp}",
        f"with PP {layout.pp} VPP must be one of {_divisors_text(per_stage)}",
    )


def _vpp_needs_pp(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if layout.vpp == 1 or layout.pp > 1:
        return None
    return f"VPP {layout.vpp} interleaves pipeline stages, PP is {layout.pp}", "use VPP 1, or PP 2 or more"


def _interleaved_groups(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if layout.vpp == 1 or layout.pp == 1 or not _batch_divides(layout, workload):
        return None  # L105, L101 and L114 speak of those
    microbatches = layout.microbatches(workload.ranks, workload.global_batch)
    if microbatches % layout.pp == 0:
        return None
    rows = layout.pp * layout.dp(workload.ranks) * layout.rows_per_microbatch
    return (
        f"the interleaved schedule (VPP {layout.vpp}) takes micro-batches in groups of PP {layout.pp}, "
        f"a rank has {microbatches}",
        f"use VPP 1, or a global batch that is a multiple of {rows} rows",
    )


def _heads(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if model.attention.heads % layout.tp == 0:
        return None
    return (
        f"{model.attention.heads} attention heads are no multiple of TP {layout.tp}",
        f"TP must be one of {_divisors_text(model.attention.heads)}",
    )


def _query_groups(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if model.attention.kv_heads % layout.tp == 0 or layout.tp % model.attention.kv_heads == 0:
        return None
    return (
        f"{model.attention.kv_heads} key/value heads are neither a multiple nor a divisor of TP {layout.tp}",
        f"choose a TP that divides {model.attention.kv_heads} or is a multiple of it",
    )


def _linear_heads(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    gdn = model.gated_delta_net
    if not _has_linear_attention(model) or (gdn.key_heads % layout.tp == 0 and gdn.value_heads % layout.tp == 0):
        return None
    return (
        f"gated delta net: {gdn.key_heads} key heads and {gdn.value_heads} value heads must both be multiples of "
        f"TP {layout.tp}",
        "choose a TP that divides both",
    )


def _experts(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if layout.ep == 1:
        return None
    if not model.experts:
        return f"EP is {layout.ep}, the model has no experts", "use EP 1"
    if model.experts.experts % layout.ep == 0:
        return None
    return (
        f"{model.experts.experts} experts are no multiple of EP {layout.ep}",
        f"EP must be one of {_divisors_text(model.experts.experts)}",
    )


def _expert_ffn(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if not model.experts or model.experts.width % layout.etp == 0:
        return None
    return (
        f"the experts' FFN width {model.experts.width} is no multiple of ETP {layout.etp}",
        f"ETP must be one of {_divisors_text(model.experts.width)}",
    )


def _ffn(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    part, width = (
        ("the", model.mlp.width) if isinstance(model.mlp, DenseMlp) else ("the shared expert's", model.mlp.shared_width)
    )
    if width % layout.tp == 0:
        return None
    return (
        f"{part} FFN width {width} is no multiple of TP {layout.tp}",
        f"TP must be one of {_divisors_text(width)}",
    )


def _vocabulary(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if model.vocab_size % layout.tp == 0:
        return None
    return (
        f"the vocabulary of {model.vocab_size} is no multiple of TP {layout.tp}",
        f"pad it to {-(-model.vocab_size // layout.tp) * layout.tp}, or choose another TP",
    )


def _batch(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if workload.ranks % (layout.tp * layout.pp * layout.cp) or _batch_divides(layout, workload):
        return None  # without a whole DP, L101 speaks
    dp = layout.dp(workload.ranks)
    rows = dp * layout.rows_per_microbatch
    return (
        f"global batch {workload.global_batch} is no multiple of DP {dp} x {layout.rows_per_microbatch} rows per "
        f"micro-batch = {rows}",
        f"use a global batch that is a multiple of {rows}, or a layout with a smaller DP",
    )


def _experts_need_sequence_parallel(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if not model.experts or layout.tp == 1 or layout.sp:
        return None
    return f"experts with TP {layout.tp} do not train without sequence parallel", "use sp=true"


def _sp_needs_tp(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if not layout.sp or layout.tp > 1:
        return None
    return "sequence parallel cuts a row over TP, which is 1", "use sp=false, or TP 2 or more"


def _row_tokens(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if not layout.sp or workload.row_tokens % layout.tp == 0:
        return None
    return (
        f"sequence parallel cuts {workload.row_tokens} row tokens into TP {layout.tp} equal parts",
        f"use a row length that is a multiple of {layout.tp}",
    )


def _context_parallel(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if layout.cp == 1:
        return None
    if _has_linear_attention(model):
        return (
            f"CP is {layout.cp}, gated delta net has no context parallel in megatron-core {MEGATRON_CORE}",
            "use CP 1",
        )
    return f"CP is {layout.cp}, the rehearsal engine does not cut rows", "use CP 1"


def _expert_gradient_group(layout: Layout, model: ModelShape, workload: PlanWorkload) -> Broken:
    if not model.experts or layout.ep > 1 or layout.etp == layout.tp:
        return None
    return (
        f"experts with EP 1 and ETP {layout.etp} != TP {layout.tp}: megatron-core {MEGATRON_CORE} reduces expert "
        "gradients over the data-parallel group instead of the expert data-parallel one, and they come out wrong",
        "use ETP = TP, EP 2 or more, or a release with the fix",
    )


def _has_linear_attention(model: ModelShape) -> bool:
    return LayerType.LINEAR_ATTENTION in model.layer_types


def _batch_divides(layout: Layout, workload: PlanWorkload) -> bool:
    product = layout.tp * layout.pp * layout.cp
    if workload.ranks % product:
        return False
    return workload.global_batch % (workload.ranks // product * layout.rows_per_microbatch) == 0


def _divisors_text(number: int) -> str:
    shown = [str(d) for d in range(1, min(number, 64) + 1) if number % d == 0]
    return ", ".join(shown) + (", ..." if number > 64 else "")


_CONFIG = "transformer/transformer_config.py"
_BLOCK = "transformer/transformer_block.py"
_LAUNCHERS = ("rehearsal", "slime", "megatron")

RULES = (
    Rule("L101", "ranks are a multiple of TP x PP x CP", "layout", "parallel_state.py", _dense_world, twin="A101"),
    Rule("L102", "ranks are a multiple of ETP x EP x PP", "layout", "parallel_state.py", _expert_world, twin="A102"),
    Rule("L103", "layers are a multiple of PP", "layout.pp", _BLOCK, _layers_per_stage, twin="A111"),
    Rule("L104", "layers per stage are a multiple of VPP", "layout.vpp", _BLOCK, _layers_per_chunk, twin="A111"),
    Rule("L105", "VPP needs PP", "layout.vpp", "parallel_state.py", _vpp_needs_pp, engines=_LAUNCHERS),
    Rule(
        "L106",
        "interleaved micro-batches come in groups of PP",
        "layout.vpp",
        "pipeline_parallel/schedules.py",
        _interleaved_groups,
        engines=("rehearsal", "megatron"),  # slime makes its dynamic batches fit
    ),
    Rule("L107", "attention heads are a multiple of TP", "layout.tp", _CONFIG, _heads, twin="A111"),
    Rule("L108", "key/value heads fit TP", "layout.tp", _CONFIG, _query_groups, twin="A111"),
    Rule("L109", "gated-delta-net heads are a multiple of TP", "layout.tp", _CONFIG, _linear_heads, twin="A111"),
    Rule("L110", "experts are a multiple of EP", "layout.ep", "transformer/moe/moe_layer.py", _experts, twin="A111"),
    Rule(
        "L111",
        "the experts' FFN is a multiple of ETP",
        "layout.etp",
        "tensor_parallel/layers.py",
        _expert_ffn,
        twin="A111",
    ),
    Rule("L112", "the FFN is a multiple of TP", "layout.tp", "tensor_parallel/layers.py", _ffn, engines=_LAUNCHERS),
    # Launchers pad the vocabulary; the rehearsal engine takes it as it is.
    Rule("L113", "the vocabulary is a multiple of TP", "layout.tp", "tensor_parallel/utils.py", _vocabulary),
    Rule(
        "L114",
        "the global batch is whole micro-batches",
        "workload.global_batch",
        "num_microbatches_calculator.py",
        _batch,
        twin="A103",
    ),
    Rule(
        "L115",
        "experts with TP need sequence parallel",
        "layout.sequence_parallel",
        "transformer/moe/moe_layer.py",
        _experts_need_sequence_parallel,
        engines=_LAUNCHERS,
    ),
    # Launchers switch it off without a word.
    Rule("L116", "sequence parallel needs TP", "layout.sequence_parallel", "model_parallel_config.py", _sp_needs_tp),
    # Launchers pad a micro-batch.
    Rule(
        "L117", "sequence parallel cuts rows evenly", "workload.row_tokens", "tensor_parallel/mappings.py", _row_tokens
    ),
    Rule("L118", "a rehearsal has no context parallel", "layout.cp", _CONFIG, _context_parallel),
)
"""Rules that the trainer enforces: a layout that breaks one does not train."""

WARNINGS = (
    Rule(
        "L201",
        "expert gradients are reduced over the right group",
        "layout.etp",
        _EXPERT_GRADIENTS,
        _expert_gradient_group,
        engines=_LAUNCHERS,
    ),
)
"""Layouts that train, wrongly: they stay among the trials, which show it."""
