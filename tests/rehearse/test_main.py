"""The command around the runs: what it refuses, and that nothing survives a crash or a kill."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.rehearse.jobs import COMMAND, MODEL, Run, make_rows, rehearse, write_job

LONG = {"steps": 10_000, "global_batch": 1}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_rows(tmp_path_factory.mktemp("data") / "rows")


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_rows(tmp_path_factory.mktemp("data") / "rows", rows=10_000)


@contextlib.contextmanager
def host():
    """A process that reads job paths from its stdin, past its `ready` event; killed at the end."""
    process = subprocess.Popen([*COMMAND, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert next_event(process) == {"event": "ready"}
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def next_event(process: subprocess.Popen) -> dict:
    return json.loads(process.stdout.readline())


def start(process: subprocess.Popen, job: Path) -> list[int]:
    """Feed a job, wait for its first step and return the process ids of its ranks."""
    process.stdin.write(f"{job}\n")
    process.stdin.flush()
    assert next_event(process)["event"] == "step"
    return list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while alive := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_another_megatron_release_is_refused(tmp_path):
    metadata = tmp_path / "megatron_core-0.19.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: megatron-core\nVersion: 0.19.2\n")
    code, events, stderr = rehearse("-", input="", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (code, events) == (3, [])
    assert stderr.splitlines() == [
        "error: found megatron-core 0.19.2, but the CPU substitutions are proven on 0.16.1 only; "
        'install it with: pip install "megatron-core==0.16.1"'
    ]


def test_a_failing_job_leaves_its_cause_and_the_next_one_runs(tmp_path, rows):
    small = tmp_path / "small.json"
    small.write_text(MODEL.read_text().replace('"vocab_size": 4096', '"vocab_size": 16'))
    other = tmp_path / "other.json"
    other.write_text('{"model_type": "llama"}')
    expected = {
        "tp3": ("world_size (4) is not divisible by 3", {"layout": "tp=3", "ranks": 4}),
        "heads": (
            "num_attention_heads (8) must be a multiple of tensor_model_parallel_size (3)",
            {"layout": "tp=3", "ranks": 3},
        ),
        "batch": ("global batch size (7) is not divisible", {"layout": "tp=1", "ranks": 2, "global_batch": 7}),
        "model": ("model_type is 'llama'", {"model": str(other)}),
        "vocabulary": ("more than the model's vocab_size 16", {"model": str(small)}),
        "rows": ("but the rows folder holds", {"steps": 9}),
        "no rows": ("is not a folder of fixed rows", {"rows": str(tmp_path / "nowhere")}),
        "fault": ("unknown fault 'gremlin'", {"faults": ("gremlin",)}),
        "layout": ("`dp=2` not understood", {"layout": "dp=2"}),
    }
    jobs = []
    for name, (_, job) in expected.items():
        job = {"layout": "tp=1", "ranks": 1, "rows": rows, **job}
        jobs.append(write_job(tmp_path, name=name, **job))
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    no_ranks = write_job(tmp_path, rows, "no ranks", "tp=1", 0)
    good = write_job(tmp_path, rows, "good", "tp=1,rows_per_microbatch=8", 1, steps=1)

    code, events, stderr = rehearse(*jobs, damaged, no_ranks, good)

    done = {Path(event["job"]).stem: event for event in events if event["event"] == "done"}
    assert (code, stderr) == (4, "")
    assert {name: event["status"] for name, event in done.items()} == {
        **dict.fromkeys([*expected, "damaged", "no ranks"], "failed"),
        "good": "ok",
    }
    for name, (text, _) in expected.items():
        assert text in done[name]["cause"]
        outcome = Run(tmp_path / name).outcome
        assert outcome["status"] == "failed"
        assert outcome["cause"] == done[name]["cause"]
        assert outcome["rank"] in range(4)
    assert "unusable job file: JSONDecodeError" in done["damaged"]["cause"]
    assert "ranks is 0, expected a whole number of 1 or more" in done["no ranks"]["cause"]
    assert str(Path(sys.prefix)) not in json.dumps(done)


def test_a_killed_rank_is_named_and_a_killed_parent_takes_its_ranks_along(tmp_path, many_rows):
    with host() as process:
        ranks = start(process, write_job(tmp_path, many_rows, "crash", "tp=2", 2, **LONG))
        assert len(ranks) == 2
        os.kill(ranks[1], signal.SIGKILL)
        while (event := next_event(process))["event"] == "step":
            pass
        assert (event["status"], event["cause"], event["rank"]) == ("failed", "killed by SIGKILL", 1)
        assert Run(tmp_path / "crash").outcome == {"status": "failed", "cause": "killed by SIGKILL", "rank": 1}
        wait_until_gone(ranks)

        ranks = start(
            process, write_job(tmp_path, many_rows, "orphans", "tp=1", 2, **LONG | {"global_batch": 2, "steps": 5000})
        )
        assert all(map(is_running, ranks))
        process.kill()
        wait_until_gone(ranks)
    assert not (tmp_path / "orphans" / "outcome.json").exists()


def test_sigterm_ends_the_ranks_and_leaves_no_outcome(tmp_path, many_rows):
    with host() as process:
        ranks = start(process, write_job(tmp_path, many_rows, "stopped", "tp=1", 1, **LONG))
        process.terminate()
        assert process.wait(timeout=10) == 130
        wait_until_gone(ranks)
    assert not (tmp_path / "stopped" / "outcome.json").exists()


def test_the_gated_delta_rule_is_within_its_bound_and_every_control_is_not(tmp_path):
    code, _, stderr = rehearse("--components", tmp_path / "components.json")
    assert (code, stderr) == (0, "")
    (test,) = json.loads((tmp_path / "components.json").read_text())["tests"]
    assert 0 < test["error"] <= test["bound"]
    assert len(test["controls"]) >= 3
    assert all(control["error"] > 10 * test["bound"] for control in test["controls"])
