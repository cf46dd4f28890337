from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.recipe import arithmetic
from openrecipes.recipe.parallel import Layout

SEED = Layout(tp=2, pp=6, ep=8, etp=1, sp=True)
SIZES = st.integers(1, 64)
LAYOUTS = st.builds(Layout, tp=SIZES, pp=SIZES, cp=SIZES, ep=SIZES, etp=SIZES, rows_per_microbatch=SIZES)


def test_the_seed_entry() -> None:
    assert str(arithmetic.dp(SEED, 48)) == "48 / (tp 2 x pp 6 x cp 1) = 4"
    assert str(arithmetic.edp(SEED, 48)) == "48 / (etp 1 x ep 8 x pp 6) = 1"
    assert str(arithmetic.minimum_gpus(SEED)) == "pp 6 x lcm(tp 2 x cp 1, etp 1 x ep 8) = 48"
    assert arithmetic.microbatches(SEED, 4, 128).value == 32
    assert arithmetic.window_tokens(5, 19, 128, 8192).value == 15_728_640
    assert arithmetic.mean_step_time_s(128, 8192, 1075.5, 48).value == pytest.approx(20.312, abs=5e-4)
    assert arithmetic.usd_per_million_tokens(113.9328 / 8, 1075.5).value == pytest.approx(3.67829, abs=5e-6)
    assert arithmetic.mfu(16_331_407_360, 1075.5, 2.25e15).value == pytest.approx(0.046838, abs=5e-7)


def test_a_disagreement_shows_both_numbers_and_the_formula() -> None:
    derived = arithmetic.dp(Layout(tp=2, pp=6, cp=2), 48)
    assert derived.beside("dp", 4, agrees=False) == "dp 4 != 48 / (tp 2 x pp 6 x cp 2) = 2"
    assert derived.beside("dp", 2, agrees=True) == "dp 2 = 48 / (tp 2 x pp 6 x cp 2)"


def test_a_quotient_with_a_remainder_is_not_whole() -> None:
    derived = arithmetic.dp(Layout(tp=3), 4)
    assert not derived.is_whole
    assert str(derived) == "4 / (tp 3 x pp 1 x cp 1) = 1.3333"


@given(layout=LAYOUTS, gpus=st.integers(1, 4096))
def test_whole_quotients_are_exact_and_only_they_are_whole(layout: Layout, gpus: int) -> None:
    for derived, product in (
        (arithmetic.dp(layout, gpus), layout.tp * layout.pp * layout.cp),
        (arithmetic.edp(layout, gpus), layout.etp * layout.ep * layout.pp),
    ):
        exact = Fraction(gpus, product)
        assert derived.is_whole == (exact.denominator == 1)
        assert float(exact) == pytest.approx(float(derived.value))


@given(layout=LAYOUTS, times=st.integers(1, 9))
def test_a_multiple_of_the_fewest_gpus_fits_both_grids(layout: Layout, times: int) -> None:
    gpus = int(arithmetic.minimum_gpus(layout).value) * times
    assert arithmetic.dp(layout, gpus).value == layout.dp(gpus)
    assert arithmetic.edp(layout, gpus).value == layout.edp(gpus)


@given(batch=st.integers(1, 4096), row=st.integers(1, 10**6), speed=st.floats(1e-3, 1e6), gpus=st.integers(1, 10**5))
def test_step_time_gives_back_the_speed(batch: int, row: int, speed: float, gpus: int) -> None:
    seconds = arithmetic.mean_step_time_s(batch, row, speed, gpus).value
    assert batch * row / seconds / gpus == pytest.approx(speed)


@given(price=st.floats(1e-3, 1e3), speed=st.floats(1e-3, 1e6))
def test_price_is_that_of_the_gpu_seconds_of_a_million_tokens(price: float, speed: float) -> None:
    gpu_hours = 1e6 / speed / 3600
    assert arithmetic.usd_per_million_tokens(price, speed).value == pytest.approx(price * gpu_hours)


@pytest.mark.parametrize(
    ("printed", "half"), [(3.68, 0.005), (0.0468, 5e-5), (1075.5, 0.05), (3.0, 0.5), (300.0, 0.5), (2.6e-05, 5e-7)]
)
def test_half_a_unit_of_the_last_printed_digit(printed: float, half: float) -> None:
    assert arithmetic.half_unit(printed) == pytest.approx(half)


@given(
    last_digits=st.integers(1, 99_999).filter(lambda n: n % 10),
    digits=st.integers(1, 6),
    units_off=st.floats(-3, 3).filter(lambda units: abs(abs(units) - 0.5) > 0.01),
)
def test_half_a_unit_is_rounding_and_more_is_a_difference(last_digits: int, digits: int, units_off: float) -> None:
    stated = round(last_digits / 10**digits, digits)
    computed = stated + units_off / 10**digits
    tolerance = arithmetic.rounding_tolerance(stated, printed_input=123456.789012)
    assert (abs(stated - computed) <= tolerance) == (abs(units_off) < 0.5)


def test_the_rounding_of_the_input_counts_too() -> None:
    # 100 stands for 99.5 to 100.5: a price proportional to it is uncertain by half a percent.
    assert arithmetic.rounding_tolerance(2.0001, 100.0) == pytest.approx(0.00005 + 0.0100005, rel=1e-6)
