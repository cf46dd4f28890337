"""What a tune prints; no run is needed for it."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

from rich.console import Console
from tests.tune.made import WARNING, trial

from openrecipes.recipe.checkable import Level
from openrecipes.tune.report import to_json, to_tables
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
    text = printed(TUNED)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    for one in TRIALS:
        assert one.label in text


def test_the_json(golden):
    golden("tune.json", to_json(TUNED) + "\n")
