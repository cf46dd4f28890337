"""What was measured: speed, cost and how they were taken."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from openrecipes.recipe.fields.kinds import Count, Date, Fields, Flag, Fraction, NonNegative, Positive, Size, Text, Url


def _in_order(window: tuple[int, int]) -> tuple[int, int]:
    if window[0] > window[1]:
        raise ValueError("the first step is after the last")
    return window


class ActiveParams(Fields):
    """Parameters that work on one token, the base of the MFU.

    Counted are all text weights with two or more dimensions, without the token embedding, the routed
    experts at top_k / num_experts.
    """

    count: Size = Field(examples=[16331407360], json_schema_extra={"unit": "parameters"})
    """Number of active parameters."""

    source: Url = Field(examples=["https://huggingface.co/Qwen/Qwen3.5-397B-A17B"])
    """Where the model's weights or configuration were read."""

    revision: Text = Field(examples=["8472618112abcbd45acbcdc58436aff4233c23f7"])
    """Commit of that source."""


class Result(Fields):
    """Measured speed and cost. An unknown value is null and its `_note` says why."""

    tokens_per_s_per_gpu: Positive = Field(examples=[1075.50], json_schema_extra={"unit": "tokens/s/GPU"})
    """Every token of the window, supervised or not, over its summed step times and the GPU count."""

    usd_per_million_tokens: Positive | None = Field(examples=[3.68], json_schema_extra={"unit": "USD per 10^6 tokens"})
    """Price of a million tokens: price per GPU-hour / (tokens/s/GPU * 3600) * 10^6; null where there is no price."""

    usd_note: Text | None = Field(default=None, examples=["CPU processes have no price per GPU-hour"])
    """Why the price is null, or what it includes."""

    step_time_cv_percent: NonNegative = Field(examples=[7.39], json_schema_extra={"unit": "percent"})
    """Coefficient of variation of the window's step times: sample standard deviation / mean * 100."""

    mfu: Fraction | None = Field(examples=[0.0468])
    """Model FLOPs utilisation: 6 * active parameters * tokens/s/GPU / dense peak FLOP/s; null without a known peak."""

    mfu_note: Text | None = Field(examples=["no peak FLOP/s is recorded for these CPUs"])
    """Why the MFU is null, or what its peak refers to."""

    active_params: ActiveParams | None
    """Active parameters; null where they are not published anywhere."""

    measured: Date = Field(examples=["2026-10-18"])
    """Day of the measured run."""

    steps_per_run: Size = Field(examples=[20], json_schema_extra={"unit": "steps"})
    """Optimizer steps of one run."""

    window: Annotated[tuple[Count, Count], AfterValidator(_in_order)] = Field(
        examples=[[5, 19]], json_schema_extra={"unit": "steps, counted from 0"}
    )
    """First and last measured step, both included."""

    window_tokens: Size = Field(examples=[15728640], json_schema_extra={"unit": "tokens"})
    """Tokens of the window: (last - first + 1) * global batch * row tokens."""

    runs: Size = Field(examples=[1], json_schema_extra={"unit": "runs"})
    """Measured runs behind the figures."""

    profiler: Flag = Field(examples=[False])
    """Whether a profiler slowed the measured run."""

    gpu_hours: NonNegative = Field(examples=[19.73], json_schema_extra={"unit": "GPU-hours"})
    """GPU-hours the measured runs used; for `cpu`, process-hours."""

    gpu_hours_note: Text | None = Field(examples=["GPUs x wall time, start-up included"])
    """What the GPU-hours include."""
