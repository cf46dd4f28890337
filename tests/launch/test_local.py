"""The rehearsal host seen from the tool: every way it can end, and that nothing of it is left."""

from __future__ import annotations

import importlib.util
import io
import os
import queue
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rehearse.jobs import make_rows, write_job
from tests.rehearse.test_main import wait_until_gone

from openrecipes.errors import MissingToolError, RunError
from openrecipes.launch.local import RehearsalHost, _forward, run_components
from openrecipes.verify.components import judge_components, parse_component_results
from openrecipes.verify.verdict import Result

LONG = {"steps": 10_000, "global_batch": 1}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_rows(tmp_path_factory.mktemp("data") / "rows")


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_rows(tmp_path_factory.mktemp("data") / "rows", rows=10_000)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def hosts() -> list[int]:
    """The rehearsal hosts that this process started."""
    return [pid for pid in children(os.getpid()) if b"openrecipes.rehearse" in cmdline(pid)]


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def once(act: Callable[[], None]) -> Callable[[int, int], None]:
    """A step callback that acts at the first step it is told of."""
    acted: list[int] = []

    def on_step(step: int, steps: int) -> None:
        if not acted:
            acted.append(step)
            act()

    return on_step


def test_jobs_run_one_after_the_other_in_one_host(tmp_path, rows):
    told = []
    with RehearsalHost(tmp_path / "host.log") as host:
        first = host.run(
            write_job(tmp_path, rows, "a", "tp=1", 1, steps=2), on_step=lambda step, steps: told.append((step, steps))
        )
        (pid,) = hosts()
        second = host.run(write_job(tmp_path, rows, "b", "pp=2", 2, steps=2))
        assert hosts() == [pid]
    assert first.ok
    assert second.ok
    assert told == [(1, 2), (2, 2)]
    wait_until_gone([pid])


def test_a_job_that_cannot_run_is_an_outcome_and_the_host_goes_on(tmp_path, rows):
    with RehearsalHost(tmp_path / "host.log") as host:
        outcome = host.run(write_job(tmp_path, rows, "wrong", "tp=3", 3, steps=2))
        assert not outcome.ok
        assert outcome.cause
        assert host.run(write_job(tmp_path, rows, "right", "tp=1", 1, steps=2)).ok


def test_a_hung_job_is_ended_with_all_its_ranks_and_the_next_one_runs(tmp_path, rows, many_rows):
    stopped: list[int] = []

    def stop_a_rank() -> None:
        (pid,) = hosts()
        stopped.extend([pid, *children(pid)])
        os.kill(stopped[1], signal.SIGSTOP)

    with RehearsalHost(tmp_path / "host.log", hang_limit_s=4) as host:
        job = write_job(tmp_path, many_rows, "hung", "tp=1", 2, **LONG | {"global_batch": 2, "steps": 5_000})
        outcome = host.run(job, on_step=once(stop_a_rank))
        assert not outcome.ok
        assert outcome.cause == "hung: no step finished within 4 s"
        wait_until_gone(stopped)
        host.hang_limit_s = 120  # four seconds are short for the start of a host on a busy machine
        assert host.run(write_job(tmp_path, rows, "next", "tp=1", 1, steps=2)).ok
        assert hosts() != [stopped[0]]


def test_a_host_that_is_killed_is_an_error_that_says_so_and_the_next_job_gets_a_new_one(tmp_path, rows, many_rows):
    killed: list[int] = []

    def kill_the_host() -> None:
        (pid,) = hosts()
        killed.extend([pid, *children(pid)])
        os.kill(pid, signal.SIGKILL)

    log = tmp_path / "host.log"
    with RehearsalHost(log) as host:
        with pytest.raises(RunError, match="the rehearsal host ended: killed by SIGKILL; see ") as failure:
            host.run(write_job(tmp_path, many_rows, "killed", "tp=1", 1, **LONG), on_step=once(kill_the_host))
        assert failure.value.exit_code == 4
        wait_until_gone(killed)
        assert hosts() == []
        assert host.run(write_job(tmp_path, rows, "next", "tp=1", 1, steps=2)).ok


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        ("raise RuntimeError('a broken wheel')", "RuntimeError: a broken wheel"),
        ("raise SystemExit(7)", "exit status 7"),
    ],
)
def test_a_host_that_ends_before_it_is_ready_is_an_error_with_its_own_reason(
    tmp_path, monkeypatch, rows, torch, reason
):
    broken = tmp_path / "site" / "torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(torch + "\n")
    monkeypatch.setenv("PYTHONPATH", str(broken.parent))
    log = tmp_path / "host.log"
    log.write_text("ValueError: the reason of an earlier run\n")
    with pytest.raises(RunError) as failure, RehearsalHost(log) as host:
        host.run(write_job(tmp_path, rows, "job", "tp=1", 1))
    assert str(failure.value) == f"the rehearsal host ended: {reason}; see {log}"
    assert hosts() == []
    with pytest.raises(RunError) as failure:
        run_components(tmp_path / "components.json", log)
    assert str(failure.value) == f"the component tests ended: {reason}; see {log}"


def test_an_event_that_a_dying_host_did_not_finish_is_no_event():
    events: queue.Queue[dict | None] = queue.Queue()
    _forward(io.StringIO('a warning\n{"event": "ready"}\n{"event": "st'), events)
    assert [events.get_nowait(), events.get_nowait()] == [{"event": "ready"}, None]
    assert events.empty()


def test_leaving_the_block_in_the_middle_of_a_job_ends_its_ranks(tmp_path, many_rows):
    running: list[int] = []

    def give_up() -> None:
        running.extend([*hosts(), *children(hosts()[0])])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), RehearsalHost(tmp_path / "host.log") as host:
        host.run(
            write_job(tmp_path, many_rows, "long", "tp=1", 2, **LONG | {"global_batch": 2, "steps": 5_000}),
            on_step=once(give_up),
        )
    assert len(running) >= 3
    wait_until_gone(running)


@pytest.mark.parametrize(
    ("missing", "named"), [(["torch"], "torch"), (["torch", "megatron.core"], "torch and megatron-core==0.16.1")]
)
def test_a_missing_package_is_named_with_its_remedy(tmp_path, monkeypatch, missing, named):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else real(name))
    with pytest.raises(MissingToolError) as refusal, RehearsalHost(tmp_path / "host.log"):
        pass
    assert str(refusal.value) == f"a rehearsal needs {named}; install with: pip install 'openrecipes[rehearse]'"
    assert refusal.value.exit_code == 3


def test_another_release_of_megatron_is_missing_the_right_one(tmp_path, monkeypatch, rows):
    metadata = tmp_path / "site" / "megatron_core-0.19.2.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: megatron-core\nVersion: 0.19.2\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    with (
        pytest.raises(MissingToolError, match=r"found megatron-core 0\.19\.2"),
        RehearsalHost(tmp_path / "host.log") as host,
    ):
        host.run(write_job(tmp_path, rows, "job", "tp=1", 1))
    with pytest.raises(MissingToolError, match=r"the component tests ended: .*found megatron-core 0\.19\.2"):
        run_components(tmp_path / "components.json", tmp_path / "host.log")
    assert not (tmp_path / "components.json").exists()


def test_the_component_tests_leave_numbers_that_pass(tmp_path):
    results = tmp_path / "components.json"
    run_components(results, tmp_path / "host.log")
    outcome, verdicts = judge_components(parse_component_results(results.read_bytes(), results))
    assert verdicts
    assert outcome is Result.PASS
