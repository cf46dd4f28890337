from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.engines.steps import StepRecord
from openrecipes.verify.arm import Arm
from openrecipes.verify.convergence import FP32_BOUNDS, Convergence, judge
from openrecipes.verify.verdict import Gate, Result

ROWS = "a" * 64
STEPS = 20
GRADIENTS = {"decoder.layers.1.mlp.router.weight": 0.3, "embedding.word_embeddings.weight": 1.0}


def arm(name: str, seed: int, *, order: str = "natural", noise: float = 1e-7, steps: int = STEPS) -> Arm:
    """An honest arm: batches of different difficulty, the same in every arm, and rounding noise of its own."""
    batch, rounding = random.Random(0), random.Random(seed)
    records = [
        StepRecord(
            step=step,
            loss=(2 + 2 * math.exp(-step / 6) + batch.gauss(0, 0.03)) * (1 + rounding.uniform(-noise, noise)),
            grad_norm=(1 + batch.uniform(-0.2, 0.2)) * (1 + rounding.uniform(-4 * noise, 4 * noise)),
            step_time_s=1.0,
            tokens=512,
        )
        for step in range(steps)
    ]
    return Arm(name=name, steps=records, rows_sha256=ROWS, row_order=order, gradients=dict(GRADIENTS))


CANDIDATE = arm("candidate", 1)
REFERENCES = [arm("reference run 0", 2), arm("reference run 1", 3, order="reversed")]


def altered(one: Arm, change: Callable[[StepRecord], dict[str, float]]) -> Arm:
    return dataclasses.replace(one, steps=[dataclasses.replace(record, **change(record)) for record in one.steps])


def at_step(step: int, **values: float) -> Callable[[StepRecord], dict[str, float]]:
    return lambda record: dict(values) if record.step == step else {}


def gate(found: Convergence, id: str) -> Gate:
    return next(gate for gate in found.gates if gate.id == id)


def failing(found: Convergence) -> list[str]:
    return [gate.id for gate in found.gates if gate.result is Result.FAIL]


def test_an_honest_arm_passes_every_gate_with_numbers() -> None:
    found = judge(CANDIDATE, REFERENCES, steps=STEPS)
    assert found.result is Result.PASS
    assert [gate.id for gate in found.gates] == [
        "rows",
        "steps",
        "length",
        "finite",
        "alive",
        "references",
        "step0_loss",
        "step0_grad_norm",
        "step0_gradients",
        "curve_loss",
        "curve_grad_norm",
    ]
    curve = gate(found, "curve_grad_norm")
    assert curve.bound == FP32_BOUNDS.curve_grad_norm
    assert curve.measured is not None
    assert 0 < curve.measured < 1e-6
    assert "all 11 gates pass" in found.cause
    assert found.correlation == pytest.approx(1, abs=1e-9)
    assert found.final_loss_difference == pytest.approx(0, abs=1e-6)
    assert found.pointwise_failures == 0


@given(st.integers(10, 10_000))
def test_no_honest_rounding_fails(seed: int) -> None:
    references = [arm("reference run 0", seed + 1), arm("reference run 1", seed + 2, order="reversed")]
    assert judge(arm("candidate", seed), references, steps=STEPS).result is Result.PASS


FAULTS: dict[str, tuple[Callable[[StepRecord], dict[str, float]], str]] = {
    # What a fault does to a curve, and the gate that must be the first to name it.
    "norm gradients not reduced": (lambda r: {"grad_norm": r.grad_norm * 0.998}, "step0_grad_norm"),
    "gradients scaled by DP": (lambda r: {"grad_norm": r.grad_norm * 2}, "step0_grad_norm"),
    "micro-batch dropped": (lambda r: {"loss": r.loss * 1.004, "grad_norm": r.grad_norm * 1.1}, "step0_loss"),
    "learning rate x1.1": (lambda r: {"loss": r.loss * (1 - 2e-4 * r.step)}, "curve_loss"),
    "slow drift": (lambda r: {"grad_norm": r.grad_norm * (1 + 1e-4 * r.step)}, "curve_grad_norm"),
    "last step only": (at_step(STEPS - 1, loss=2.7), "curve_loss"),
    "NaN loss at one step": (at_step(7, loss=math.nan), "finite"),
    "infinite gradient at the last step": (at_step(STEPS - 1, grad_norm=math.inf), "finite"),
    "negative loss": (at_step(3, loss=-1.0), "finite"),
    "zero gradient": (at_step(3, grad_norm=0.0), "finite"),
    "beyond FP32": (at_step(3, loss=1e300), "finite"),
    "constant loss": (lambda r: {"loss": 2.5}, "alive"),
    "constant gradient norm": (lambda r: {"grad_norm": 1.0}, "alive"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_candidate_fails_at_its_gate(fault: str) -> None:
    change, expected = FAULTS[fault]
    found = judge(altered(CANDIDATE, change), REFERENCES, steps=STEPS)
    assert found.result is Result.FAIL
    assert failing(found)[0] == expected
    assert found.cause.startswith(f"{expected}: ")


def test_rows_shuffled_in_one_arm_fails_at_step_0() -> None:
    losses = random.Random(5).sample(CANDIDATE.loss, STEPS)
    found = judge(altered(CANDIDATE, lambda record: {"loss": losses[record.step]}), REFERENCES, steps=STEPS)
    assert failing(found) == ["step0_loss", "curve_loss"]


def test_other_rows_fail_and_unknown_rows_never_pass() -> None:
    other = dataclasses.replace(CANDIDATE, rows_sha256="b" * 64)
    assert failing(judge(other, REFERENCES, steps=STEPS)) == ["rows"]
    unknown = dataclasses.replace(CANDIDATE, rows_sha256=None)
    assert judge(unknown, REFERENCES, steps=STEPS).result is Result.INCONCLUSIVE


@pytest.mark.parametrize(
    "kept",
    [
        list(range(19)),
        [*range(20), 19],
        [*range(10), *range(11, 20)],
        [0, *range(20)][:20],
        [1, 0, *range(2, 20)],
        [0],
        [],
    ],
)
def test_any_other_set_of_steps_fails(kept: list[int]) -> None:
    found = judge(dataclasses.replace(CANDIDATE, steps=[CANDIDATE.steps[n] for n in kept]), REFERENCES, steps=STEPS)
    assert failing(found) == ["steps"]


@pytest.mark.parametrize("steps", [1, 2, 19])
def test_a_short_curve_never_passes(steps: int) -> None:
    arms = [
        arm(f"run {seed}", seed, order=order, steps=steps)
        for seed, order in ((1, "natural"), (2, "natural"), (3, "reversed"))
    ]
    found = judge(arms[0], arms[1:], steps=steps)
    assert found.result is Result.INCONCLUSIVE
    assert gate(found, "length").result is Result.INCONCLUSIVE


@pytest.mark.parametrize("steps", [0, -1])
def test_no_steps_never_pass(steps: int) -> None:
    empty = [dataclasses.replace(one, steps=[]) for one in (CANDIDATE, *REFERENCES)]
    assert judge(empty[0], empty[1:], steps=steps).result is Result.INCONCLUSIVE


def test_fewer_than_two_references_are_inconclusive_but_a_wrong_candidate_still_fails() -> None:
    assert judge(CANDIDATE, [], steps=STEPS).result is Result.INCONCLUSIVE
    assert judge(CANDIDATE, REFERENCES[:1], steps=STEPS).result is Result.INCONCLUSIVE
    wrong = altered(CANDIDATE, lambda record: {"grad_norm": record.grad_norm * 2})
    assert judge(wrong, REFERENCES[:1], steps=STEPS).result is Result.FAIL


def test_references_in_one_row_order_or_copies_measure_no_noise() -> None:
    for second in (
        dataclasses.replace(REFERENCES[1], row_order="natural"),
        dataclasses.replace(REFERENCES[1], row_order=None),
        dataclasses.replace(REFERENCES[0], row_order="reversed"),
    ):
        found = judge(CANDIDATE, [REFERENCES[0], second], steps=STEPS)
        assert gate(found, "references").result is Result.INCONCLUSIVE
        assert found.result is Result.INCONCLUSIVE


def test_noisy_references_are_inconclusive_and_do_not_hide_a_larger_fault() -> None:
    noisy = [arm("reference run 0", 2, noise=5e-5), arm("reference run 1", 3, noise=5e-5, order="reversed")]
    found = judge(CANDIDATE, noisy, steps=STEPS)
    assert found.result is Result.INCONCLUSIVE
    assert "more than 25% of the bound" in gate(found, "curve_loss").detail
    wrong = altered(CANDIDATE, lambda record: {"loss": record.loss * (1 + 1e-3 * record.step)})
    assert "curve_loss" in failing(judge(wrong, noisy, steps=STEPS))


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_a_broken_reference_is_inconclusive(value: float) -> None:
    broken = altered(REFERENCES[1], at_step(4, loss=value))
    found = judge(CANDIDATE, [REFERENCES[0], broken], steps=STEPS)
    assert found.result is Result.INCONCLUSIVE
    assert found.cause == f"finite: reference run 1: loss is {value} at step 4"


def test_a_wrong_parameter_gradient_fails_although_both_curves_agree() -> None:
    gradients = GRADIENTS | {"decoder.layers.1.mlp.router.weight": 0.2999}
    found = judge(dataclasses.replace(CANDIDATE, gradients=gradients), REFERENCES, steps=STEPS)
    assert failing(found) == ["step0_gradients"]
    assert "router gradients differ" in found.cause


def test_gradients_in_one_arm_only_never_pass() -> None:
    without = [dataclasses.replace(one, gradients=None) for one in (CANDIDATE, *REFERENCES)]
    assert judge(without[0], without[1:], steps=STEPS).result is Result.PASS  # no arm has any: no such gate
    assert judge(without[0], REFERENCES, steps=STEPS).result is Result.INCONCLUSIVE
    assert judge(CANDIDATE, without[1:], steps=STEPS).result is Result.INCONCLUSIVE


def test_bounds_are_inclusive_on_the_inside_only() -> None:
    bound = FP32_BOUNDS.step0_loss
    exact = [altered(one, at_step(0, loss=2.0)) for one in REFERENCES]
    inside = altered(CANDIDATE, at_step(0, loss=2.0 * math.exp(0.99 * bound)))
    outside = altered(CANDIDATE, at_step(0, loss=2.0 * math.exp(1.01 * bound)))
    assert failing(judge(inside, exact, steps=STEPS)) == []
    assert failing(judge(outside, exact, steps=STEPS))[0] == "step0_loss"


anything = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(st.tuples(st.integers(-2, 25), anything, anything), max_size=25), st.integers(-1, 25))
def test_no_curve_raises_and_no_foreign_curve_passes(records: list[tuple[int, float, float]], steps: int) -> None:
    wild = dataclasses.replace(
        CANDIDATE,
        steps=[
            StepRecord(step=step, loss=loss, grad_norm=grad_norm, step_time_s=1.0, tokens=1)
            for step, loss, grad_norm in records
        ],
    )
    assert judge(wild, REFERENCES, steps=steps).result is not Result.PASS
    assert judge(CANDIDATE, [wild, REFERENCES[0]], steps=steps).result is not Result.PASS
    assert judge(wild, [wild, wild], steps=steps).result is not Result.PASS


@given(st.sampled_from(range(STEPS)), st.floats(2e-3, 0.5), st.sampled_from(["loss", "grad_norm"]), st.booleans())
def test_one_step_that_is_off_by_twice_the_bound_fails(step: int, size: float, name: str, up: bool) -> None:
    factor = 1 + size if up else 1 - size
    wrong = altered(CANDIDATE, lambda r: {name: getattr(r, name) * factor} if r.step == step else {})
    found = judge(wrong, REFERENCES, steps=STEPS)
    assert found.result is Result.FAIL
    assert gate(found, f"curve_{name}").at == f"step {step}"
