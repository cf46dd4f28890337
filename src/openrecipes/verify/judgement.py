"""The three correctness checks of an entry, recomputed from its evidence alone.

Each answers a verdict, or the reason as text why it could not be reached.
"""

from __future__ import annotations

from openrecipes.measure.evidence import listed, log_reader, logged_steps, no_reader
from openrecipes.measure.repeat import SpeedComparison, compare_speed
from openrecipes.measure.resolved import ResolvedArguments, resolved_of
from openrecipes.measure.window import measure
from openrecipes.recipe import evidence as manifest
from openrecipes.recipe.checkable import Case
from openrecipes.recipe.evidence import Evidence
from openrecipes.verify.components import ComponentVerdict, judge_components, parse_component_results
from openrecipes.verify.configuration import Configuration, Difference, compare_arguments
from openrecipes.verify.convergence import FP32_BOUNDS, Convergence, judge
from openrecipes.verify.evidence import load_arm, reference_runs
from openrecipes.verify.rules import shipped_numerics_list
from openrecipes.verify.verdict import Result

NO_EVIDENCE = "the entry carries no evidence"
NO_REFERENCE = "the evidence holds no reference arm"


def configuration(case: Case) -> Configuration | str:
    """The candidate's resolved arguments against those of every reference run; the worst verdict counts."""
    if case.evidence is None:
        return NO_EVIDENCE
    candidate = resolved_of(case.evidence, "candidate")
    references = _reference_arguments(case.evidence)
    if candidate is None:
        return "the evidence lists no `resolved_arguments` of the candidate arm"
    if not references:
        return NO_REFERENCE
    numerics = shipped_numerics_list()
    found = [compare_arguments(candidate, reference, numerics) for reference in references]
    order = (Result.FAIL, Result.INCONCLUSIVE, Result.PASS)
    return min(found, key=lambda one: order.index(one.result))


def _reference_arguments(evidence: Evidence) -> list[ResolvedArguments]:
    runs = sorted({file.run for file in evidence.find("resolved_arguments", "reference")})
    found = [resolved_of(evidence, "reference", run) for run in runs]
    return [one for one in found if one is not None]


def unequal_references(evidence: Evidence) -> str | None:
    """Why the reference runs are not repeats of one another, apart from the order of rows; None where they are."""
    first, *others = [reference.flat() for reference in _reference_arguments(evidence)] or [{}]
    for number, other in enumerate(others, 1):
        names = {name for name in first.keys() | other.keys() if first.get(name) != other.get(name)} - {"row_order"}
        if names:
            return f"reference run {number} is no repeat of run 0: {', '.join(sorted(names))} differ"
    return None


def components(case: Case) -> tuple[Result, tuple[ComponentVerdict, ...]] | str:
    """The component tests, judged from their numbers."""
    if case.evidence is None:
        return NO_EVIDENCE
    file = listed(case.evidence, "component_results")
    if file is None:
        return "the evidence lists no `component_results`"
    results = parse_component_results(case.evidence.read(file), case.evidence.folder / file.path)
    return judge_components(results) if results.tests else "the component results hold no test"


def convergence(case: Case, arm: manifest.Arm = "candidate") -> Convergence | str:
    """An arm of the entry against every reference run."""
    if case.evidence is None:
        return NO_EVIDENCE
    if case.recipe.workload.precision != "fp32":
        return f"bounds are fixed for fp32 arms, and these are {case.recipe.workload.precision}"
    read_log = log_reader(case.recipe)
    candidate = load_arm(case.evidence, arm, 0, read_log)
    loaded = [load_arm(case.evidence, "reference", run, read_log) for run in reference_runs(case.evidence)]
    references = [one for one in loaded if one is not None]
    if candidate is None:
        return f"the evidence lists no `steps` of the {arm} arm"
    if not references:
        return NO_REFERENCE
    return judge(candidate, references, steps=case.recipe.result.steps_per_run, bounds=FP32_BOUNDS)


def changed_in_repeat(case: Case) -> list[Difference] | str:
    """What a second run resolved otherwise than the candidate, beyond what must not change a bit."""
    if case.evidence is None:
        return NO_EVIDENCE
    candidate, repeat = resolved_of(case.evidence, "candidate"), resolved_of(case.evidence, "repeat")
    if candidate is None or repeat is None:
        return "the evidence lacks the `resolved_arguments` of the candidate or the repeat arm"
    differences = compare_arguments(repeat, candidate, shipped_numerics_list()).differences
    return [difference for difference in differences if difference.numerics_class != "neutral"]


def repeat_speed(case: Case) -> SpeedComparison | str:
    """The speed of a second run beside the candidate's, both from their raw logs."""
    if case.evidence is None:
        return NO_EVIDENCE
    read_log = log_reader(case.recipe)
    if read_log is None:
        return no_reader(case.recipe)
    candidate, repeat = (logged_steps(case.evidence, arm, 0, read_log) for arm in ("candidate", "repeat"))
    if candidate is None or repeat is None:
        return "the evidence lacks the `log` of the candidate or the repeat arm"
    window, gpus = case.recipe.result.window, case.recipe.gpu.count
    return compare_speed(
        measure(candidate, window=window, gpus=gpus, path=case.evidence.manifest),
        measure(repeat, window=window, gpus=gpus, path=case.evidence.manifest),
    )
