"""Rows, jobs and a way to run them, for tests that need real ranks."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from openrecipes.data.rows import write_rows
from openrecipes.engines.rehearsal import RehearsalJob, read_log
from openrecipes.engines.steps import StepRecord

MODEL = Path(__file__).with_name("model.json")
COMMAND = [sys.executable, "-m", "openrecipes.rehearse"]
STEPS, GLOBAL_BATCH, ROW_TOKENS = 8, 8, 32


def make_rows(folder: Path, rows: int = STEPS * GLOBAL_BATCH) -> Path:
    """A toy language in which every token has four likely successors; two thirds of the tokens are targets."""
    generator = np.random.default_rng(0)
    tokens = 1000
    share = 1 / np.arange(1, tokens + 1)
    share /= share.sum()
    successors = generator.choice(tokens, (tokens, 4), p=share)
    ids = generator.choice(tokens, (rows, ROW_TOKENS), p=share)
    for t in range(1, ROW_TOKENS):
        follows = generator.random(rows) < 0.6
        ids[follows, t] = successors[ids[follows, t - 1], generator.integers(0, 4, follows.sum())]
    mask = (generator.random(ids.shape) < 0.67).astype(np.uint8)
    write_rows(folder, tokenizer_ids=ids, loss_mask=mask, manifest={"source": "synthetic"})
    return folder


@dataclasses.dataclass(frozen=True)
class Run:
    """The files a run left, read back."""

    out: Path

    @property
    def outcome(self) -> dict:
        return json.loads((self.out / "outcome.json").read_text())

    @property
    def log(self) -> str:
        return (self.out / "run.log").read_text()

    @property
    def steps(self) -> list[StepRecord]:
        return read_log(self.log.splitlines())

    @property
    def arguments(self) -> dict:
        return json.loads((self.out / "resolved.json").read_text())["arguments"]

    @property
    def gradients(self) -> dict[str, float]:
        return json.loads((self.out / "gradients.json").read_text())


def write_job(folder: Path, rows: Path, name: str, layout: str, ranks: int, **more: object) -> Path:
    path = folder / f"{name}.json"
    job = {"model": str(MODEL), "rows": str(rows), "steps": STEPS, "global_batch": GLOBAL_BATCH, **more}
    RehearsalJob(layout=layout, ranks=ranks, out=str(folder / name), **job).write(path)  # type: ignore[arg-type]
    return path


def rehearse(*jobs: Path | str, **options: object) -> tuple[int, list[dict], str]:
    """Run one process over all jobs: (exit code, events, stderr)."""
    done = subprocess.run([*COMMAND, *map(str, jobs)], capture_output=True, text=True, timeout=900, **options)  # type: ignore[call-overload]
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr
