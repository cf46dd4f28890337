"""The layout rules as checks of an entry (L101 and up).

A rule that another check already answers for an entry is not answered twice; it is listed all the same,
so that the id a planner prints can be explained.
"""

from __future__ import annotations

from openrecipes.errors import Severity
from openrecipes.model.known import shape_of
from openrecipes.model.layout_checks import parallel_sizes
from openrecipes.plan.rules import RULES, WARNINGS, Rule
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.checkable import Case, Check, Level, Outcome, failed, not_applicable, not_checked, passed


def _check(rule: Rule, severity: Severity) -> Check:
    def run(case: Case) -> Outcome:
        if rule.twin:
            return not_applicable(f"answered by {rule.twin}")
        trainer = case.recipe.stack.engine
        if trainer not in rule.engines:
            return not_applicable(f"a rule of {', '.join(rule.engines)}, not of `{trainer:.40}`")
        shape = shape_of(case)
        if isinstance(shape, str):
            return not_checked(shape)
        layout = parallel_sizes(case.recipe)
        broken = rule.look(layout, shape, _workload(case))
        if not broken:
            return passed(str(layout))
        message, remedy = broken
        finding = case.finding(rule.id, rule.field, message, remedy, severity=severity, url=rule.url)
        return failed(message, finding) if severity is Severity.ERROR else passed(message, finding)

    return Check(
        id=rule.id,
        title=_sentence(rule.title),
        level=Level.CONSISTENT,
        explanation=_explanation(rule, severity),
        run=run,
        url=rule.url,
    )


def _explanation(rule: Rule, severity: Severity) -> str:
    scope = f"For an entry, {rule.twin} answers it." if rule.twin else f"It is checked for {', '.join(rule.engines)}."
    if severity is Severity.ERROR:
        effect = "Megatron-Core refuses to train a layout that breaks it, at the latest in the first step."
    else:
        effect = "Megatron-Core trains a layout that breaks it, but wrongly: a planner warns, and a trial decides."
    return f"{_sentence(rule.title)}. {effect} {scope}"


def _sentence(title: str) -> str:
    return title[0].upper() + title[1:]


def _workload(case: Case) -> PlanWorkload:
    recipe = case.recipe
    return PlanWorkload(
        ranks=recipe.gpu.count,
        global_batch=recipe.workload.global_batch,
        row_tokens=recipe.workload.row_tokens,
        recompute=recipe.layout.recompute is not None and recipe.layout.recompute.granularity == "full",
    )


CHECKS = (
    *(_check(rule, Severity.ERROR) for rule in RULES),
    *(_check(rule, Severity.WARNING) for rule in WARNINGS),
)
