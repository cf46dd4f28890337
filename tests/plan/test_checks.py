from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openrecipes.errors import Severity
from openrecipes.plan import checks
from openrecipes.plan.checks import CHECKS
from openrecipes.plan.rules import RULES, WARNINGS
from openrecipes.recipe.checkable import Case, Level, Outcome, Place, Status
from openrecipes.recipe.fields.machine import Stack

from .shapes import TOY

PLACES = {"layout": Place(line=20, column=1), "layout.vpp": Place(line=23, column=8)}
ANSWERED_HERE = [check.id for check in CHECKS if not next(r for r in (*RULES, *WARNINGS) if r.id == check.id).twin]


@pytest.fixture
def ask(monkeypatch):
    """Run one check on an entry of the toy model on 4 ranks, with changes to layout and engine."""

    def run(id: str, *, framework: str = "rehearsal (openrecipes)", shape: Any = TOY, **changes: Any) -> Outcome:
        monkeypatch.setattr(checks, "shape_of", lambda case: shape)
        layout = {"tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "etp": 1, "rows_per_microbatch": 1}
        layout |= {"sequence_parallel": False, "recompute": None}
        work = {"global_batch": 8, "row_tokens": 64}
        recipe: Any = SimpleNamespace(
            stack=Stack.model_construct(framework=framework),
            gpu=SimpleNamespace(count=4),
            workload=SimpleNamespace(**work | {k: v for k, v in changes.items() if k in work}),
            layout=SimpleNamespace(**layout | {k: v for k, v in changes.items() if k in layout}),
        )
        case = Case(path=Path("entry.yaml"), recipe=recipe, places=PLACES)
        return next(check for check in CHECKS if check.id == id).run(case)

    return run


BROKEN = {
    "L105": {"vpp": 2},
    "L106": {"pp": 2, "vpp": 2, "global_batch": 6},
    "L112": {
        "tp": 2,
        "etp": 2,
        "sequence_parallel": True,
        "shape": dataclasses.replace(TOY, mlp=dataclasses.replace(TOY.experts, shared_width=31)),
    },
    "L113": {"tp": 2, "etp": 2, "sequence_parallel": True, "shape": dataclasses.replace(TOY, vocab_size=4095)},
    "L115": {"tp": 2, "etp": 2},
    "L116": {"sequence_parallel": True},
    "L117": {"tp": 2, "etp": 2, "sequence_parallel": True, "row_tokens": 63},
    "L118": {"cp": 2},
    "L201": {"tp": 2, "sequence_parallel": True},
}


def test_every_rule_is_a_check():
    assert [check.id for check in CHECKS] == [rule.id for rule in (*RULES, *WARNINGS)]
    assert all(check.level is Level.CONSISTENT and check.explanation for check in CHECKS)
    assert BROKEN.keys() == set(ANSWERED_HERE)


@pytest.mark.parametrize("id", ANSWERED_HERE)
def test_a_legal_entry_passes(ask, id):
    assert ask(id).status is Status.PASS
    assert ask(id).findings == ()


@pytest.mark.parametrize("id", ANSWERED_HERE)
def test_only_the_broken_rule_answers(ask, id):
    outcomes = {check.id: ask(check.id, **BROKEN[id]) for check in CHECKS}
    found = [finding for outcome in outcomes.values() for finding in outcome.findings]
    assert [finding.id for finding in found] == [id]
    warned = id.startswith("L2")
    assert found[0].severity is (Severity.WARNING if warned else Severity.ERROR)
    assert outcomes[id].status is (Status.PASS if warned else Status.FAIL)


def test_a_finding_points_at_its_field(ask):
    (finding,) = ask("L105", vpp=2).findings
    assert (finding.line, finding.column, finding.field) == (23, 8, "layout.vpp")
    assert finding.remedy == "use VPP 1, or PP 2 or more"


def test_a_rule_that_another_check_answers_is_not_answered_twice(ask):
    assert ask("L101", tp=3).status is Status.NOT_APPLICABLE
    assert ask("L101", tp=3).detail == "answered by A101"


def test_rules_of_the_rehearsal_do_not_hold_for_launchers(ask):
    assert ask("L116", framework="slime with patches", sequence_parallel=True).status is Status.NOT_APPLICABLE
    assert ask("L115", framework="slime with patches", tp=2, etp=2).status is Status.FAIL


def test_an_unknown_model_is_not_checked(ask):
    outcome = ask("L105", shape="the model `x` is not among the recorded ones")
    assert outcome.status is Status.NOT_CHECKED
    assert "`x`" in outcome.detail
