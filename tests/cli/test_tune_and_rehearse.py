"""`tune` and `rehearse` as a person calls them; whole tunes are in tests/tune."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from openrecipes.engines.rehearsal import read_log
from openrecipes.tune import tuner
from openrecipes.tune.report import proposal_tables

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiny-qwen3.5-moe.workload.yaml"
COMMAND = Path(sys.executable).with_name("openrecipes")


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=environment, **options
    )  # type: ignore[call-overload]


def test_a_dry_run_shows_the_trials_in_their_order(monkeypatch, golden):
    monkeypatch.setattr(tuner, "_cores", lambda: 2)  # the order depends on them
    with Console(width=80, file=io.StringIO()) as console:
        for part in proposal_tables(tuner.plan(EXAMPLE)):
            console.print(part)
        text = console.file.getvalue()  # type: ignore[attr-defined]
    golden("tune-dry-run.txt", "\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def test_a_dry_run_writes_nothing(tmp_path):
    done = run("tune", EXAMPLE, "--out", tmp_path / "out", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 reference runs and 25 trials on 4 ranks" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_for_machines_has_the_same_trials(tmp_path):
    found = json.loads(run("tune", EXAMPLE, "--out", tmp_path / "out", "--dry-run", "--json").stdout)
    assert (found["format_version"], found["ok"], found["findings"]) == (1, True, [])
    speeds = [trial["relative_speed"] for trial in found["trials"]]
    assert speeds == sorted(speeds, reverse=True)
    assert speeds[0] == 1
    labels = {trial["label"] for trial in found["trials"]}
    assert len(labels) == len(speeds) == 25
    warned = {trial["label"] for trial in found["trials"] if any("L201" in text for text in trial["warnings"])}
    assert warned == {label for label in labels if "ETP" in label and " EP" not in f" {label}"}
    assert len(found["references"]) == 2


def test_a_wrong_workload_is_one_json_object_too(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(EXAMPLE.read_text().replace("ranks: 4", "ranks: four"))
    done = run("tune", path, "--out", tmp_path / "out", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr, found["ok"]) == (1, "", False)
    assert [finding["field"] for finding in found["findings"]] == ["ranks"]
    assert path.read_text().splitlines()[found["findings"][0]["line"] - 1] == "ranks: four"


def test_a_rehearsal_leaves_its_files_and_prints_its_steps(tmp_path):
    out = tmp_path / "out [1]"  # brackets are no markup
    arguments = ("rehearse", EXAMPLE, "--layout", "tp=2,ep=2,etp=1", "--ranks", 2, "--steps", 2, "--out", out)
    job = json.loads(run(*arguments, "--dry-run").stdout)["job"]
    assert job["layout"] == "tp=2,pp=1,vpp=1,cp=1,ep=2,etp=1,rows_per_microbatch=1,sp=true"
    assert not out.exists()

    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["layout"] == job["layout"]
    logged = read_log((out / "run.log").read_text().splitlines())
    assert [json.loads(record.to_json()) for record in logged] == found["steps"]
    assert [record.step for record in logged] == [0, 1]
    for name in ("resolved.json", "environment.json", "gradients.json", "outcome.json", "steps.jsonl"):
        assert (out / name).stat().st_size, name

    again = run(*arguments)
    assert again.returncode == 2
    assert f"{out} is not empty" in again.stderr


@pytest.mark.parametrize("verb", ["tune", "rehearse --layout tp=1 --ranks 1"])
def test_a_full_disk_leaves_no_half_written_rows(tmp_path, verb):
    def no_file_above_4_kb() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    out = tmp_path / "out"
    done = run(*verb.split(), EXAMPLE, "--out", out, preexec_fn=no_file_above_4_kb)
    assert done.returncode == 4, done.stderr
    assert f"openrecipes: cannot write rows to {out / 'rows'}: the disk is full" in done.stderr
    assert list(tmp_path.rglob("*")) in ([], [out])
