"""Every layout that the trainer accepts on a given number of ranks."""

from __future__ import annotations

from collections.abc import Iterator

from openrecipes.errors import UsageError
from openrecipes.model.shape import ModelShape
from openrecipes.plan.rules import violations
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.parallel import Layout

MAX_RANKS = 4096
"""Above this the list is too long to be tried or read."""


def legal_layouts(model: ModelShape, workload: PlanWorkload, *, rows_per_microbatch: int = 1) -> tuple[Layout, ...]:
    """All legal layouts over TP, PP, VPP, EP and ETP with CP 1, sequence parallel on exactly where TP > 1.

    The order is by PP, VPP, TP, EP, ETP, each ascending, and depends on nothing else.

    Raises:
        UsageError: a size is not in its range, or there is no legal layout (saying why plain data
            parallel is none).
    """
    _require_sizes(workload, rows_per_microbatch)
    candidates = _candidates(model, workload.ranks, rows_per_microbatch)
    legal = tuple(layout for layout in candidates if not violations(layout, model, workload))
    if not legal:
        plain = Layout(rows_per_microbatch=rows_per_microbatch)
        reasons = "\n".join(f"  {violation}" for violation in violations(plain, model, workload))
        raise UsageError(
            f"no layout trains this model on {workload.ranks} ranks; the plainest, DP {workload.ranks}, breaks\n"
            f"{reasons}"
        )
    return legal


def _candidates(model: ModelShape, ranks: int, rows_per_microbatch: int) -> Iterator[Layout]:
    """Layouts whose sizes divide what they must; nothing legal is left out, the rules judge the rest."""
    for pp in _divisors(ranks):
        for vpp in _divisors(model.layers // pp) if pp > 1 and model.layers % pp == 0 else [1]:
            for tp in _divisors(ranks // pp):
                for ep in _divisors(ranks // pp) if model.experts else [1]:
                    # Without experts ETP shards nothing, so only the default is a layout of its own.
                    for etp in _divisors(ranks // pp // ep) if model.experts else [tp]:
                        yield Layout(
                            tp=tp,
                            pp=pp,
                            vpp=vpp,
                            ep=ep,
                            etp=etp,
                            rows_per_microbatch=rows_per_microbatch,
                            sp=tp > 1,
                        )


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _require_sizes(workload: PlanWorkload, rows_per_microbatch: int) -> None:
    if not 1 <= workload.ranks <= MAX_RANKS:
        raise UsageError(f"ranks is {workload.ranks}, expected 1 to {MAX_RANKS}")
    sizes = {
        "global_batch": workload.global_batch,
        "row_tokens": workload.row_tokens,
        "rows_per_microbatch": rows_per_microbatch,
    }
    if wrong := [f"{name} is {size}" for name, size in sizes.items() if size < 1]:
        raise UsageError(f"{', '.join(wrong)}; expected 1 or more")
