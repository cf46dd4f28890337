from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.engines.steps import StepRecord
from openrecipes.errors import ContentError
from openrecipes.measure.window import measure

times = st.lists(st.floats(1e-3, 1e4), min_size=2, max_size=40)


def run(step_times_s: list[float], tokens: int = 1024) -> list[StepRecord]:
    return [
        StepRecord(step=n, loss=2.0, grad_norm=1.0, step_time_s=time_s, tokens=tokens)
        for n, time_s in enumerate(step_times_s)
    ]


def test_figures_of_a_small_window_by_hand() -> None:
    figures = measure(run([9.0, 1.0, 2.0, 3.0, 9.0], tokens=120), window=(1, 3), gpus=4)
    assert figures.window_tokens == 360
    assert figures.tokens_per_s_per_gpu == 360 / 6 / 4
    assert figures.step_time_mean_s == 2.0
    assert figures.step_time_cv_percent == 50.0  # sample sd of 1, 2, 3 is 1; the population's is 0.816
    assert figures.formula == "360 tokens / 6 s / 4 GPUs = 15"


def test_the_seed_window_holds_15_728_640_tokens() -> None:
    figures = measure(run([20.3] * 20, tokens=128 * 8192), window=(5, 19), gpus=48)
    assert figures.window_tokens == 15_728_640


@given(times, st.integers(1, 64), st.integers(1, 10**7))
def test_rate_times_gpus_times_seconds_is_the_tokens(step_times_s: list[float], gpus: int, tokens: int) -> None:
    figures = measure(run(step_times_s, tokens), window=(0, len(step_times_s) - 1), gpus=gpus)
    total = figures.tokens_per_s_per_gpu * gpus * math.fsum(step_times_s)
    assert total == pytest.approx(tokens * len(step_times_s), rel=1e-12)


@given(times, st.floats(0.01, 100))
def test_a_unit_change_scales_the_rate_and_leaves_the_cv(step_times_s: list[float], factor: float) -> None:
    window = (0, len(step_times_s) - 1)
    plain = measure(run(step_times_s), window=window, gpus=1)
    scaled = measure(run([time_s * factor for time_s in step_times_s]), window=window, gpus=1)
    assert scaled.tokens_per_s_per_gpu * factor == pytest.approx(plain.tokens_per_s_per_gpu)
    assert scaled.step_time_cv_percent == pytest.approx(plain.step_time_cv_percent, rel=1e-6, abs=1e-6)


@given(times, st.lists(st.floats(1e-3, 1e4), max_size=5))
def test_steps_outside_the_window_change_nothing(step_times_s: list[float], outside: list[float]) -> None:
    first = len(outside)
    whole = run([*outside, *step_times_s, *outside])
    inner = measure(run(step_times_s), window=(0, len(step_times_s) - 1), gpus=2)
    outer = measure(whole, window=(first, first + len(step_times_s) - 1), gpus=2)
    assert dataclasses.replace(outer, first=inner.first, last=inner.last) == inner


@given(st.integers(0, 9))
def test_a_missing_or_doubled_step_is_named(step: int) -> None:
    records = run([1.0] * 11)
    with pytest.raises(ContentError, match=rf"step {step} missing before step {step + 1}"):
        measure(records[:step] + records[step + 1 :], window=(0, 5), gpus=1)
    with pytest.raises(ContentError, match=rf"step {step} is there twice"):
        measure(records[: step + 1] + records[step:], window=(0, 5), gpus=1)


def test_a_step_out_of_order_is_named() -> None:
    records = run([1.0] * 6)
    records[2], records[4] = records[4], records[2]
    with pytest.raises(ContentError, match="step 2 comes after step 4"):
        measure(records, window=(0, 5), gpus=1)


@pytest.mark.parametrize("name", ["loss", "grad_norm", "step_time_s"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_named(name: str, value: float) -> None:
    records = run([1.0] * 6)
    records[3] = dataclasses.replace(records[3], **{name: value})
    with pytest.raises(ContentError, match=f"step 3: {name} is {value}"):
        measure(records, window=(0, 2), gpus=1)


def test_every_fault_is_reported_at_once() -> None:
    records = run([1.0] * 6)
    records[1] = dataclasses.replace(records[1], loss=math.nan)
    records[4] = dataclasses.replace(records[4], tokens=0)
    with pytest.raises(ContentError) as caught:
        measure(records, window=(0, 5), gpus=1)
    assert [str(finding.message)[:6] for finding in caught.value.findings] == ["step 1", "step 4"]


@pytest.mark.parametrize("window", [(0, 6), (-1, 3), (4, 2), (3, 3), (7, 9)])
def test_a_window_outside_the_run_is_refused(window: tuple[int, int]) -> None:
    with pytest.raises(ContentError, match=rf"window {window[0]}..{window[1]}, but the run has steps 0..5"):
        measure(run([1.0] * 6), window=window, gpus=1)


def test_no_steps_no_gpus_and_absurd_times_are_refused() -> None:
    with pytest.raises(ContentError, match="the run has no step"):
        measure([], window=(0, 1), gpus=1)
    with pytest.raises(ContentError, match="0 GPUs"):
        measure(run([1.0, 1.0]), window=(0, 1), gpus=0)
    with pytest.raises(ContentError, match="no finite rate"):
        measure(run([1.7e308, 1.7e308]), window=(0, 1), gpus=1)
    with pytest.raises(ContentError, match="no finite rate"):
        measure(run([5e-324, 5e-324], tokens=2**62), window=(0, 1), gpus=1)
