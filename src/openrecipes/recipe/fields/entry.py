"""The recipe itself: its identity, its parts, and the command."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from openrecipes.recipe.fields.correctness import Correctness
from openrecipes.recipe.fields.kinds import Fields, Sha256, Text, Url
from openrecipes.recipe.fields.layout import LayoutFields
from openrecipes.recipe.fields.machine import Gpu, Stack
from openrecipes.recipe.fields.result import Result
from openrecipes.recipe.fields.task import Dataset, Workload


class Author(Fields):
    """Who made the entry."""

    name: Text = Field(examples=["ATTUNE"])
    """Person, group or program."""

    url: Url | None = Field(examples=["https://arxiv.org/abs/2610.17528"])
    """Where to read more; null where there is no such page."""


class EvidenceReference(Fields):
    """Points at the manifest of the files that support the entry's numbers and verdicts."""

    manifest: Text = Field(examples=["evidence/evidence.json"])
    """Path of the manifest, relative to the entry and below its folder."""

    sha256: Sha256 = Field(examples=["a3f0c1d2e4b5968778695a4b3c2d1e0ff0e1d2c3b4a5968778695a4b3c2d1e0f"])
    """SHA-256 of the manifest, so that nothing in it can change unnoticed."""


class Change(Fields):
    """A published value that was altered here; the original is kept."""

    field: Text = Field(examples=["run"])
    """Dotted name of the altered field."""

    from_: Text | None = Field(alias="from", examples=["python3 -m --async"])
    """The value, or the part of it, as it was first published; null where there was none."""

    to: Text | None = Field(examples=["python3 train_async.py"])
    """What stands here instead; null where it was taken out."""

    why: Text = Field(examples=["the published line names no module and cannot start"])
    """The reason, and what it means for the entry's other values."""


class Recipe(Fields):
    """One training recipe: a model, a cluster, a layout, a command, its result and how that was verified."""

    schema_version: Literal[1] = Field(examples=[1])
    """Version of this format."""

    model: Text = Field(examples=["Qwen3.5-397B-A17B"])
    """Model as its publisher names it."""

    gpu: Gpu
    """The accelerators of the run."""

    author: Author
    """Who made the entry."""

    status: Literal["draft", "consistent", "measured", "verified", "reproduced"] = Field(examples=["verified"])
    """The author's claim. The level, which is computed from the evidence, is shown beside it and may be lower."""

    stack: Stack
    """Versions of the software."""

    workload: Workload
    """The work of one optimizer step."""

    dataset: Dataset
    """The training data."""

    layout: LayoutFields
    """How the model was spread over the GPUs."""

    result: Result
    """Measured speed and cost."""

    correctness: Correctness
    """The author's account of the correctness checks."""

    env: dict[Text, str] = Field(examples=[{"CUDA_DEVICE_MAX_CONNECTIONS": "1"}])
    """Environment variables of the training processes, by name; a value is text as the shell sees it."""

    patches: tuple[Text, ...] = Field(examples=[["patches/fla_blackwell_guard.py"]])
    """Files that change installed software, relative to the repository; an empty list where there are none."""

    run: Text = Field(examples=["python3 train_async.py --actor-num-nodes 6 ..."])
    """The exact launch command as a shell script. It is parsed, and runs only when a person says `run`."""

    notes: Text | None = Field(examples=["Rows were built with seed 42."])
    """What a reader must know beside the fields; null where there is nothing."""

    evidence: EvidenceReference | None = None
    """The evidence; left out where the entry has none."""

    changes: tuple[Change, ...] = ()
    """Published values that were altered; left out where there are none."""
