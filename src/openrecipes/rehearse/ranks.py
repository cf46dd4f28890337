"""Start the ranks of one job, follow them, and end them.

Ranks are forked from a process that has imported torch and Megatron-Core already, since importing takes
longer than a short run does. A rank ends with its parent, whatever ends that.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path

import torch

from openrecipes.engines.rehearsal import RehearsalJob
from openrecipes.engines.steps import StepRecord
from openrecipes.errors import OpenRecipesError
from openrecipes.rehearse.parent import end_with_parent
from openrecipes.rehearse.trainer import COLLECTIVE_TIMEOUT_MINUTES, Trainer

# When one rank fails its peers often fail of it; whatever arrives this soon belongs to one failure.
_SETTLE_S = 0.3
_INTERRUPTS = (signal.SIGTERM, signal.SIGINT)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """How a job ended: `cause` and `rank` are None where it ended well."""

    status: str
    cause: str | None = None
    rank: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Failure:
    cause: str
    time_s: float


def run_ranks(job: RehearsalJob, on_step: Callable[[StepRecord], None]) -> RunOutcome:
    """Run the job on `job.ranks` processes; all they print goes to `run.log` in its `out` folder."""
    out = Path(job.out)
    with tempfile.TemporaryDirectory(prefix="openrecipes-") as meeting, (out / "run.log").open("wb") as log:
        pipes = [connection.Pipe(duplex=False) for _ in range(job.ranks)]
        ranks = [
            ForkProcess(
                target=_rank_main,
                args=(job, rank, Path(meeting, "store"), log.fileno(), pipes, os.getpid()),
                name=f"rank {rank}",
                daemon=True,  # ended at exit too, should the ending below be interrupted itself
            )
            for rank in range(job.ranks)
        ]
        try:
            # An interrupt inside a fork would be swallowed by a handler of the fork; it waits until all have begun.
            signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
            try:
                for rank in ranks:
                    rank.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
            for _, sender in pipes:
                sender.close()
            return _follow([receiver for receiver, _ in pipes], ranks, on_step)
        finally:
            started = [rank for rank in ranks if rank.pid is not None]
            for rank in started:
                rank.kill()
            for rank in started:
                rank.join()


def _follow(receivers: list[Connection], ranks: list[ForkProcess], on_step: Callable[[StepRecord], None]) -> RunOutcome:
    """Pass steps on until every rank has ended well or one has failed."""
    rank_of = {receiver: number for number, receiver in enumerate(receivers)}
    failures: dict[int, _Failure] = {}
    deadline: float | None = None
    while rank_of and (deadline is None or time.monotonic() < deadline):
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        for receiver in connection.wait(list(rank_of), timeout):
            try:
                message = receiver.recv()  # type: ignore[union-attr]
            except EOFError:
                rank = rank_of.pop(receiver)  # type: ignore[index]
                ranks[rank].join()
                if ranks[rank].exitcode != 0:
                    failures[rank] = _Failure(cause=_how_it_died(ranks[rank].exitcode), time_s=-1.0)
                continue
            if isinstance(message, StepRecord):
                on_step(message)
            else:
                failures.setdefault(rank_of[receiver], message)  # type: ignore[index]
        if failures and deadline is None:
            deadline = time.monotonic() + _SETTLE_S
    if not failures:
        return RunOutcome(status="ok")
    # A rank that died without a word comes first; else the one that raised first.
    rank = min(failures, key=lambda number: failures[number].time_s)
    return RunOutcome(status="failed", cause=failures[rank].cause, rank=rank)


def _how_it_died(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


def _rank_main(
    job: RehearsalJob,
    rank: int,
    store: Path,
    log: int,
    pipes: list[tuple[Connection, Connection]],
    parent: int,
) -> None:
    end_with_parent(parent, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent ends the ranks
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
    sys.stdout.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    for number, (receiver, sender) in enumerate(pipes):
        receiver.close()
        if number != rank:
            sender.close()
    sender = pipes[rank][1]
    try:
        torch.distributed.init_process_group(
            "gloo",
            init_method=store.as_uri(),
            rank=rank,
            world_size=job.ranks,
            timeout=datetime.timedelta(minutes=COLLECTIVE_TIMEOUT_MINUTES),
        )
        if rank == 0 and job.faults:
            print("deliberate faults:", *job.faults, flush=True)
        Trainer(job).run(lambda record: _report(record, sender))
        torch.distributed.barrier()
    except Exception as error:
        traceback.print_exc()
        sys.stderr.flush()
        sender.send(_Failure(cause=_cause(error), time_s=time.monotonic()))
        # Peers would blame the closed connection if this rank ended now; the parent ends them all.
        signal.pause()
    os._exit(0)


def _report(record: StepRecord, sender: Connection) -> None:
    print("step", record.to_json(), flush=True)
    sender.send(record)


def _cause(error: Exception) -> str:
    """Type and text of an error, and where it was raised where that helps: an assertion may have no text."""
    text = " ".join(str(error).split())
    if isinstance(error, OpenRecipesError):
        return text
    frame = traceback.extract_tb(error.__traceback__)[-1]
    module = frame.filename.rpartition("site-packages/")[2].rpartition("/src/")[2]
    return f"{type(error).__name__}: {text or frame.line} ({module}:{frame.lineno})"
