"""Who makes the blocks: this process, worker processes, or a Ray cluster; the blocks are the same."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Literal, Protocol

from openrecipes.data.blocks import BlockJob, BlockMaker, Described
from openrecipes.errors import RunError

WorkerChoice = int | Literal["ray"]


class Workers(Protocol):
    """Makers of blocks; `ahead` is how many of them to hold in hand so that nobody waits."""

    ahead: int

    def describe(self) -> Described:
        """What the workers' encoders are, when one of them is loaded."""
        ...

    def submit(self, number: int) -> Any:
        """Begin a block; the result is a ticket for `wait`."""
        ...

    def wait(self, ticket: Any) -> None:
        """Return when the block's file is there, or raise what went wrong."""
        ...

    def close(self) -> None:
        """Let the running blocks finish and end the workers."""
        ...


@contextmanager
def open_workers(choice: WorkerChoice, job: BlockJob) -> Iterator[Workers]:
    """The workers for a job, loading their encoders; a single one is this process."""
    if choice == "ray":
        from openrecipes.data.pool_ray import RayWorkers

        workers = RayWorkers(job)
    else:
        workers = _Alone(job) if choice == 1 else _Processes(choice, job)
    try:
        yield workers
    finally:
        workers.close()


def blocks_in_order(job: BlockJob, count: int, workers: Workers, *, needed: Callable[[], int | None]) -> Iterator[Path]:
    """Every block's file in order, as the blocks become ready; those that are there already are not made again.

    `needed` estimates how many blocks the rows will take, None while nothing is known: no more are begun in
    advance, so that little is made in vain.
    """
    tickets: deque[Any] = deque()
    begun = 0
    for number in range(count):
        while begun < count and len(tickets) < workers.ahead:
            enough = needed()
            if begun > number and enough is not None and begun >= enough:
                break
            tickets.append(None if job.path(begun).exists() else workers.submit(begun))
            begun += 1
        ticket = tickets.popleft()
        if ticket is not None:
            workers.wait(ticket)
        yield job.path(number)


def one_thread_each() -> None:
    """Keep the tokenizers' own threads out of it, in this process and those it starts: a worker is one core."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("RAYON_NUM_THREADS", "1")


class _Alone:
    """This process makes each block when it is waited for."""

    ahead = 1

    def __init__(self, job: BlockJob) -> None:
        self._maker = BlockMaker(job)

    def describe(self) -> Described:
        return self._maker.describe()

    def submit(self, number: int) -> int:
        return number

    def wait(self, ticket: int) -> None:
        self._maker.make(ticket)

    def close(self) -> None:
        pass


class _Processes:
    """Worker processes, started afresh: a fork would copy the locks of this process's threads."""

    def __init__(self, count: int, job: BlockJob) -> None:
        self.ahead = 2 * count
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(count, mp_context=context, initializer=_start, initargs=(job,))
        # A process is started for each call that finds none idle: all of them load now, at the same time.
        self._described = [self._pool.submit(_describe) for _ in range(count)]

    def describe(self) -> Described:
        return self._result(self._described[0])

    def submit(self, number: int) -> Future[None]:
        try:
            return self._pool.submit(_make, number)
        except BrokenProcessPool as error:
            raise _worker_died() from error

    def wait(self, ticket: Future[None]) -> None:
        self._result(ticket)

    def _result(self, ticket: Future[Any]) -> Any:
        try:
            return ticket.result()
        except BrokenProcessPool as error:
            raise _worker_died() from error

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


_maker: BlockMaker | Exception  # a worker process's own


def _start(job: BlockJob) -> None:
    global _maker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    one_thread_each()
    try:
        _maker = BlockMaker(job)
    except Exception as error:  # raised here, the pool would only say that it is broken
        _maker = error


def _describe() -> Described:
    return _own_maker().describe()


def _make(number: int) -> None:
    _own_maker().make(number)


def _own_maker() -> BlockMaker:
    if isinstance(_maker, Exception):
        raise _maker
    return _maker


def _end_with_parent() -> None:
    """A parent that is killed tells nobody; its sentinel becomes ready all the same."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _worker_died() -> RunError:
    return RunError(
        "a worker process died, killed or out of memory; the same command goes on after the finished blocks "
        "(with fewer --workers where memory is short)"
    )
