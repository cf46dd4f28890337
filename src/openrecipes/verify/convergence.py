"""Does the candidate train as the reference does? Gates in a fixed order, each failing closed.

    rows             every arm trained on the same rows
    steps            every arm has exactly the steps 0..n-1
    length           n is large enough for a curve to say anything
    finite           every loss and every gradient norm is a positive FP32 number
    alive            loss and gradient norm of every arm change from step to step
    references       at least two reference runs, taken in two row orders, that are not copies
    step0_loss       the forward pass: no optimizer has acted yet
    step0_grad_norm  the backward pass and the reduction of gradients
    step0_gradients  the same for each parameter by itself, where arms have them
    curve_loss       every step
    curve_grad_norm  every step

One reference run took the rows of each global batch in reversed order, so the noise between the
references is that of another order of the same sums. A change of layout reorders sums too, and more of
them (TP cuts matrix products), so this noise is a lower limit of an honest candidate's; bounds are not
derived from it. A gate whose noise uses up more than `noise_share` of its bound cannot tell honest from
wrong: it is inconclusive, unless the candidate is further away than bound and noise together.

Why these signals: in real training, gradient norms showed faults that a loss curve hides (gradients
scaled, norm gradients unreduced), while the correlation of two curves is high for any pair that saw
the same rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from openrecipes.verify.arm import Arm
from openrecipes.verify.curves import Distance, correlation, distance, mean_curve
from openrecipes.verify.gradients import gradients_gate
from openrecipes.verify.verdict import Gate, Result, overall

_FP32_MAX = (2 - 2**-23) * 2.0**127


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bounds:
    """Relative bounds, fixed before a run. The defaults are for FP32 arms.

    A curve's bounds are ten times those of step 0, because each step carries its rounding into the weights of
    the next. Measured on two toy shapes over 20 steps at learning rate 1e-3, against one process: under honest
    layouts (TP, PP, VPP, EP, ETP, DP to 4 ranks) the largest distances were 7e-8 in loss and 6e-6 in gradient
    norm at step 0, 6e-6 and 3e-4 on the curve, 2e-6 of the whole norm in a parameter's gradient; expert gradients
    reduced over the wrong group gave 4e-3 and 6e-2 on the curve at least.
    """

    step0_loss: float = 1e-5
    step0_grad_norm: float = 1e-4
    step0_gradients: float = 1e-4
    curve_loss: float = 1e-4
    curve_grad_norm: float = 1e-3
    noise_share: float = 0.25
    least_steps: int = 20
    least_references: int = 2


FP32_BOUNDS = Bounds()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Convergence:
    """The verdict over curves of `steps` steps, the gates that were reached, and the figures an entry prints.

    `correlation` (Pearson) and `final_loss_difference` (relative, last step) compare the candidate's loss
    with the mean reference loss; `pointwise_failures` counts the steps whose loss is outside its
    curve bound. They are None where the curves could not be compared.
    """

    result: Result
    steps: int
    gates: tuple[Gate, ...]
    cause: str
    correlation: float | None = None
    final_loss_difference: float | None = None
    pointwise_failures: int | None = None


def judge(candidate: Arm, references: Sequence[Arm], *, steps: int, bounds: Bounds = FP32_BOUNDS) -> Convergence:
    """Judge a candidate against its reference runs. `steps` is how many steps every arm must have.

    Never raises for bad curves: a curve that cannot be compared does not pass.
    """
    arms = [candidate, *references]
    complete = _steps(arms, steps)
    finite = _every(arms, "finite", _not_a_positive_number, "all losses and gradient norms are positive numbers")
    gates = [
        _rows(candidate, references),
        complete,
        _length(steps, bounds.least_steps),
        finite,
        _every(arms, "alive", _constant, "loss and gradient norm change from step to step in every arm"),
        _references(references, bounds.least_references),
    ]
    if not references or steps < 1 or not (complete.passed and finite.passed):
        return _conclude(gates, steps)
    losses = [arm.loss for arm in references]
    loss = distance(candidate.loss, losses)
    grad_norm = distance(candidate.grad_norm, [arm.grad_norm for arm in references])
    share = bounds.noise_share
    gates.append(_distance_gate("step0_loss", _first_step(loss), bounds.step0_loss, share))
    gates.append(_distance_gate("step0_grad_norm", _first_step(grad_norm), bounds.step0_grad_norm, share))
    if any(arm.gradients is not None for arm in arms):
        gradients = [arm.gradients for arm in references]
        gates.append(gradients_gate(candidate.gradients, gradients, bound=bounds.step0_gradients, noise_share=share))
    gates.append(_distance_gate("curve_loss", loss, bounds.curve_loss, share))
    gates.append(_distance_gate("curve_grad_norm", grad_norm, bounds.curve_grad_norm, share))
    mean_loss = mean_curve(losses)
    return dataclasses.replace(
        _conclude(gates, steps),
        correlation=correlation(candidate.loss, mean_loss),
        final_loss_difference=abs(candidate.loss[-1] - mean_loss[-1]) / mean_loss[-1],
        pointwise_failures=sum(found > bounds.curve_loss for found in loss.distances),
    )


def _conclude(gates: Sequence[Gate], steps: int) -> Convergence:
    """The verdict; its cause is the first gate that decided it, or the tightest one of a pass."""
    result = overall([gate.result for gate in gates])
    if result is Result.PASS:
        tightest = max(gates, key=lambda gate: gate.share or 0.0)
        cause = f"all {len(gates)} gates pass; {tightest.id} uses most of its bound ({tightest.share or 0.0:.1%})"
        return Convergence(result=result, steps=steps, gates=tuple(gates), cause=cause)
    deciding = [gate for gate in gates if gate.result is result]
    named = [gate for gate in deciding[1:] if gate.id == "step0_gradients"]  # it names the part at fault
    cause = "; ".join(f"{gate.id}: {gate.detail}" for gate in [deciding[0], *named])
    return Convergence(result=result, steps=steps, gates=tuple(gates), cause=cause)


def _rows(candidate: Arm, references: Sequence[Arm]) -> Gate:
    unknown = [arm.name for arm in (candidate, *references) if not arm.rows_sha256]
    others = [arm.name for arm in references if arm.rows_sha256 and arm.rows_sha256 != candidate.rows_sha256]
    if candidate.rows_sha256 and others:
        detail = f"{', '.join(others)} trained on other rows than the candidate"
        return Gate(id="rows", result=Result.FAIL, detail=detail)
    if unknown:
        detail = f"the hash of the rows is unknown for {', '.join(unknown)}"
        return Gate(id="rows", result=Result.INCONCLUSIVE, detail=detail)
    return Gate(id="rows", result=Result.PASS, detail=f"rows {str(candidate.rows_sha256)[:12]} in every arm")


def _steps(arms: Sequence[Arm], steps: int) -> Gate:
    expected = list(range(steps))

    def wrong(arm: Arm) -> str | None:
        found = [record.step for record in arm.steps]
        if found == expected:
            return None
        at = next((n for n, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), None)
        what = f"{len(found)} steps" if at is None else f"step {found[at]} where step {at} belongs"
        return f"{what}; expected exactly the steps 0..{steps - 1}"

    return _every(arms, "steps", wrong, f"exactly the steps 0..{steps - 1} in every arm")


def _length(steps: int, least: int) -> Gate:
    enough = steps >= least
    detail = f"{steps} steps, at least {least} are compared"
    return Gate(id="length", result=Result.PASS if enough else Result.INCONCLUSIVE, detail=detail)


def _every(arms: Sequence[Arm], id: str, fault: Callable[[Arm], str | None], good: str) -> Gate:
    """FAIL if the candidate (the first arm) has the fault, INCONCLUSIVE if only a reference has."""
    for arm in arms:
        if found := fault(arm):
            result = Result.FAIL if arm is arms[0] else Result.INCONCLUSIVE
            return Gate(id=id, result=result, detail=f"{arm.name}: {found}")
    return Gate(id=id, result=Result.PASS, detail=good)


def _not_a_positive_number(arm: Arm) -> str | None:
    for record in arm.steps:
        for name, value in (("loss", record.loss), ("grad_norm", record.grad_norm)):
            if not 0 < value <= _FP32_MAX:
                return f"{name} is {value} at step {record.step}"
    return None


def _constant(arm: Arm) -> str | None:
    for name, values in (("loss", arm.loss), ("grad_norm", arm.grad_norm)):
        if len(values) > 1 and len(set(values)) == 1:
            return f"{name} is {values[0]} at every step"
    return None


def _references(references: Sequence[Arm], least: int) -> Gate:
    orders = {arm.row_order for arm in references}
    curves = {(tuple(arm.loss), tuple(arm.grad_norm)) for arm in references}
    if len(references) < least:
        lack = f"{len(references)} reference runs; at least {least} are needed to measure the noise"
    elif None in orders or len(orders) < 2:
        lack = "no two reference runs are known to have taken the rows of a batch in different orders"
    elif len(curves) < 2:
        lack = "the reference runs are equal in every digit although their sums were ordered differently"
    else:
        return Gate(id="references", result=Result.PASS, detail=f"{len(references)} runs in {len(orders)} row orders")
    return Gate(id="references", result=Result.INCONCLUSIVE, detail=f"{lack}, so the noise is not measured")


def _first_step(whole: Distance) -> Distance:
    return Distance(distances=whole.distances[:1], noise=whole.noise[:1])


def _distance_gate(id: str, found: Distance, bound: float, noise_share: float) -> Gate:
    """The largest distance against `bound`, judged with the largest noise."""
    step, noise = found.worst_step, max(found.noise)
    measured = found.distances[step]
    detail = f"{measured:.2e} at step {step}, bound {bound:.0e}, noise between references {noise:.1e}"
    if noise > noise_share * bound and measured <= bound + noise:
        result = Result.INCONCLUSIVE
        detail += f" (more than {noise_share:.0%} of the bound)"
    else:
        result = Result.PASS if measured <= bound else Result.FAIL
    return Gate(id=id, result=result, detail=detail, bound=bound, measured=measured, at=f"step {step}")
