"""The numbers of a recipe that follow from others, each with its formula filled in.

The formulas of the parallel sizes are those of `openrecipes.recipe.parallel`; here they also hold for
sizes that do not fit, so that a message can show by how much.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal

from openrecipes.recipe.parallel import Layout

SECONDS_PER_HOUR = 3600
FLOPS_PER_PARAMETER = 6
"""A multiply-add in the forward pass and two in the backward (https://arxiv.org/abs/2001.08361, section 2.1)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Derived:
    """A number and the expression that gave it, such as 4 and `48 / (tp 2 x pp 6 x cp 1)`."""

    value: int | float
    expression: str

    @property
    def is_whole(self) -> bool:
        """Whether a quotient left no remainder."""
        return isinstance(self.value, int)

    def __str__(self) -> str:
        return f"{self.expression} = {shown(self.value)}"

    def beside(self, name: str, stated: int | float, *, agrees: bool) -> str:
        """`dp 4 = 48 / (...)`, or `dp 4 != 48 / (...) = 2` where the stated number does not agree."""
        return f"{name} {shown(stated)} = {self.expression}" if agrees else f"{name} {shown(stated)} != {self}"


def shown(value: int | float) -> str:
    """A number as messages show it: whole numbers exactly, others with five significant digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.5g}"


def dp(layout: Layout, gpus: int) -> Derived:
    """Data-parallel size: GPUs / (TP * PP * CP)."""
    return _quotient(gpus, tp=layout.tp, pp=layout.pp, cp=layout.cp)


def edp(layout: Layout, gpus: int) -> Derived:
    """Expert data-parallel size: GPUs / (ETP * EP * PP)."""
    return _quotient(gpus, etp=layout.etp, ep=layout.ep, pp=layout.pp)


def minimum_gpus(layout: Layout) -> Derived:
    """Fewest GPUs the layout fits: PP * lcm(TP * CP, ETP * EP)."""
    expression = f"pp {layout.pp} x lcm(tp {layout.tp} x cp {layout.cp}, etp {layout.etp} x ep {layout.ep})"
    return Derived(value=layout.smallest_world, expression=expression)


def microbatches(layout: Layout, dp: int, global_batch: int) -> Derived:
    """Micro-batches per data-parallel rank and step: global_batch / (DP * rows_per_microbatch)."""
    return _quotient(global_batch, dp=dp, rows_per_microbatch=layout.rows_per_microbatch)


def window_tokens(first: int, last: int, global_batch: int, row_tokens: int) -> Derived:
    """Tokens of the measured steps `first` to `last`, both included: steps * global_batch * row_tokens."""
    return Derived(
        value=(last - first + 1) * global_batch * row_tokens,
        expression=f"({last} - {first} + 1) steps x {global_batch} rows x {shown(row_tokens)} tokens",
    )


def mean_step_time_s(global_batch: int, row_tokens: int, tokens_per_s_per_gpu: float, gpus: int) -> Derived:
    """Mean step time in seconds that a speed implies: tokens of a step / (tokens/s/GPU * GPUs)."""
    speed = f"{tokens_per_s_per_gpu:g} tokens/s/GPU x {gpus} GPUs"
    return Derived(
        value=global_batch * row_tokens / (tokens_per_s_per_gpu * gpus),
        expression=f"{global_batch} x {shown(row_tokens)} tokens / ({speed})",
    )


def usd_per_million_tokens(usd_per_gpu_hour: float, tokens_per_s_per_gpu: float) -> Derived:
    """Price of 10^6 tokens in USD: price per GPU-hour / (tokens/s/GPU * 3600) * 10^6."""
    return Derived(
        value=usd_per_gpu_hour / (tokens_per_s_per_gpu * SECONDS_PER_HOUR) * 1e6,
        expression=f"{usd_per_gpu_hour:g} USD/GPU-hour / ({tokens_per_s_per_gpu:g} tokens/s/GPU x 3600) x 1e6",
    )


def mfu(active_parameters: int, tokens_per_s_per_gpu: float, peak_flop_per_s: float) -> Derived:
    """Model FLOPs utilisation: 6 * active parameters * tokens/s/GPU / dense peak FLOP/s of one GPU.

    The rule counts neither the attention scores nor recomputation.
    """
    return Derived(
        value=FLOPS_PER_PARAMETER * active_parameters * tokens_per_s_per_gpu / peak_flop_per_s,
        expression=(
            f"6 x {shown(active_parameters)} parameters x {tokens_per_s_per_gpu:g} tokens/s/GPU "
            f"/ {peak_flop_per_s:g} FLOP/s"
        ),
    )


def half_unit(printed: float) -> float:
    """Half a unit of the last digit that a printed number shows: 3.68 stands for 3.675 to 3.685.

    Trailing zeros are not kept by a number (1075.50 reads as 1075.5), so the result is never too small.
    """
    exponent = Decimal(repr(printed)).normalize().as_tuple().exponent
    return 0.5 * 10.0 ** min(exponent, 0) if isinstance(exponent, int) else 0.0


def rounding_tolerance(stated: float, printed_input: float) -> float:
    """How far a stated number may be from the one computed from a rounded input that it is proportional to.

    Half a unit of the stated number's last digit, plus its share of half a unit of the input's last
    digit, plus a little for floating point.
    """
    return half_unit(stated) + abs(stated) * (half_unit(printed_input) / printed_input + 1e-9)


def _quotient(dividend: int, **divisors: int) -> Derived:
    product = 1
    for size in divisors.values():
        product *= size
    value = dividend // product if dividend % product == 0 else dividend / product
    factors = " x ".join(f"{key} {size}" for key, size in divisors.items())
    return Derived(value=value, expression=f"{shown(dividend)} / ({factors})")
