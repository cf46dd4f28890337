"""Gradient norms at step 0, parameter by parameter: which part of the model has a wrong gradient.

Step 0 has no optimizer in it, so a difference there comes from the forward or the backward pass, or
from how gradients were reduced. The norm over all parameters can hide it (norm weights carry little
of it); one norm for each parameter cannot. A parameter differs when

    |candidate - reference| > bound * max(candidate, reference) + FLOOR * ||all reference norms||

The second term keeps parameters whose gradient is rounding noise beside the whole from being compared
digit by digit: FP32 resolves 2^-24 = 6e-8 of the terms that were summed.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from openrecipes.verify.verdict import Gate, Result

FLOOR = 1e-6
_NAMED_KINDS = 2

# The first kind whose part is in the parameter's name is its kind. Order matters: an expert's weight also
# stands inside an MLP, a norm's weight also inside an attention or a gated delta net.
_KINDS = (
    ("shared expert", ("shared_expert",)),
    ("expert", ("experts.",)),
    ("router", ("router",)),
    ("embedding", ("embedding",)),
    ("head", ("output_layer", "lm_head")),
    ("norm", ("norm",)),
    ("gated delta net", ("in_proj", "out_proj", "conv1d", "dt_bias", "A_log")),
    ("attention", ("attention",)),
    ("MLP", ("mlp",)),
)


def kind(name: str) -> str:
    """What part of the model a global parameter name belongs to, such as `expert` or `norm`."""
    return next((label for label, parts in _KINDS if any(part in name for part in parts)), "other")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """The parameters of one kind that differ: how many of how many, and the worst of them."""

    kind: str
    differing: tuple[str, ...]
    total: int
    worst: str
    worst_difference: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientComparison:
    """Candidate against reference.

    `worst` and `worst_share` name the parameter that uses most of its allowance, and how much (1 = all
    of it). `agreement` is the largest difference among the parameters that agree, as a share of the
    norm of all.
    """

    groups: tuple[Group, ...]
    only_in_candidate: tuple[str, ...]
    only_in_reference: tuple[str, ...]
    compared: int
    worst: str | None
    worst_share: float
    agreement: float

    @property
    def cause(self) -> str:
        """One line that names what differs, or says that nothing does."""
        parts = [
            f"{group.kind} gradients differ by up to {100 * group.worst_difference:.3g} % "
            f"({len(group.differing)} of {group.total} {group.kind} parameters, worst {group.worst})"
            for group in self.groups[:_NAMED_KINDS]
        ]
        if rest := self.groups[_NAMED_KINDS:]:
            parts.append(f"{', '.join(group.kind for group in rest)} gradients differ too")
        for label, names in (("candidate", self.only_in_candidate), ("reference", self.only_in_reference)):
            if names:
                parts.append(f"{len(names)} parameters only in the {label}, such as {names[0]}")
        agreeing = self.compared - sum(len(group.differing) for group in self.groups)
        whole = "the other" if parts else "all"
        parts.append(f"{whole} {agreeing} parameters agree to {self.agreement:.1g} of the whole norm")
        return "; ".join(parts)


def compare_gradients(
    candidate: Mapping[str, float], reference: Mapping[str, float], *, bound: float
) -> GradientComparison:
    """Compare two maps of global parameter name to gradient norm.

    A norm that is negative or not finite differs from everything, so it never agrees.
    """
    shared = sorted(candidate.keys() & reference.keys())
    whole = math.hypot(*(reference[name] for name in shared))
    differing: dict[str, dict[str, float]] = {}
    agreement, worst, worst_share = 0.0, None, 0.0
    for name in shared:
        share = _allowance_used(candidate[name], reference[name], bound, FLOOR * whole)
        if worst is None or share > worst_share:
            worst, worst_share = name, share
        if share > 1:
            differing.setdefault(kind(name), {})[name] = _relative(candidate[name], reference[name])
        elif whole:
            agreement = max(agreement, abs(candidate[name] - reference[name]) / whole)
    totals = Counter(kind(name) for name in shared)
    groups = [
        Group(
            kind=label,
            differing=tuple(found),
            total=totals[label],
            worst=(largest := max(found, key=found.__getitem__)),
            worst_difference=found[largest],
        )
        for label, found in differing.items()
    ]
    return GradientComparison(
        groups=tuple(sorted(groups, key=lambda group: -group.worst_difference)),
        only_in_candidate=tuple(sorted(candidate.keys() - reference.keys())),
        only_in_reference=tuple(sorted(reference.keys() - candidate.keys())),
        compared=len(shared),
        worst=worst,
        worst_share=worst_share,
        agreement=agreement,
    )


def gradients_gate(
    candidate: Mapping[str, float] | None,
    references: Sequence[Mapping[str, float] | None],
    *,
    bound: float,
    noise_share: float,
) -> Gate:
    """The gate over all parameters, against the first reference run.

    Inconclusive where an arm has no gradients, or where the reference runs differ among themselves by more
    than `noise_share` of the bound and the candidate is no further away than bound and noise together.
    """
    known = [reference for reference in references if reference]
    if not candidate or not known or len(known) < len(references):
        lacking = "a reference arm" if candidate else "the candidate arm"
        return Gate(id="step0_gradients", result=Result.INCONCLUSIVE, detail=f"{lacking} has no gradients")
    found = compare_gradients(candidate, known[0], bound=bound)
    noise = max((compare_gradients(other, known[0], bound=bound).worst_share for other in known[1:]), default=0.0)
    detail = found.cause
    if found.only_in_candidate or found.only_in_reference:
        result = Result.FAIL
    elif noise > noise_share and found.worst_share <= 1 + noise:
        result = Result.INCONCLUSIVE
        detail += f"; the reference runs differ by {noise:.0%} of the bound"
    else:
        result = Result.FAIL if found.groups else Result.PASS
    return Gate(
        id="step0_gradients",
        result=result,
        detail=detail,
        bound=bound,
        measured=bound * found.worst_share,
        at=found.worst,
    )


def _are_norms(*values: float) -> bool:
    return all(math.isfinite(value) and value >= 0 for value in values)


def _allowance_used(one: float, other: float, bound: float, floor: float) -> float:
    if not (_are_norms(one, other) and math.isfinite(floor)):
        return math.inf
    difference = abs(one - other)
    return difference / (bound * max(one, other) + floor) if difference else 0.0


def _relative(one: float, other: float) -> float:
    return abs(one - other) / max(one, other) if _are_norms(one, other) else math.inf
