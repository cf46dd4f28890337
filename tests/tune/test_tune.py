"""A whole tune on two ranks, killed in the middle and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from openrecipes.check.run import check_entry
from openrecipes.recipe.checkable import Level
from openrecipes.recipe.load import load_recipe

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiny-qwen3.5-moe.workload.yaml"
COMMAND = [sys.executable, "-c", "from openrecipes.cli.main import main; main()"]


def lines(out: Path) -> list[dict]:
    journal = out / "journal.jsonl"
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fields = yaml.safe_load(EXAMPLE.read_text())
    fields["ranks"] = 2
    fields["model"] = str(EXAMPLE.parent / fields["model"])
    path = tmp_path_factory.mktemp("workload") / "two-ranks.yaml"
    path.write_text(yaml.safe_dump(fields))
    return path


def run_until(command: list[str], out: Path, written: int, signal_number: int) -> tuple[int, str]:
    """Start the command, signal it once the journal has `written` lines: (exit code, what it said)."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while len(lines(out)) < written and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal_number)
    _, said = process.communicate(timeout=60)
    assert len(lines(out)) >= written, said
    return process.returncode, said


def processes_writing_below(folder: Path) -> list[str]:
    """Every process that has a file below `folder` open, as the host and its ranks have their logs."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = str(link.readlink())
        except OSError:
            continue  # it ended while we looked
        if target.startswith(str(folder)):
            found.append(f"{link}: {target}")
    return found


@pytest.fixture(scope="module")
def tuned(workload: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path, list[dict]]:
    """A tune that was interrupted, started again, killed, started again: (its JSON, its folder, what the kill left)."""
    out = tmp_path_factory.mktemp("tune") / "out"
    command = [*COMMAND, "tune", str(workload), "--out", str(out), "--json"]
    code, said = run_until(command, out, 2, signal.SIGINT)
    assert code == 130
    assert "goes on" in said
    assert "Traceback" not in said
    run_until(command, out, 4, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while processes_writing_below(out) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_writing_below(out) == []
    left = lines(out)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), out, left


def test_no_finished_arm_is_repeated_after_a_kill(tuned):
    result, out, left = tuned
    whole = lines(out)
    assert whole[: len(left)] == left
    arms = [line["arm"] for line in whole[1:]]
    assert len(arms) == len(set(arms)) == len(result["trials"]) + 2
    assert not list(out.glob("*.partial"))


def test_every_legal_layout_was_tried_and_one_is_rejected_for_its_true_reason(tuned):
    result, _, _ = tuned
    trials = {trial["label"]: trial for trial in result["trials"]}
    assert {"DP2", "EP2 DP2", "PP2 DP1", "PP2 VPP2 DP1", "TP2 DP1", "TP2 ETP1 DP1"} <= trials.keys()
    wrong = trials["TP2 ETP1 DP1"]
    assert wrong["verdict"] == "fail"
    assert "expert gradients differ" in wrong["cause"]
    assert wrong["warnings"], "the planner knew, and still let it be tried"
    assert trials["TP2 EP2 ETP1 DP1"]["verdict"] == "pass"
    assert all(trial["predicted_tokens_per_s"] > 0 for trial in trials.values())


def test_the_fastest_that_passes_wins_and_its_entry_is_verified(tuned):
    result, _, _ = tuned
    passed = [trial for trial in result["trials"] if trial["verdict"] == "pass"]
    best = max(passed, key=lambda trial: trial["measured_tokens_per_s"])
    assert result["best"] == best["layout"]
    assert result["level"] == "verified"
    entry = Path(result["entry"])
    report = check_entry(entry)
    assert report.level is Level.VERIFIED
    assert [finding for finding in report.findings if finding.severity == "error"] == []
    recipe = load_recipe(entry).recipe
    assert recipe.gpu.type == "cpu"
    assert recipe.result.mfu is None
    assert recipe.result.mfu_note
    assert recipe.result.usd_per_million_tokens is None
    assert recipe.result.usd_note
    assert recipe.result.tokens_per_s_per_gpu == pytest.approx(best["measured_tokens_per_s"] / 2, rel=1e-3)


def test_the_entry_names_no_path_of_this_machine(tuned, workload):
    result, _, _ = tuned
    entry = Path(result["entry"])
    published = [entry, *(path for path in entry.with_suffix(".evidence").rglob("*") if path.is_file())]
    for path in published:
        assert str(workload.parent) not in path.read_text(), path
        assert str(entry.parent) not in path.read_text(), path


def test_another_workload_does_not_go_on_in_that_folder(tuned, workload, tmp_path):
    _, out, _ = tuned
    other = tmp_path / "other.yaml"
    other.write_text(workload.read_text().replace("lr: 0.001", "lr: 0.002"))
    done = subprocess.run([*COMMAND, "tune", str(other), "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "another tune" in done.stderr
