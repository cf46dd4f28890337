"""Checks of the levels `verified` and `reproduced`: verdicts recomputed from the evidence alone."""

from __future__ import annotations

from openrecipes.errors import Finding
from openrecipes.recipe.checkable import Case, Check, Level, Outcome, check, failed, not_checked, passed
from openrecipes.verify import judgement
from openrecipes.verify.account import contradictions
from openrecipes.verify.verdict import Result


@check("V101", title="Candidate and reference differ only in what may differ", level=Level.VERIFIED)
def configuration(case: Case) -> Outcome:
    """Arms are comparable when their resolved arguments differ only in what leaves the mathematics alone. Each
    difference has a class in the numerics list; another learning rate, model, data or random state fails, and so does
    a name that the list does not know.
    """
    found = judgement.configuration(case)
    if isinstance(found, str):
        return not_checked(found)
    if case.evidence and (unequal := judgement.unequal_references(case.evidence)):
        return failed(unequal, _error(case, "V101", unequal, "repeat one reference run; only row_order may differ"))
    findings = [
        _error(
            case,
            "V101",
            f"{difference}: {difference.why}",
            "run both arms with the same value"
            if difference.numerics_class
            else "give the argument a class in skill/scripts/correctness/rules/numerics_list.yaml",
        )
        for difference in found.differences
        if not difference.passes
    ]
    return _outcome(found.result, found.cause, findings)


@check("V102", title="Each component test passes and each of its controls fails", level=Level.VERIFIED)
def component_tests(case: Case) -> Outcome:
    """A component test shows that a changed part still computes the right thing. It counts only with negative controls:
    the same test on a broken part must be outside the bound, or the test would pass anything.
    """
    found = judgement.components(case)
    if isinstance(found, str):
        return not_checked(found)
    result, verdicts = found
    detail = "; ".join(f"{verdict.test}: {verdict.detail}" for verdict in verdicts)
    findings = [
        _error(case, "V102", f"{verdict.test}: {verdict.detail}", "mend the part or the test, and run it again")
        for verdict in verdicts
        if verdict.result is Result.FAIL
    ]
    return _outcome(result, detail, findings)


@check("V103", title="The candidate trains as the reference does", level=Level.VERIFIED)
def convergence(case: Case) -> Outcome:
    """Loss and gradient norm of every step are compared with repeated reference runs, within bounds that were fixed
    beforehand and that the references' own noise must leave room in. Anything missing, not finite or too noisy is
    inconclusive at best, never a pass.
    """
    found = judgement.convergence(case)
    if isinstance(found, str):
        return not_checked(found)
    remedy = "do not use this layout; the gate's numbers show where the arms part"
    return _outcome(found.result, found.cause, [_error(case, "V103", found.cause, remedy)])


@check("V104", title="The entry's account of its correctness is what the evidence shows", level=Level.VERIFIED)
def account(case: Case) -> Outcome:
    """The `correctness` fields are what people read. Each verdict and each figure in them must be the recomputed one,
    figures within half a unit of the last digit shown.
    """
    arguments, tests, curve = judgement.configuration(case), judgement.components(case), judgement.convergence(case)
    if isinstance(arguments, str) or isinstance(tests, str) or isinstance(curve, str):
        reasons = {reason for reason in (arguments, tests, curve) if isinstance(reason, str)}
        return not_checked("; ".join(sorted(reasons)))
    wrong = contradictions(case.recipe.correctness, arguments, tests, curve)
    if not wrong:
        return passed("the stated verdicts and figures are those recomputed from the evidence")
    remedy = "state what the evidence shows"
    findings = [case.finding("V104", field, message, remedy) for field, message in wrong]
    return failed("; ".join(message for _, message in wrong), *findings)


@check("R101", title="A second run is as fast within its noise and trains the same", level=Level.REPRODUCED)
def repeat(case: Case) -> Outcome:
    """One run may be luck. A second run of the same arguments must have a mean step time that differs by no more than
    |m1 - m2| <= t(0.995, v) * sqrt(s1^2/n1 + s2^2/n2) (Welch), with a noise of at most a tenth of the mean, and must
    pass the same convergence gates against the same reference.
    """
    trained = judgement.convergence(case, "repeat")
    if isinstance(trained, str):
        return not_checked(trained)
    changed = judgement.changed_in_repeat(case)
    speed = judgement.repeat_speed(case)
    if isinstance(changed, str) or isinstance(speed, str):
        return not_checked("; ".join(reason for reason in (changed, speed) if isinstance(reason, str)))
    wrong = [f"not a run of the same arguments: {difference}" for difference in changed]
    if speed.same is False:
        wrong.append(speed.detail)
    if trained.result is Result.FAIL:
        wrong.append(trained.cause)
    detail = f"{speed.detail}; {trained.cause}"
    if wrong:
        return failed(detail, *(_error(case, "R101", text, "run the entry again as it stands") for text in wrong))
    if speed.same is None or trained.result is not Result.PASS:
        return not_checked(f"inconclusive: {detail}")
    return passed(detail)


def _error(case: Case, id: str, message: str, remedy: str) -> Finding:
    return case.finding(id, "correctness", message, remedy)


def _outcome(result: Result, detail: str, findings: list[Finding]) -> Outcome:
    """Inconclusive is neither pass nor fail: it caps the level as a check that could not look does."""
    if result is Result.PASS:
        return passed(detail)
    if result is Result.FAIL:
        return failed(detail, *findings)
    return not_checked(f"inconclusive: {detail}")


CHECKS: tuple[Check, ...] = (configuration, component_tests, convergence, account, repeat)
