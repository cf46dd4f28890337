"""The rehearsal host seen from the tool: every way it can end, and that nothing of it is left."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rehearse.jobs import make_rows, write_job
from tests.rehearse.test_main import wait_until_gone

from openrecipes.errors import MissingToolError, RunError
from openrecipes.launch.local import RehearsalHost, run_components

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
    # The limit is short for a machine that is busy, so a host with the usual one shows that the next job runs.
    with RehearsalHost(tmp_path / "host.log") as host:
        assert host.run(write_job(tmp_path, rows, "next", "tp=1", 1, steps=2)).ok


def test_a_host_that_dies_is_an_error_that_says_so(tmp_path, many_rows):
    def kill_the_host() -> None:
        os.kill(hosts()[0], signal.SIGKILL)

    with RehearsalHost(tmp_path / "host.log") as host:
        with pytest.raises(RunError, match="the rehearsal host ended: exit status -9"):
            host.run(write_job(tmp_path, many_rows, "killed", "tp=1", 1, **LONG), on_step=once(kill_the_host))
        assert hosts() == []


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
    with pytest.raises(RunError, match=r"component tests ended with exit status 3; see .*host\.log"):
        run_components(tmp_path / "components.json", tmp_path / "host.log")
    assert not (tmp_path / "components.json").exists()


def test_the_components_leave_their_numbers(tmp_path):
    started = time.time()
    run_components(tmp_path / "components.json", tmp_path / "host.log")
    assert (tmp_path / "components.json").stat().st_mtime >= started - 1
