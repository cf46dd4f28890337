"""Real rehearsals with a deliberate fault each: the verifier must name every one, and no honest layout.

All runs share one host process, since importing torch and Megatron-Core takes longer than a run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openrecipes.data.rows import write_rows
from openrecipes.engines.rehearsal import RehearsalJob, read_log
from openrecipes.verify.arm import Arm
from openrecipes.verify.convergence import Convergence, judge
from openrecipes.verify.verdict import Result

MODEL = Path(__file__).parents[2] / "examples/tiny-qwen3.5-moe/config.json"
STEPS, GLOBAL_BATCH, ROW_TOKENS = 20, 4, 32
ONE, TP2, DP2 = ("tp=1", 1), ("tp=2,ep=2,etp=1", 2), ("tp=1", 2)

RUNS: dict[str, tuple[tuple[str, int], str, tuple[str, ...]]] = {
    "reference-0": (ONE, "natural", ()),
    "reference-1": (ONE, "reversed", ()),
    "honest TP2 EP2": (TP2, "natural", ()),
    "honest PP2": (("pp=2", 2), "natural", ()),
    "honest DP2": (DP2, "natural", ()),
    "upstream TP2 EP1 ETP1": (("tp=2,ep=1,etp=1", 2), "natural", ()),
    "norm_grads_unreduced_over_tp": (TP2, "natural", ("norm_grads_unreduced_over_tp",)),
    "loss_scaled_by_dp": (DP2, "natural", ("loss_scaled_by_dp",)),
    "microbatch_dropped": (ONE, "natural", ("microbatch_dropped",)),
    "rows_shuffled": (ONE, "natural", ("rows_shuffled",)),
    "nan_at_step_7": (ONE, "natural", ("nan_at_step_7",)),
    "lr_x1.1": (ONE, "natural", ("lr_x1.1",)),
}

CAUGHT_BY = {
    "norm_grads_unreduced_over_tp": ["step0_grad_norm", "step0_gradients"],
    "loss_scaled_by_dp": ["step0_grad_norm", "step0_gradients"],
    "microbatch_dropped": ["step0_loss", "step0_grad_norm", "step0_gradients"],
    "rows_shuffled": ["step0_loss", "step0_grad_norm", "step0_gradients"],
    "nan_at_step_7": ["finite"],
    "lr_x1.1": ["curve_loss", "curve_grad_norm"],
    "upstream TP2 EP1 ETP1": ["step0_grad_norm", "step0_gradients"],
}


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Convergence]:
    """Runs everything once, then judges a run by its name."""
    work = tmp_path_factory.mktemp("runs")
    draw = np.random.default_rng(7)
    shape = (STEPS * GLOBAL_BATCH, ROW_TOKENS)
    # Few frequent tokens and many rare ones, as in text; about half of them are targets.
    write_rows(
        work / "rows",
        tokenizer_ids=np.minimum(draw.zipf(1.3, shape), 500).astype(np.int32),
        loss_mask=draw.integers(0, 2, shape, dtype=np.uint8),
        manifest={},
    )
    for name, ((layout, ranks), row_order, faults) in RUNS.items():
        RehearsalJob(
            model=str(MODEL),
            rows=str(work / "rows"),
            layout=layout,
            ranks=ranks,
            steps=STEPS,
            global_batch=GLOBAL_BATCH,
            out=str(work / name),
            row_order=row_order,
            faults=faults,
        ).write(work / f"{name}.json")
    jobs = [str(work / f"{name}.json") for name in RUNS]
    subprocess.run([sys.executable, "-m", "openrecipes.rehearse", *jobs], check=True, stdout=subprocess.DEVNULL)
    references = [_arm(work / "reference-0"), _arm(work / "reference-1")]
    return lambda name: judge(_arm(work / name), references, steps=STEPS)


def _arm(folder: Path) -> Arm:
    arguments = json.loads((folder / "resolved.json").read_text(encoding="utf-8"))["arguments"]
    return Arm(
        name=folder.name,
        steps=read_log((folder / "run.log").read_text(encoding="utf-8").splitlines()),
        rows_sha256=arguments["rows_sha256"],
        row_order=arguments["row_order"],
        gradients=json.loads((folder / "gradients.json").read_text(encoding="utf-8")),
    )


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith("honest")])
def test_an_honest_layout_passes_with_room_to_spare(verdict: Callable[[str], Convergence], name: str) -> None:
    found = verdict(name)
    assert found.result is Result.PASS, found.cause
    shares = {gate.id: gate.share for gate in found.gates if gate.share is not None}
    assert max(shares.values()) < 0.5, shares


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_a_fault_is_caught_by_its_gates(verdict: Callable[[str], Convergence], name: str) -> None:
    found = verdict(name)
    failing = [gate.id for gate in found.gates if gate.result is Result.FAIL]
    expected = CAUGHT_BY[name]
    assert found.result is Result.FAIL
    assert failing[: len(expected)] == expected
    assert found.cause.startswith(f"{expected[0]}: ")


def test_the_cause_names_the_part_of_the_model(verdict: Callable[[str], Convergence]) -> None:
    norms = verdict("norm_grads_unreduced_over_tp").cause
    assert "norm gradients differ" in norms
    assert "expert gradients" not in norms
    experts = verdict("upstream TP2 EP1 ETP1").cause
    assert "expert gradients differ" in experts
    assert "norm gradients" not in experts
