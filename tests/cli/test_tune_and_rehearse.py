"""`tune` and `rehearse` as a person calls them; whole tunes are in tests/tune."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from openrecipes.cli.main import app
from openrecipes.engines.rehearsal import read_log
from openrecipes.tune import tuner
from openrecipes.tune.report import proposal_tables

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiny-qwen3.5-moe.workload.yaml"
START = "from openrecipes.cli.main import main; main()"
# Python ignores the signal that a write beyond the limit sends, so that the write fails as on a full disk.
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, 2 * ({bytes},)); " + START
COMMAND = [sys.executable, "-c", START]


def run(*arguments: object, largest_file: int | None = None) -> subprocess.CompletedProcess[str]:
    start = START if largest_file is None else LIMITED.format(bytes=largest_file)
    return subprocess.run(
        [sys.executable, "-c", start, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )


def test_a_dry_run_shows_the_trials_in_their_order(monkeypatch, golden):
    monkeypatch.setattr(tuner, "_cores", lambda: 2)  # the order depends on them
    console = Console(width=80, file=io.StringIO(), color_system=None)
    for part in proposal_tables(tuner.plan(EXAMPLE)):
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "2 reference runs and 25 trials on 4 ranks" in text
    assert "L201" in text
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
    out = tmp_path / "out"
    done = run(*verb.split(), EXAMPLE, "--out", out, largest_file=4096)
    assert done.returncode == 4, done.stderr
    assert f"openrecipes: cannot write rows to {out / 'rows'}: the disk is full" in done.stderr
    assert list(tmp_path.rglob("*")) in ([], [out])


def test_an_interrupted_rehearsal_says_130_and_leaves_no_rank(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [*COMMAND, "rehearse", str(EXAMPLE), "--layout", "pp=2,vpp=2", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = out / "run.log"
    wait_for(lambda: (log.exists() and "step {" in log.read_text()) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    wait_for(lambda: not processes_writing_below(out))


def test_an_interrupted_tune_names_its_folder_whatever_it_is_called(tmp_path, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuner, "tune", interrupted)
    out = tmp_path / "[red]out[" / "b]"
    done = CliRunner().invoke(app, ["tune", str(EXAMPLE), "--out", str(out)])
    assert done.exit_code == 130
    assert f"goes on after the finished arms in {out}" in done.stderr


# The tests below share one small workload: one rank, so that there are three arms, each of a second.


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload whose only trial is the reference layout again; it writes less than 9 KB of rows."""
    fields = yaml.safe_load(EXAMPLE.read_text())
    fields.update(ranks=1, model=str(EXAMPLE.parent / fields["model"]))
    fields["data"].update(row_tokens=24)
    path = tmp_path_factory.mktemp("workload") / "small.yaml"
    path.write_text(yaml.safe_dump(fields))
    return path


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A tune whose first arm found no room for a file of more than 10 kB, and that was started again with room."""

    out: Path
    stopped: subprocess.CompletedProcess[str]
    arms_then: list[str]
    written_then: dict[Path, int]


@pytest.fixture(scope="module")
def tuned(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    out = tmp_path_factory.mktemp("tuned") / "out"
    stopped = run("tune", small, "--out", out, largest_file=10_000)
    arms_then, written_then = arms(out), times_of([out / "rows/rows.npy", out / "component_results.json"])
    done = run("tune", small, "--out", out)
    assert done.returncode == 0, done.stderr
    return Tuned(out, stopped, arms_then, written_then)


@pytest.fixture
def damaged(tuned: Tuned, tmp_path: Path) -> Path:
    """A copy of a finished tune, for a test to damage."""
    return shutil.copytree(tuned.out, tmp_path / "out")


def test_a_tune_that_found_no_room_within_an_arm_goes_on_once_there_is_room(tuned):
    assert tuned.stopped.returncode == 4
    assert "reference DP1, natural order: rank 0: OSError: [Errno 27] File too large" in tuned.stopped.stderr
    assert "make room, and the same command goes on from here" in tuned.stopped.stderr
    assert "Traceback" not in tuned.stopped.stderr
    assert tuned.arms_then == [], "a full disk says nothing about a layout"
    assert arms(tuned.out) == ["reference-0", "reference-1", "dp1"]
    assert times_of(tuned.written_then) == tuned.written_then


def test_a_tune_on_a_full_disk_keeps_what_finished_and_repeats_none_of_it(small, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=88k", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        out = disk / "out"
        done = run("tune", small, "--out", out)
        assert done.returncode == 4
        assert "No space left on device" in done.stderr
        assert "make room" in done.stderr
        assert arms(out) == ["reference-0"]
        kept = (out / "journal.jsonl").read_text()
        finished = times_of((out / "reference-0").iterdir())
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)

        done = run("tune", small, "--out", out)
        assert done.returncode == 0, done.stderr
        assert "1 of 3 arms are in the journal and are not repeated" in done.stderr
        assert (out / "journal.jsonl").read_text().startswith(kept)
        assert arms(out) == ["reference-0", "reference-1", "dp1"]
        assert times_of(finished) == finished
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize(
    ("arm", "damage"),
    [
        ("dp1", lambda arm: shutil.rmtree(arm)),
        ("dp1", lambda arm: (arm / "steps.jsonl").write_text("")),  # as good as any, only that no step is left
        ("reference-1", lambda arm: (arm / "gradients.json").write_text("{")),
    ],
    ids=["no folder", "no steps", "half a file"],
)
def test_an_arm_whose_files_are_damaged_is_run_again_and_judges_nothing(small, damaged, arm, damage):
    damage(damaged / arm)
    done = run("tune", small, "--out", damaged, "--json")
    assert done.returncode == 0, done.stderr
    assert "2 of 3 arms are in the journal and are not repeated" in done.stderr
    assert arms(damaged) == ["reference-0", "reference-1", "dp1", arm]
    found = json.loads(done.stdout)
    assert [trial["verdict"] for trial in found["trials"]] == ["pass"]
    assert found["level"] == "verified"


@pytest.mark.parametrize(
    ("damage", "code", "told"),
    [
        (lambda out: append(out / "journal.jsonl", "garbage\n"), 2, "line 5 is not understood"),
        (lambda out: append(out / "journal.jsonl", '{"arm": 3, "layout": "tp=1"}\n'), 2, "line 5 is not understood"),
        (lambda out: (out / "rows/rows.npy").unlink(), 1, "remove the folder and build the rows again"),
        (lambda out: (out / "rows/manifest.json").write_text("{"), 1, "not readable as JSON"),
        (lambda out: (out / "component_results.json").write_text("{"), 1, "component_results.json: error V003"),
        (lambda out: (out / "lock").unlink() or (out / "lock").mkdir(), 2, "Is a directory"),
    ],
    ids=[
        "no JSON in the journal",
        "no arm in the journal",
        "no rows",
        "half a manifest",
        "half the components",
        "lock",
    ],
)
def test_what_else_is_damaged_in_the_folder_of_a_tune_is_named(small, damaged, damage, code, told):
    damage(damaged)
    done = run("tune", small, "--out", damaged)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert str(damaged) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_of_something_else_is_left_alone(small, tmp_path):
    (tmp_path / "dp1").mkdir()
    (tmp_path / "dp1" / "precious").write_text("mine")
    (tmp_path / "old.partial").mkdir()
    before = sorted(tmp_path.rglob("*"))
    done = run("tune", small, "--out", tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path} holds dp1, old.partial and no journal of a tune" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def arms(out: Path) -> list[str]:
    """The arms in the journal, in the order in which they ended."""
    return [json.loads(line)["arm"] for line in (out / "journal.jsonl").read_text().splitlines()[1:]]


def times_of(paths: Iterable[Path]) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in paths}


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def processes_writing_below(folder: Path) -> list[Path]:
    """The open files below `folder` of every process, such as the logs of a host and its ranks."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            found.append(link.readlink())
    return [path for path in found if folder in path.parents]
