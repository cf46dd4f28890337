"""What a tune prints; no run is needed for it."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.tune.made import WARNING, trial

from openrecipes.engines.steps import StepRecord
from openrecipes.recipe.checkable import Level
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.rehearsal import Rehearsed
from openrecipes.tune.report import steps_json, to_json, to_tables
from openrecipes.tune.tuner import Tuned
from openrecipes.verify.verdict import Result

LONGEST = "tp=2,pp=2,vpp=2,ep=2,etp=1"
NEAR = trial("ep=2", step_times_s=[0.1, 0.12, 0.09])
BEST = trial("pp=2,vpp=2")
TRIALS = (
    trial("tp=2", result=None, cause="rank 1: torch.OutOfMemoryError"),
    trial("tp=2,ep=2", result=None, cause="rank 1: torch.OutOfMemoryError"),
    trial("tp=4", result=None, cause="hung: no step finished within 120 s"),
    NEAR,
    BEST,
    trial(LONGEST, Result.INCONCLUSIVE, step_times_s=[1e-5, 9e-3, 2e-5], measured=5e-5),
    trial("tp=2,etp=1", Result.FAIL, measured=1.8e-3, warnings=(WARNING,)),
    dataclasses.replace(trial("etp=2", Result.PASS), configuration_cause="lr 0.002 != 0.001"),
)
TUNED = Tuned(trials=TRIALS, best=BEST, entry=Path("out/entry/toy.yaml"), level=Level.VERIFIED)


def printed(tuned: Tuned, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    for part in to_tables(tuned):
        console.print(part)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def test_the_tables(golden):
    golden("tune.txt", printed(TUNED))


def test_without_a_winner_it_says_so(golden):
    lost = Tuned(trials=tuple(t for t in TRIALS if t.verdict != "pass"))
    golden("tune-lost.txt", printed(lost))
    assert json.loads(to_json(lost))["ok"] is False


def test_nothing_is_cut_in_eighty_columns():
    wide = trial(LONGEST, Result.INCONCLUSIVE, step_times_s=[1e-6, 9e-6], measured=5e-5)
    wide = dataclasses.replace(wide, label=Layout.parse(LONGEST).label(64))
    text = printed(Tuned(trials=(*TRIALS, wide)))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    for one in (*TRIALS, wide):
        assert one.label in text
        assert one.verdict in text
    assert f"{wide.tokens_per_s:,.0f}" in text


def test_the_json(golden):
    golden("tune.json", to_json(TUNED) + "\n")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_json_does_not_have_is_null(value):
    diverged = StepRecord(step=0, loss=value, grad_norm=1.0, step_time_s=0.5, tokens=8)
    rehearsed = Rehearsed(layout=Layout(), ranks=1, steps=(diverged,), out=Path("out"))
    assert strict(steps_json(rehearsed))["steps"] == [
        {"step": 0, "loss": None, "grad_norm": 1.0, "step_time_s": 0.5, "tokens": 8}
    ]
    lost = trial("pp=2", Result.FAIL, measured=value)
    (found,) = strict(to_json(Tuned(trials=(lost,))))["trials"]
    assert [gate["measured"] for gate in found["gates"]] == [None, 1e-9, None]


def strict(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)
