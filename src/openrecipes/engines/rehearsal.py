"""The rehearsal engine seen from outside: its job, its files and its log.

The torch side lives in `openrecipes.rehearse` and runs only as a subprocess; this module needs no torch.
A job is a JSON file. The run leaves in its `out` folder:

    run.log           everything all ranks printed; each step of rank 0 as a line `step {json}`
    resolved.json     {"engine", "versions", "arguments": {name: value}} that were really in force
    environment.json  versions, host, thread settings
    gradients.json    {global parameter name: norm} at step 0, after reduction and before clipping
    outcome.json      {"status": "ok" | "failed", "cause": text or null, "rank": N or null}, written last
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

from openrecipes.engines.steps import StepRecord, parse_step

STEP_PREFIX = "step {"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recompute:
    """Megatron's recompute settings, as in a recipe's `layout.recompute`."""

    granularity: str = "full"
    method: str | None = "uniform"
    num_layers: int | None = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimizer:
    """AdamW settings; the learning rate is constant so that every step weighs the same in a comparison."""

    lr: float = 1e-3
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-8
    clip_grad: float = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RehearsalJob:
    """One run of a toy model under one layout on CPU processes.

    `model` is the path of an HF `config.json`; `rows` a folder that `openrecipes.data` wrote;
    `layout` a layout text; `ranks` the number of processes; `global_batch` counts rows.
    `row_order` is the order in which the rows of one global batch are taken: `natural`, or
    `reversed`, which changes nothing but the order of the sums. `faults` names deliberate faults
    (see `openrecipes.rehearse.faults`) and is empty outside tests of the verifier.
    """

    model: str
    rows: str
    layout: str
    ranks: int
    steps: int
    global_batch: int
    out: str
    optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)
    recompute: Recompute | None = None
    row_order: str = "natural"
    faults: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write the job as JSON."""
        path.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> RehearsalJob:
        """Read a job that `write` wrote."""
        found = json.loads(path.read_text(encoding="utf-8"))
        found["optimizer"] = Optimizer(**found["optimizer"])
        found["recompute"] = Recompute(**found["recompute"]) if found["recompute"] else None
        found["faults"] = tuple(found["faults"])
        return cls(**found)


def read_log(lines: Iterable[str]) -> list[StepRecord]:
    """The step records in a rehearsal's `run.log`, in the order they were printed.

    Raises:
        ValueError: naming the line whose step record is damaged.
    """
    records = []
    for number, line in enumerate(lines, 1):
        if line.startswith(STEP_PREFIX):
            try:
                records.append(parse_step(line[len("step ") :]))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    return records
