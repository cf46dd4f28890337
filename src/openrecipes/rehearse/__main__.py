"""`python -m openrecipes.rehearse JOB.json... | -` and `--components OUT.json`.

Torch and Megatron-Core are imported once; each job forks its ranks from here. With `-` the paths of jobs
are read from standard input, one a line, until it ends. Events go to standard output as JSON, one a line:

    {"event": "ready"}
    {"event": "step", "job": PATH, "step": N, "steps": N, "loss": X}
    {"event": "done", "job": PATH, "status": "ok" | "failed", "cause": TEXT or null, "rank": N or null}

Exit codes: 0 every job ended well, 2 usage, 3 Megatron-Core is missing or of another release, 4 a job
failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from openrecipes.engines.rehearsal import RehearsalJob
from openrecipes.engines.steps import StepRecord
from openrecipes.errors import MissingToolError, OpenRecipesError
from openrecipes.rehearse.parent import end_with_parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m openrecipes.rehearse", description="Rehearse jobs on CPU ranks.")
    parser.add_argument("jobs", nargs="*", metavar="JOB.json", help="job files, or - to read their paths from stdin")
    parser.add_argument("--components", metavar="OUT.json", type=Path, help="run the component tests instead")
    options = parser.parse_args(arguments)
    if bool(options.jobs) == bool(options.components):
        parser.error("give job files, or --components OUT.json")
    for interrupt in (signal.SIGTERM, signal.SIGINT):
        signal.signal(interrupt, _interrupted)
    if "-" in options.jobs:
        # Whoever feeds the paths waits for the events; when it is gone, nobody does.
        end_with_parent(os.getppid(), signal.SIGTERM)
    try:
        _prepare()
        if options.components:
            from openrecipes.rehearse.components import write_component_results

            write_component_results(options.components)
            return 0
        _emit(event="ready")
        results = [_run(path) for path in _paths(options.jobs)]
    except OpenRecipesError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0 if all(results) else 4


def _interrupted(*_: object) -> None:
    """One interrupt ends everything; a second one must not cut the cleaning up short."""
    for interrupt in (signal.SIGTERM, signal.SIGINT):
        signal.signal(interrupt, signal.SIG_IGN)
    raise KeyboardInterrupt


def _prepare() -> None:
    """Import torch and Megatron-Core into this process, ready for ranks to be forked from it."""
    # Ranks are single-threaded and meet over the loopback interface.
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    # Megatron warns of missing GPU packages; the substitutions say what stands for them.
    warnings.filterwarnings("ignore")
    try:
        import torch

        from openrecipes.rehearse import cpu_device
    except ModuleNotFoundError as error:
        raise MissingToolError(
            f"{error.name} is missing; install it with: pip install 'openrecipes[rehearse]'"
        ) from None
    torch.set_num_threads(1)
    cpu_device.stand_in()
    # The first optimizer of a process imports this; here once, instead of in every rank.
    import torch._dynamo

    from openrecipes.rehearse import ranks  # noqa: F401

    gc.collect()
    gc.freeze()


def _paths(given: Iterable[str]) -> Iterator[Path]:
    for path in given:
        if path == "-":
            yield from (Path(line.strip()) for line in sys.stdin if line.strip())
        else:
            yield Path(path)


def _run(path: Path) -> bool:
    """Run the job in one file, leave its `outcome.json`, and say whether it ended well."""
    from openrecipes.rehearse.ranks import RunOutcome, run_ranks
    from openrecipes.rehearse.records import write_json

    def on_step(record: StepRecord) -> None:
        _emit(event="step", job=str(path), step=record.step, steps=job.steps, loss=record.loss)

    try:
        job = _read(path)
        out = Path(job.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / "outcome.json").unlink(missing_ok=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        unusable = RunOutcome(status="failed", cause=f"unusable job file: {type(error).__name__}: {error}")
        _emit(event="done", job=str(path), **dataclasses.asdict(unusable))
        return False
    try:
        outcome = run_ranks(job, on_step)
        write_json(out / "outcome.json", dataclasses.asdict(outcome))
    except OSError as error:
        outcome = RunOutcome(status="failed", cause=f"{type(error).__name__}: {error}")
    _emit(event="done", job=str(path), **dataclasses.asdict(outcome))
    return outcome.status == "ok"


def _read(path: Path) -> RehearsalJob:
    job = RehearsalJob.read(path)
    for name in ("ranks", "steps", "global_batch"):
        value = getattr(job, name)
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} is {value!r}, expected a whole number of 1 or more")
    return job


def _emit(**event: object) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    sys.exit(main())
