"""What an entry says about its correctness, beside what its evidence shows."""

from __future__ import annotations

from openrecipes.recipe import fields
from openrecipes.recipe.arithmetic import half_unit
from openrecipes.verify.components import ComponentVerdict
from openrecipes.verify.configuration import Configuration
from openrecipes.verify.convergence import Convergence
from openrecipes.verify.verdict import Result, overall


def contradictions(
    stated: fields.Correctness,
    configuration: Configuration,
    components: tuple[Result, tuple[ComponentVerdict, ...]],
    convergence: Convergence,
) -> list[tuple[str, str]]:
    """Every stated verdict or figure that is not the recomputed one, as (field, message)."""
    component_result, verdicts = components
    whole = overall([configuration.result, component_result, convergence.result])
    compared: list[tuple[str, object, object]] = [
        ("correctness.result", stated.result, whole.value),
        ("correctness.configuration", stated.configuration, configuration.result.value),
        *_tests(stated.component_tests, verdicts),
    ]
    curve = stated.convergence
    if curve is None:
        compared.append(("correctness.convergence", None, convergence.result.value))
    else:
        field = "correctness.convergence"
        compared += [
            (f"{field}.result", curve.result, convergence.result.value),
            (f"{field}.correlation", curve.correlation, convergence.correlation),
            (f"{field}.final_loss_difference", curve.final_loss_difference, convergence.final_loss_difference),
            (f"{field}.pointwise_failures", curve.pointwise_failures, convergence.pointwise_failures),
            (f"{field}.steps", curve.steps, convergence.steps),
        ]
    return [
        (field, f"{field} states {said}, the evidence shows {found}")
        for field, said, found in compared
        if not _agree(said, found)
    ]


def _tests(
    stated: tuple[fields.ComponentTest, ...], verdicts: tuple[ComponentVerdict, ...]
) -> list[tuple[str, object, object]]:
    """Stated and recomputed result of each test; a test that stands on one side only has None on the other."""
    said = {test.test: (index, test.result) for index, test in enumerate(stated)}
    found = {verdict.test: verdict.result.value for verdict in verdicts}
    field = "correctness.component_tests"
    return [
        *((f"{field}[{index}].result", result, found.get(name)) for name, (index, result) in said.items()),
        *((field, None, f"{name}: {result}") for name, result in found.items() if name not in said),
    ]


def _agree(said: object, found: object) -> bool:
    """Equal, or for two numbers within half a unit of the last digit that is stated."""
    if isinstance(said, (int, float)) and isinstance(found, (int, float)):
        return abs(said - found) <= half_unit(said) + 1e-9 * abs(found)
    return said == found
