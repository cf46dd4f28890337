"""Run rehearsal jobs on this machine.

Importing torch and Megatron-Core takes seconds, so one host process does it once and forks the ranks
of each job. The host ends with its parent: when this process is killed, nothing is left running.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from openrecipes.errors import MissingToolError, RunError
from openrecipes.launch.outcome import Outcome

_START_LIMIT_S = 120.0
_END_LIMIT_S = 10.0
_NEEDED = {"torch": "torch", "megatron.core": "megatron-core==0.16.1"}


class RehearsalHost:
    """A running `python -m openrecipes.rehearse -`; use it as a context manager.

    `log` receives what the host itself prints on stderr (the ranks print to each job's `run.log`).
    `hang_limit_s` is how long a job may go without finishing a step before it counts as hung.
    """

    def __init__(self, log: Path, *, hang_limit_s: float = 120.0) -> None:
        self.hang_limit_s = hang_limit_s
        self._log = log
        self._log_begin = 0
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def __enter__(self) -> RehearsalHost:
        """Check that the packages are there; the host itself starts with the first job."""
        require_rehearsal_packages()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the host and whatever it still runs."""
        self._stop()

    def run(self, job: Path, *, on_step: Callable[[int, int], None] = lambda step, steps: None) -> Outcome:
        """Run one job file to its end.

        `on_step(step, steps)` is called after each finished step, counted from 1.

        Raises:
            RunError: the host could not start, or ended without an answer.
        """
        if self._process is None:
            self._start()
        process = self._process
        if process is None or process.stdin is None:
            raise RunError("the rehearsal host did not start")
        try:
            process.stdin.write(f"{job}\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        while True:
            try:
                event = self._next_event(self.hang_limit_s)
            except queue.Empty:
                self._stop()
                return Outcome(ok=False, cause=f"hung: no step finished within {self.hang_limit_s:.0f} s")
            if event["event"] == "step":
                on_step(event["step"] + 1, event["steps"])
            elif event["event"] == "done":
                return Outcome(ok=event["status"] == "ok", cause=event.get("cause"), rank=event.get("rank"))

    def _start(self) -> None:
        self._events = queue.Queue()
        with self._log.open("a", encoding="utf-8") as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "openrecipes.rehearse", "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # so that the host and its ranks can be ended as one group
            )
        self._reader = threading.Thread(target=_forward, args=(self._process.stdout, self._events), daemon=True)
        self._reader.start()
        try:
            self._next_event(_START_LIMIT_S)
        except queue.Empty:
            self._stop()
            raise RunError(f"the rehearsal host was not ready within {_START_LIMIT_S:.0f} s; see {self._log}") from None

    def _next_event(self, limit_s: float) -> dict[str, Any]:
        event = self._events.get(timeout=limit_s)
        if event is None:
            raise self._died()
        return event

    def _died(self) -> RunError | MissingToolError:
        process, self._process = self._process, None
        code = self._close(process) if process else 0
        return _failure("the rehearsal host", code, self._log, self._log_begin)

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, signal_number)
                process.wait(_END_LIMIT_S)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
            break
        self._close(process)

    def _close(self, process: subprocess.Popen[str]) -> int:
        """Wait for the end of the host, close what leads to it, and return its exit status."""
        code = process.wait()
        if self._reader:
            self._reader.join()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with contextlib.suppress(BrokenPipeError):  # what was written and never read
                    pipe.close()
        return code


def run_components(results: Path, log: Path) -> None:
    """Run the component tests of the rehearsal engine and write their numbers to `results`.

    Raises:
        MissingToolError: Megatron-Core is missing or of another release.
        RunError: the tests could not be carried out; `log` says why.
    """
    require_rehearsal_packages()
    with log.open("a", encoding="utf-8") as output:
        begin = output.tell()
        code = subprocess.run(
            [sys.executable, "-m", "openrecipes.rehearse", "--components", str(results)],
            stdout=output,
            stderr=output,
            check=False,
        ).returncode
    if code != 0:
        raise _failure("the component tests", code, log, begin)


def _failure(what: str, code: int, log: Path, begin: int) -> RunError | MissingToolError:
    """The error for a process that ended with `code`; its reason is the last line it wrote to `log` after `begin`."""
    said = log.read_bytes()[begin:].decode(errors="replace").strip().splitlines()
    if code < 0:
        reason = f"killed by {signal.Signals(-code).name}"
    else:
        reason = said[-1].removeprefix("error: ") if said else f"exit status {code}"
    error = MissingToolError if code == MissingToolError.exit_code else RunError
    return error(f"{what} ended: {reason}; see {log}")


def require_rehearsal_packages() -> None:
    """Raise `MissingToolError` unless the packages of the `rehearse` extra are installed."""
    missing = []
    for module, package in _NEEDED.items():
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            missing.append(package)
    if missing:
        raise MissingToolError(
            f"a rehearsal needs {' and '.join(missing)}; install with: pip install 'openrecipes[rehearse]'"
        )


def _forward(stream: IO[str] | None, events: queue.Queue[dict[str, Any] | None]) -> None:
    """Put each JSON line of `stream` into `events`, and None at its end."""
    for line in stream or ():
        if line.startswith("{") and line.endswith("\n"):  # else the host died while it wrote
            events.put(json.loads(line))
    events.put(None)
