"""Component tests judged from their numbers.

A component test passes when its error is within its bound and each of its negative controls, the same
test on a deliberately broken part, is outside it. A test whose controls pass too would pass anything.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openrecipes.errors import ContentError, Finding, Severity
from openrecipes.verify.verdict import Result, overall


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Control(_Fields):
    """A negative control: what was broken, and the error that gave."""

    name: str
    error: float


class ComponentTest(_Fields):
    """One component test: what was run at which shape and dtype, its bound and where that comes from, its error."""

    test: str
    implementation: str
    shape: str
    dtype: str
    bound: Annotated[float, Field(allow_inf_nan=False, gt=0)]
    bound_source: str
    error: float
    controls: Annotated[tuple[Control, ...], Field(strict=False)]


class ComponentResults(_Fields):
    """The content of a component results file."""

    format_version: Literal[1]
    tests: Annotated[tuple[ComponentTest, ...], Field(strict=False)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComponentVerdict:
    """The verdict over one component test; `detail` is one line with its numbers."""

    test: str
    shape: str
    result: Result
    detail: str


def parse_component_results(content: bytes, path: Path) -> ComponentResults:
    """Read component results; `path` names the place of an error.

    Raises:
        ContentError: with one finding per field that is wrong.
    """
    try:
        return ComponentResults.model_validate_json(content)
    except ValidationError as error:
        findings = [
            Finding(
                id="V003",
                severity=Severity.ERROR,
                message=found["msg"],
                remedy="component results are JSON as docs/design.md describes",
                path=path,
                field=".".join(map(str, found["loc"])) or None,
            )
            for found in error.errors(include_url=False, include_input=False)
        ]
        raise ContentError(findings) from None


def judge_component(found: ComponentTest) -> ComponentVerdict:
    """Judge one component test; without a negative control it is inconclusive."""
    numbers = f"error {found.error:.3g}, bound {found.bound:.3g}"
    errors = [found.error, *(control.error for control in found.controls)]
    passing = [control.name for control in found.controls if control.error <= found.bound]
    if not all(math.isfinite(error) and error >= 0 for error in errors):
        result, detail = Result.FAIL, f"{numbers}: an error or a control's error is not a number of 0 or more"
    elif found.error > found.bound:
        result, detail = Result.FAIL, f"{numbers}: outside the bound"
    elif passing:
        result, detail = Result.FAIL, f"{numbers}: the controls {', '.join(passing)} are within the bound too"
    elif not found.controls:
        result, detail = Result.INCONCLUSIVE, f"{numbers}: no negative control"
    else:
        nearest = min(control.error for control in found.controls)
        result, detail = Result.PASS, f"{numbers}; all {len(found.controls)} controls outside (nearest {nearest:.3g})"
    return ComponentVerdict(test=found.test, shape=found.shape, result=result, detail=detail)


def judge_components(results: ComponentResults) -> tuple[Result, tuple[ComponentVerdict, ...]]:
    """Judge all of them; no test at all is inconclusive."""
    verdicts = tuple(judge_component(test) for test in results.tests)
    return overall([verdict.result for verdict in verdicts]), verdicts
