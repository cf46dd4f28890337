"""Check one entry: read it, run every check on it, and compute its level."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from openrecipes.check.level import claim_finding, level_of
from openrecipes.check.registry import CHECKS
from openrecipes.errors import ContentError, Finding, OpenRecipesError, Severity
from openrecipes.recipe.checkable import Case, Check, Level, Outcome, failed, not_checked
from openrecipes.recipe.evidence import Evidence, load_evidence
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import LoadedRecipe, load_recipe


@dataclasses.dataclass(frozen=True, kw_only=True)
class EntryReport:
    """What was found about one entry.

    `recipe`, `level` and `claimed` are None where the file is no recipe; `findings` then says why.
    `outcomes` maps each check's id to its answer; `findings` holds all findings, those of the outcomes too.
    """

    path: Path
    recipe: Recipe | None = None
    outcomes: Mapping[str, Outcome] = dataclasses.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    level: Level | None = None
    claimed: Level | None = None


def check_entry(
    path: Path, *, usd_per_gpu_hour: float | None = None, checks: Mapping[str, Check] = CHECKS
) -> EntryReport:
    """Run `checks` on the entry at `path`; `usd_per_gpu_hour` overrides every recorded price.

    Raises:
        UsageError: the path is missing, a directory, or cannot be opened.
    """
    try:
        loaded = load_recipe(path)
    except ContentError as error:
        return EntryReport(path=path, findings=error.findings)
    evidence, findings = _evidence(loaded)
    case = Case(
        path=path,
        recipe=loaded.recipe,
        places=loaded.places,
        evidence=evidence,
        usd_per_gpu_hour=usd_per_gpu_hour,
    )
    outcomes = {id: _answer(check, case) for id, check in checks.items()}
    findings += [finding for outcome in outcomes.values() for finding in outcome.findings]
    level = level_of(checks.values(), outcomes)
    if claim := claim_finding(case, level):
        findings.append(claim)
    return EntryReport(
        path=path,
        recipe=loaded.recipe,
        outcomes=outcomes,
        # Several checks may meet the same damaged file of evidence; it is one finding.
        findings=tuple(dict.fromkeys(findings)),
        level=level,
        claimed=Level[loaded.recipe.status.upper()],
    )


def _evidence(loaded: LoadedRecipe) -> tuple[Evidence | None, list[Finding]]:
    if loaded.recipe.evidence is None:
        return None, []
    try:
        return load_evidence(loaded.path, loaded.recipe.evidence), []
    except ContentError as error:
        return None, list(error.findings)


def _answer(check: Check, case: Case) -> Outcome:
    """The check's answer; what it could not read is its answer too."""
    try:
        return check.run(case)
    except ContentError as error:
        return failed("what it looks at is damaged", *error.findings)
    except OpenRecipesError as error:
        remedy = "the check looks again once this is mended"
        return not_checked(str(error), case.finding(check.id, None, str(error), remedy, severity=Severity.WARNING))
