"""A workload with everything that was read and built for it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openrecipes import __version__
from openrecipes.data.build import build_rows
from openrecipes.data.source import Source
from openrecipes.data.tokenizer import TokenizerChoice
from openrecipes.engines.steps import StepRecord, read_steps
from openrecipes.measure.window import Figures, measure
from openrecipes.model.shape import ModelShape
from openrecipes.tune.journal import Journal
from openrecipes.tune.workload import Workload

ROWS = "rows"
LOG = "run.log"
STEPS = "steps.jsonl"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """`path` is the workload file, `rows` the manifest of the fixed rows, `out` the folder of the tune."""

    path: Path
    workload: Workload
    model: ModelShape
    rows: Mapping[str, Any]
    out: Path
    journal: Journal

    def figures(self, arm: str, ranks: int) -> Figures:
        """The speed of a finished arm over the workload's window.

        Raises:
            ContentError: its steps cannot be trusted.
        """
        path = self.out / arm / STEPS
        return measure(arm_steps(path.parent), window=self.workload.window, gpus=ranks, path=path)

    @property
    def components(self) -> Path:
        """Where the component tests leave their numbers."""
        return self.out / "component_results.json"


def build_rows_for(workload: Workload, model: ModelShape, out: Path) -> Mapping[str, Any]:
    """Build the workload's rows below `out`, or find them there; the manifest."""
    data = workload.data
    return build_rows(
        source=Source(package=data.source.package, license=data.source.license),
        tokenizer=TokenizerChoice(**data.tokenizer.model_dump()),
        row_tokens=data.row_tokens,
        rows=data.rows,
        seed=data.seed,
        out=out / ROWS,
        max_vocabulary=model.vocab_size,
    )


def identity(workload: Workload, path: Path, rows: Mapping[str, Any]) -> dict[str, Any]:
    """What makes two tunes the same: with any of it changed, finished arms could not be compared."""
    return {
        "workload": workload.model_dump(mode="json", exclude={"model"}),  # a path of this machine; its hash follows
        "model_sha256": hashlib.sha256(workload.model_path(path).read_bytes()).hexdigest(),
        "rows_sha256": rows["rows_sha256"],
        "versions": {
            "openrecipes": __version__,
            **{name: importlib.metadata.version(name) for name in ("torch", "megatron-core")},
        },
    }


def arm_steps(folder: Path) -> list[StepRecord]:
    """The step records of a finished arm."""
    path = folder / STEPS
    return read_steps(path, path.read_text(encoding="utf-8").splitlines())
