"""The arms of a comparison, read from the evidence of an entry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from openrecipes.errors import ContentError, Finding, Severity
from openrecipes.measure.evidence import LogReader, disagreement, listed, logged_steps, steps_of
from openrecipes.measure.resolved import resolved_of
from openrecipes.recipe import evidence as manifest
from openrecipes.recipe.evidence import Evidence
from openrecipes.verify.arm import Arm


def reference_runs(evidence: Evidence) -> list[int]:
    """The numbers of the reference runs that the manifest lists steps for."""
    return sorted({file.run for file in evidence.find("steps", "reference")})


def load_arm(evidence: Evidence, arm: manifest.Arm, run: int, read_log: LogReader | None) -> Arm | None:
    """One run; None where the manifest lists no steps for it. A raw log that can be read must agree with them.

    Raises:
        ContentError: a file was altered or cannot be understood, or log and steps differ.
    """
    steps = steps_of(evidence, arm, run)
    if steps is None:
        return None
    name = arm if arm != "reference" else f"reference run {run}"
    logged = logged_steps(evidence, arm, run, read_log) if read_log else None
    if logged is not None and (found := disagreement(logged, steps)):
        raise ContentError([_finding(evidence.manifest, f"{name}: {found}", "make the steps file from the log")])
    resolved = resolved_of(evidence, arm, run)
    arguments = resolved.arguments if resolved else {}
    return Arm(
        name=name,
        steps=steps,
        rows_sha256=_text(arguments.get("rows_sha256")),
        row_order=_text(arguments.get("row_order")),
        gradients=gradients_of(evidence, arm, run),
    )


def gradients_of(evidence: Evidence, arm: manifest.Arm, run: int) -> Mapping[str, float] | None:
    """A run's gradient norms at step 0 by global parameter name; None where the manifest lists none.

    Raises:
        ContentError: the file was altered or is not a JSON object of numbers.
    """
    file = listed(evidence, "gradients", arm, run)
    if file is None:
        return None
    path = evidence.folder / file.path
    content = evidence.read(file)
    try:
        return {name: _number(name, value) for name, value in json.loads(content).items()}
    except (ValueError, AttributeError, OverflowError, RecursionError) as error:
        message = f"not gradient norms: {error}"
        raise ContentError([_finding(path, message, "expected one JSON object {parameter name: norm}")]) from None


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name} is {value!r}, expected a number")
    return float(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _finding(path: Path, message: str, remedy: str) -> Finding:
    return Finding(id="V002", severity=Severity.ERROR, message=message, remedy=remedy, path=path)
