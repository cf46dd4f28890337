"""Do two runs differ only in what may differ? Judged on arguments that were really in force.

A command line does not settle that: defaults, forced values and the environment count too. So the two
files of resolved arguments are compared value by value, and each difference is looked up in the
numerics list. A name that the list does not know fails: nobody has said what it does to the numbers.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from openrecipes.measure.resolved import NOT_SET, ResolvedArguments
from openrecipes.verify.rules import NumericsList
from openrecipes.verify.verdict import Result


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """One argument that differs. `numerics_class` is None where the list does not know the name."""

    name: str
    candidate: str
    reference: str
    numerics_class: str | None
    passes: bool
    why: str
    covered_by: str | None

    def __str__(self) -> str:
        label = self.numerics_class or "not in the numerics list"
        return f"{self.name}: {self.candidate} against {self.reference} ({label})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Configuration:
    """The verdict over all differences, sorted by name. `cause` is one line."""

    result: Result
    differences: tuple[Difference, ...]
    cause: str


def compare_arguments(
    candidate: ResolvedArguments, reference: ResolvedArguments, numerics: NumericsList
) -> Configuration:
    """Compare two runs. Without arguments to compare the verdict is inconclusive."""
    ours, theirs = candidate.flat(), reference.flat()
    differences = []
    for name in sorted(ours.keys() | theirs.keys()):
        values = _text(ours, name), _text(theirs, name)
        if values[0] == values[1]:
            continue
        rule, entry = numerics.rules.get(name, (None, None))
        differences.append(
            Difference(
                name=name,
                candidate=values[0],
                reference=values[1],
                numerics_class=entry.name if entry else None,
                passes=entry.passes if entry else False,
                why=rule.why if rule else "nobody has said what this argument does to the numbers",
                covered_by=entry.covered_by if entry else None,
            )
        )
    refused = [difference for difference in differences if not difference.passes]
    if refused:
        result, cause = Result.FAIL, "; ".join(map(str, refused))
    elif not (candidate.arguments and reference.arguments):
        result, cause = Result.INCONCLUSIVE, "a run has no resolved arguments to compare"
    else:
        counts = Counter(difference.numerics_class for difference in differences)
        classes = ", ".join(f"{count} {name}" for name, count in counts.items())
        result = Result.PASS
        cause = f"{len(ours)} arguments compared, {len(differences)} differ{': ' + classes if classes else ''}"
    return Configuration(result=result, differences=tuple(differences), cause=cause)


def _text(arguments: Mapping[str, Any], name: str) -> str:
    """The value as JSON, so that 1, 1.0, true and "1" stay apart."""
    return json.dumps(arguments[name], sort_keys=True) if name in arguments else NOT_SET
