from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.engines.steps import StepRecord
from openrecipes.measure.repeat import compare_speed, student_quantile
from openrecipes.measure.window import Figures, measure


def figures(mean_s: float, noise: float, seed: int, steps: int = 15) -> Figures:
    draw = random.Random(seed)
    records = [
        StepRecord(step=n, loss=2.0, grad_norm=1.0, step_time_s=mean_s * (1 + draw.gauss(0, noise)), tokens=512)
        for n in range(steps)
    ]
    return measure(records, window=(0, steps - 1), gpus=4)


def test_runs_of_one_speed_agree_and_print_their_numbers() -> None:
    found = compare_speed(figures(1.0, 0.02, 1), figures(1.0, 0.02, 2))
    assert found.same is True
    assert "tokens/s/GPU" in found.detail
    assert "99% noise" in found.detail


@pytest.mark.parametrize("factor", [0.9, 0.95, 1.05, 1.1])
def test_a_run_of_another_speed_does_not(factor: float) -> None:
    assert compare_speed(figures(1.0, 0.02, 1), figures(factor, 0.02, 2)).same is False


def test_too_much_noise_or_too_few_steps_cannot_tell() -> None:
    assert compare_speed(figures(1.0, 0.2, 1), figures(1.0, 0.2, 2)).same is None
    assert compare_speed(figures(1.0, 0.02, 1, steps=4), figures(1.0, 0.02, 2)).same is None


def test_a_copy_is_no_second_run() -> None:
    found = compare_speed(figures(1.0, 0.02, 1), figures(1.0, 0.02, 1))
    assert found.same is False
    assert "a copy" in found.detail


def test_one_in_a_hundred_honest_repeats_is_called_different() -> None:
    pairs = [compare_speed(figures(1.0, 0.05, 2 * n), figures(1.0, 0.05, 2 * n + 1)).same for n in range(1000)]
    assert 0.97 < sum(same is True for same in pairs) / len(pairs) <= 1.0
    assert any(same is False for same in pairs)


@pytest.mark.parametrize(
    ("freedom", "expected"), [(4, 4.6041), (5, 4.0321), (10, 3.1693), (14, 2.9768), (28, 2.7633), (120, 2.6174)]
)
def test_the_quantile_is_that_of_the_printed_tables(freedom: float, expected: float) -> None:
    assert student_quantile(0.995, freedom) == pytest.approx(expected, rel=3e-3)


@given(st.floats(1e-3, 1e3), st.integers(0, 1000))
def test_the_unit_of_time_does_not_matter(unit: float, seed: int) -> None:
    plain = compare_speed(figures(1.0, 0.05, seed), figures(1.04, 0.05, seed + 1))
    scaled = compare_speed(figures(unit, 0.05, seed), figures(1.04 * unit, 0.05, seed + 1))
    assert plain.same is scaled.same
