from __future__ import annotations

import dataclasses
import itertools
import time

import pytest
from hypothesis import given, settings

from openrecipes.errors import UsageError
from openrecipes.plan.enumerate import MAX_RANKS, legal_layouts
from openrecipes.plan.rules import violations
from openrecipes.recipe.parallel import Layout

from .shapes import DENSE, TOY, WORK, shapes, workloads


def found(model, workload) -> tuple[Layout, ...]:
    """The legal layouts, empty where there are none."""
    try:
        return legal_layouts(model, workload)
    except UsageError:
        return ()


@settings(max_examples=60, deadline=None)
@given(shapes(), workloads())
def test_every_layout_is_legal_and_fills_the_ranks(model, workload):
    for layout in found(model, workload):
        assert violations(layout, model, workload) == ()
        assert layout.dp(workload.ranks) * layout.tp * layout.pp * layout.cp == workload.ranks
        assert layout.edp(workload.ranks) * layout.etp * layout.ep * layout.pp == workload.ranks
        assert layout.sp == (layout.tp > 1)
        rows = layout.microbatches(workload.ranks, workload.global_batch) * layout.dp(workload.ranks)
        assert rows * layout.rows_per_microbatch == workload.global_batch


@settings(max_examples=15, deadline=None)
@given(shapes(), workloads())
def test_brute_force_finds_the_same(model, workload):
    ranks = min(workload.ranks, 6)
    workload = dataclasses.replace(workload, ranks=ranks)
    sizes = range(1, ranks + 1)
    brute = set()
    for tp, pp, vpp, ep in itertools.product(sizes, sizes, range(1, model.layers + 1), sizes):
        for etp in sizes if model.experts else [tp]:
            layout = Layout(tp=tp, pp=pp, vpp=vpp, ep=ep, etp=etp, sp=tp > 1)
            if not violations(layout, model, workload):
                brute.add(layout)
    layouts = found(model, workload)
    assert set(layouts) == brute
    assert len(layouts) == len(brute)


def test_the_quickstart_has_the_layouts_that_must_be_tried():
    layouts = legal_layouts(TOY, WORK)
    needed = ["tp=2", "pp=2", "pp=2,vpp=2", "ep=2", "tp=1", "tp=2,ep=1,etp=1", "tp=2,pp=2,ep=2,etp=1", "pp=4", "tp=4"]
    assert {Layout.parse(text) for text in needed} <= set(layouts)
    assert len(layouts) == 31


def test_the_order_is_stable():
    layouts = legal_layouts(TOY, WORK)
    assert layouts == legal_layouts(dataclasses.replace(TOY), dataclasses.replace(WORK))
    assert list(layouts) == sorted(layouts, key=lambda x: (x.pp, x.vpp, x.tp, x.ep, x.etp))


def test_a_dense_model_has_no_expert_sizes():
    assert {(layout.ep, layout.etp == layout.tp) for layout in legal_layouts(DENSE, WORK)} == {(1, True)}


@pytest.mark.parametrize(
    ("changes", "rows_per_microbatch", "message"),
    [
        ({"ranks": 0}, 1, "ranks is 0"),
        ({"ranks": -4}, 1, "ranks is -4"),
        ({"ranks": MAX_RANKS + 1}, 1, "expected 1 to 4096"),
        ({"ranks": 10**30}, 1, "expected 1 to 4096"),
        ({"global_batch": 0}, 1, "global_batch is 0"),
        ({"row_tokens": -1}, 0, "row_tokens is -1, rows_per_microbatch is 0"),
        ({"ranks": 7}, 1, "the plainest, DP 7, breaks\n  L114: global batch 8 is no multiple of DP 7"),
    ],
)
def test_sizes_that_give_nothing(changes, rows_per_microbatch, message):
    with pytest.raises(UsageError, match=message):
        legal_layouts(TOY, dataclasses.replace(WORK, **changes), rows_per_microbatch=rows_per_microbatch)


def test_thousands_of_ranks_take_no_time():
    big = dataclasses.replace(TOY, layer_types=TOY.layer_types * 24)
    started = time.perf_counter()
    assert legal_layouts(big, dataclasses.replace(WORK, ranks=4096, global_batch=4096))
    assert time.perf_counter() - started < 3
