from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tune.made import trial

from openrecipes.tune.trial import fastest, tied_with
from openrecipes.verify.verdict import Result

times = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=8)


def test_a_trial_that_did_not_run_has_its_own_verdict_and_the_journals_cause():
    lost = trial(result=None, cause="rank 1: out of memory")
    assert (lost.verdict, lost.cause, lost.reason, lost.tokens_per_s) == ("no run", "rank 1: out of memory", "-", None)


@pytest.mark.parametrize(
    ("result", "measured", "reason"),
    [
        (Result.PASS, 2.3e-5, "step0_grad_norm 23%"),
        (Result.PASS, 2e-7, "step0_grad_norm <1%"),
        (Result.PASS, 0.0, "curve_loss <1%"),
        (Result.FAIL, 4.84e-4, "step0_grad_norm 4.8x"),
        (Result.FAIL, 1.8e-3, "step0_grad_norm 18x"),
        (Result.FAIL, math.inf, "step0_grad_norm"),
        (Result.INCONCLUSIVE, 5e-5, "step0_grad_norm 50%"),
    ],
)
def test_the_reason_names_the_gate_that_decided_and_the_share_of_its_bound(result, measured, reason):
    judged = trial(result=result, measured=measured)
    assert (judged.verdict, judged.reason) == (result.value, reason)


def test_another_configuration_fails_however_well_it_trains():
    judged = dataclasses.replace(trial(), configuration_cause="lr 2e-3 != 1e-3")
    assert (judged.verdict, judged.cause, judged.reason) == ("fail", "lr 2e-3 != 1e-3", "configuration")


def test_only_what_passed_can_win():
    fast_and_wrong = trial("tp=2,etp=1", Result.FAIL, step_times_s=[0.01, 0.01])
    unsure = trial("ep=2", Result.INCONCLUSIVE, step_times_s=[0.02, 0.02])
    slow, slower = trial("pp=2", step_times_s=[0.2, 0.2]), trial("pp=4", step_times_s=[0.3, 0.3])
    assert fastest([slower, fast_and_wrong, slow, unsure]) is slow
    assert fastest([fast_and_wrong, unsure]) is None


def test_a_difference_within_the_noise_is_a_tie():
    best = trial("pp=2", step_times_s=[0.10, 0.12, 0.08, 0.10])
    near, far = trial("ep=2", step_times_s=[0.11, 0.12, 0.09, 0.10]), trial("tp=2", step_times_s=[0.2, 0.21, 0.2, 0.2])
    wrong = trial("etp=2", Result.FAIL, step_times_s=[0.10, 0.12, 0.08, 0.10])
    assert tied_with(best, [best, near, far, wrong]) == [near]


def test_equal_times_without_any_noise_are_a_tie():
    one, other = trial("pp=2", step_times_s=[0.1, 0.1]), trial("ep=2", step_times_s=[0.1, 0.1])
    assert tied_with(one, [one, other]) == [other]


def are_tied(first: list[float], second: list[float]) -> bool:
    one, other = trial("pp=2", step_times_s=first), trial("ep=2", step_times_s=second)
    return tied_with(one, [one, other]) == [other]


@given(times, times)
def test_a_tie_is_mutual(first, second):
    assert are_tied(first, second) == are_tied(second, first)


@given(times, times, st.integers(-8, 8))
def test_a_tie_does_not_depend_on_the_unit_of_time(first, second, power):
    # By powers of two, so that scaling rounds nothing.
    scaled = ([math.ldexp(time, power) for time in list_] for list_ in (first, second))
    assert are_tied(first, second) == are_tied(*scaled)
