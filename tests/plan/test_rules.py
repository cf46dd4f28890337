from __future__ import annotations

import dataclasses

import pytest

from openrecipes.errors import UsageError
from openrecipes.model.shape import Experts
from openrecipes.plan.rules import RULES, WARNINGS, require_legal, violations, warnings
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.parallel import Layout

from .shapes import DENSE, FULL, LINEAR, TOY, WORK


def ids(found) -> set[str]:
    return {violation.id for violation in found}


def ranks(number: int, **changes) -> PlanWorkload:
    return dataclasses.replace(WORK, ranks=number, **changes)


NARROW = dataclasses.replace(TOY, mlp=Experts(experts=8, top_k=2, width=30, shared_width=32))
NARROW_SHARED = dataclasses.replace(TOY, mlp=Experts(experts=8, top_k=2, width=32, shared_width=31))
THREE_GROUPS = dataclasses.replace(
    TOY, attention=dataclasses.replace(TOY.attention, heads=12, kv_heads=3), layer_types=(FULL,) * 4
)
ODD_HEADS = dataclasses.replace(
    TOY, attention=dataclasses.replace(TOY.attention, heads=5, kv_heads=1), layer_types=(FULL,) * 4
)
ODD_KEYS = dataclasses.replace(TOY, gated_delta_net=dataclasses.replace(TOY.gated_delta_net, key_heads=1))
ODD_VALUES = dataclasses.replace(TOY, gated_delta_net=dataclasses.replace(TOY.gated_delta_net, value_heads=5))

# One layout a rule that breaks this rule and no other, and a neighbour that is legal.
BROKEN = {
    "L101": ("tp=2,etp=1", TOY, ranks(3, global_batch=9), "tp=1"),
    "L102": ("tp=2,etp=4,ep=2", TOY, WORK, "tp=2,etp=2,ep=2"),
    "L103": ("pp=4", dataclasses.replace(TOY, layer_types=(LINEAR,) * 6), WORK, "pp=2"),
    "L104": ("pp=2,vpp=3", TOY, ranks(4, global_batch=12), "pp=2,vpp=2"),
    "L105": ("vpp=2", TOY, WORK, "pp=2,vpp=2"),
    "L106": ("pp=2,vpp=2", TOY, ranks(4, global_batch=6), "pp=2"),
    "L107": ("tp=2", ODD_HEADS, WORK, "tp=1"),
    "L108": ("tp=2", THREE_GROUPS, WORK, "tp=1"),
    "L109": ("tp=2", ODD_KEYS, WORK, "tp=1"),
    "L110": ("ep=3", TOY, ranks(3, global_batch=9), "ep=1"),
    "L111": ("ep=1,etp=4", NARROW, WORK, "ep=1,etp=2"),
    "L112": ("tp=2", NARROW_SHARED, WORK, "tp=1"),
    "L113": ("tp=2", dataclasses.replace(TOY, vocab_size=4095), WORK, "tp=1"),
    "L114": ("ep=1", TOY, ranks(4, global_batch=10), "pp=2"),
    "L115": ("tp=2,sp=false", TOY, WORK, "tp=2"),
    "L116": ("tp=1,sp=true", TOY, WORK, "tp=1"),
    "L117": ("tp=2", TOY, ranks(4, row_tokens=63), "tp=1"),
    "L118": ("cp=2", TOY, WORK, "cp=1"),
}


@pytest.mark.parametrize("id", BROKEN)
def test_a_rule_alone_refuses_and_its_neighbour_is_legal(id):
    broken, model, workload, legal = BROKEN[id]
    assert ids(violations(Layout.parse(broken), model, workload)) == {id}
    assert violations(Layout.parse(legal), model, workload) == ()


def test_every_rule_has_a_case():
    assert BROKEN.keys() == {rule.id for rule in RULES}


def test_linear_value_heads_count_as_well_as_key_heads():
    assert ids(violations(Layout.parse("tp=2"), ODD_VALUES, WORK)) == {"L109"}
    full_only = dataclasses.replace(ODD_VALUES, layer_types=(FULL,) * 4)
    assert violations(Layout.parse("tp=2"), full_only, WORK) == ()


def test_key_value_heads_may_be_a_divisor_of_tp():
    # https://github.com/pytorch/torchtitan/pull/4016: 2 KV heads with TP 4 is legal in Megatron-Core.
    two = dataclasses.replace(TOY, attention=dataclasses.replace(TOY.attention, kv_heads=2))
    assert violations(Layout.parse("tp=4"), two, WORK) == ()


def test_a_dense_model_has_no_expert_parallel_and_needs_no_sequence_parallel():
    assert ids(violations(Layout.parse("ep=2"), DENSE, WORK)) == {"L110"}
    assert violations(Layout.parse("tp=2,sp=false"), DENSE, WORK) == ()


# Published layouts with their outcome: https://github.com/NVIDIA-NeMo/Megatron-Bridge issues 3747 and
# pulls 5792, 6054, 5893.
@pytest.mark.parametrize(
    ("layout", "gpus", "id"),
    [
        ("tp=2,pp=6,ep=8,etp=1", 32, "L102"),
        ("tp=2,pp=6,ep=8,etp=1", 48, None),
        ("tp=4,pp=4,ep=32", 128, "L102"),
        ("tp=4,pp=4,ep=32,etp=1", 128, None),
        ("pp=8,ep=32", 64, "L102"),
        ("pp=8,ep=8", 64, None),
    ],
)
def test_published_world_sizes(layout, gpus, id):
    found = ids(violations(Layout.parse(layout), TOY, ranks(gpus)))
    assert ("L102" in found) == (id == "L102")


def test_tp3_on_4_ranks_says_what_to_do():
    with pytest.raises(UsageError) as raised:
        require_legal(Layout.parse("tp=3"), TOY, WORK)
    text = str(raised.value)
    assert "L101: 4 ranks are no multiple of TP 3 x PP 1 x CP 1 = 3" in text
    assert "choose sizes whose product is one of 1, 2, 4" in text
    assert "8 attention heads are no multiple of TP 3; TP must be one of 1, 2, 4, 8" in text


def test_a_legal_layout_is_not_refused():
    require_legal(Layout.parse("tp=2,pp=2,ep=2,etp=1"), TOY, WORK)


@pytest.mark.parametrize(
    ("layout", "warned"),
    [
        ("tp=2,ep=1,etp=1", True),
        ("tp=1,ep=1,etp=2", True),
        ("tp=2,ep=1,etp=2", False),
        ("tp=2,ep=2,etp=1", False),
        ("tp=1,ep=1,etp=1", False),
    ],
)
def test_wrong_expert_gradient_group_is_warned_of_and_stays_legal(layout, warned):
    found = warnings(Layout.parse(layout), TOY, WORK)
    assert ids(found) == ({"L201"} if warned else set())
    assert violations(Layout.parse(layout), TOY, WORK) == ()
    assert all(violation.url.endswith("/pull/5916") for violation in found)
    assert warnings(Layout.parse(layout), DENSE, WORK) == ()


def test_rules_have_their_own_ids_and_a_source():
    every = (*RULES, *WARNINGS)
    assert len({rule.id for rule in every}) == len(every)
    assert [rule.id for rule in RULES] == sorted(rule.id for rule in RULES)
    assert all(rule.url.startswith("https://") for rule in every)
