"""A first cost model: how long one optimizer step takes on CPU ranks.

    t(stage)  = work and messages of one micro-batch on one rank of the stage, in seconds of a core
    pipeline  = (m + (PP - 1) / VPP) * max t            m = micro-batches per DP rank
    cores     = m * (sum of t over all ranks) / cores   what the cores need for it all
    step      = max(pipeline, cores) + gradient exchange

so that the bubble is (PP - 1) / (m * VPP + PP - 1) of the pipeline's time (Narayanan et al. 2021,
https://arxiv.org/abs/2104.04473, section 2.2), and costs nothing where other ranks want the idle core.

The model ranks layouts. Its absolute times are assumptions until one measured trial has scaled them
(`calibrate`). Left out: the optimizer's arithmetic, memory bandwidth, routing imbalance, start-up.
"""

from __future__ import annotations

import dataclasses
import math

from openrecipes.errors import UsageError
from openrecipes.model.flops import head_forward_flops_per_token, layer_forward_flops_per_token
from openrecipes.model.shape import LayerType, ModelShape
from openrecipes.plan.traffic import Traffic, gradient_traffic, layer_traffic, stage_boundary_traffic
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.parallel import Layout

_FORWARD_AND_BACKWARD = 3  # the backward pass computes gradients of inputs and of weights


@dataclasses.dataclass(frozen=True, kw_only=True)
class CpuCosts:
    """What work costs on one core. Every figure is an assumption of the order of magnitude.

    They were measured on 2 cores of an AMD EPYC with torch 2.13 and gloo over loopback, 2026-12-01.
    At a toy's width the calls outweigh the arithmetic, which is why they have prices of their own.
    """

    flops_per_s: float = 6e10
    """FP32 FLOP/s of one core in matrix products 64 to 256 wide."""
    full_attention_call_s: float = 1.5e-3
    """Seconds of one forward pass of a full-attention layer and its router, apart from arithmetic."""
    linear_attention_call_s: float = 4e-3
    """The same for a gated-delta-net layer in pure torch, which loops inside its chunks."""
    expert_call_s: float = 1.5e-4
    """Seconds of calling one expert of the rank, apart from arithmetic."""
    message_s: float = 5e-4
    """Seconds of a core for one message or collective call, apart from its bytes."""
    bytes_per_s: float = 5e8
    """Bytes per second of a core that sends or receives over loopback."""

    def seconds(self, traffic: Traffic) -> float:
        """Seconds of a core for a rank's traffic."""
        return traffic.messages * self.message_s + traffic.bytes / self.bytes_per_s


_ASSUMED = CpuCosts()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the model says of one layout.

    `step_time_s` and `tokens_per_s` (all ranks together) are relative until `scaled`. `bubble` is
    the idle share of the pipeline, `imbalance` how much longer the slowest stage takes than the mean
    one, both as fractions. `messages` and `bytes` count one step of the busiest rank.
    """

    layout: Layout
    step_time_s: float
    tokens_per_s: float
    bubble: float
    imbalance: float
    messages: float
    bytes: float
    limited_by_cores: bool

    def scaled(self, factor: float) -> Prediction:
        """The same prediction with its times multiplied by what `calibrate` returned."""
        return dataclasses.replace(self, step_time_s=self.step_time_s * factor, tokens_per_s=self.tokens_per_s / factor)


def predict(
    layout: Layout, model: ModelShape, workload: PlanWorkload, *, cores: int, costs: CpuCosts = _ASSUMED
) -> Prediction:
    """Predict one step of a legal layout (`rules.violations` is empty for it) whose ranks share `cores`."""
    microbatches = layout.microbatches(workload.ranks, workload.global_batch)
    stages = [_stage(layout, model, workload, costs, stage) for stage in range(layout.pp)]
    slowest, mean = max(stages), sum(stages) / layout.pp
    pipeline_s = (microbatches + (layout.pp - 1) / layout.vpp) * slowest
    cores_s = microbatches * mean * workload.ranks / cores

    per_microbatch = _traffic(layout, model, workload, model.layers // layout.pp)
    gradients = gradient_traffic(layout, model, workload.ranks, _stage_layers(layout, model, 0))
    # Every rank exchanges gradients at once; with more ranks than cores they wait for each other.
    exchange_s = costs.seconds(gradients) * max(1.0, workload.ranks / cores)
    traffic = per_microbatch * microbatches + gradients

    step_time_s = max(pipeline_s, cores_s) + exchange_s
    return Prediction(
        layout=layout,
        step_time_s=step_time_s,
        tokens_per_s=workload.global_batch * workload.row_tokens / step_time_s,
        bubble=(layout.pp - 1) / (microbatches * layout.vpp + layout.pp - 1),
        imbalance=slowest / mean - 1,
        messages=traffic.messages,
        bytes=traffic.bytes,
        limited_by_cores=cores_s > pipeline_s,
    )


def calibrate(prediction: Prediction, measured_step_time_s: float) -> float:
    """Measured over predicted step time: the factor for every other prediction's times.

    Raises:
        UsageError: the measured time is no positive number of seconds.
    """
    if not (math.isfinite(measured_step_time_s) and measured_step_time_s > 0):
        raise UsageError(f"measured step time is {measured_step_time_s}, expected a positive number of seconds")
    return measured_step_time_s / prediction.step_time_s


def _stage(layout: Layout, model: ModelShape, workload: PlanWorkload, costs: CpuCosts, stage: int) -> float:
    """Seconds of a core that one rank of a stage needs for one micro-batch, forward and backward."""
    tokens = layout.rows_per_microbatch * workload.row_tokens
    passes = _FORWARD_AND_BACKWARD + workload.recompute
    layers = _stage_layers(layout, model, stage)
    seconds = costs.seconds(_traffic(layout, model, workload, len(layers)))
    for layer_type in layers:
        flops = tokens / layout.tp * layer_forward_flops_per_token(model, layer_type, workload.row_tokens)
        linear = layer_type is LayerType.LINEAR_ATTENTION
        call_s = costs.linear_attention_call_s if linear else costs.full_attention_call_s
        if model.experts:
            call_s += costs.expert_call_s * model.experts.experts / layout.ep
        seconds += passes * (flops / costs.flops_per_s + call_s)
    if stage == layout.pp - 1:
        head = tokens / layout.tp * head_forward_flops_per_token(model)
        seconds += _FORWARD_AND_BACKWARD * head / costs.flops_per_s
    return seconds


def _traffic(layout: Layout, model: ModelShape, workload: PlanWorkload, layers: int) -> Traffic:
    """What a rank sends for one micro-batch: the backward pass mirrors the forward one."""
    tokens = layout.rows_per_microbatch * workload.row_tokens
    passes = 2 + workload.recompute
    return layer_traffic(layout, model, tokens) * (layers * passes) + stage_boundary_traffic(layout, model, tokens)


def _stage_layers(layout: Layout, model: ModelShape, stage: int) -> tuple[LayerType, ...]:
    """The layers of a stage: chunk c of it is the (c * PP + stage)-th piece of the model."""
    size = model.layers // (layout.pp * layout.vpp)
    starts = [(chunk * layout.pp + stage) * size for chunk in range(layout.vpp)]
    return tuple(layer for start in starts for layer in model.layer_types[start : start + size])
