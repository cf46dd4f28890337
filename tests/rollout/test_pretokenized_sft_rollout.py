"""The rollout over rows that a build wrote, against slime's interface.

slime cannot be installed from a registry. `SLIME_SOURCE=PATH pytest tests/rollout` takes its own `Sample`,
`RolloutFnTrainOutput` and `Dataset` from a checkout; without it, classes of the same fields stand for them. With it,
slime's own `RolloutDataSource` and `RolloutManager` also run on the rows (test_slimes_own_manager.py).
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.data.toy import build, write_source

from openrecipes.data.table import FILE, read_rows

ROW_TOKENS, ROWS, BATCH = 64, 10, 4


@dataclasses.dataclass
class Sample:
    """The fields of slime's that this rollout fills or reads."""

    class Status(Enum):
        PENDING = "pending"
        COMPLETED = "completed"

    group_index: int | None = None
    index: int | None = None
    prompt: Any = ""
    tokens: list[int] = dataclasses.field(default_factory=list)
    response_length: int = 0
    reward: float | None = None
    loss_mask: list[int] | None = None
    status: Status = Status.PENDING
    metadata: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class RolloutFnTrainOutput:
    samples: list
    metrics: dict | None = None


@pytest.fixture
def slime(monkeypatch):
    """slime's modules: its own from SLIME_SOURCE, or stand-ins."""
    if source := os.environ.get("SLIME_SOURCE"):
        monkeypatch.syspath_prepend(source)
    else:
        types, base_types = ModuleType("slime.utils.types"), ModuleType("slime.rollout.base_types")
        types.Sample, base_types.RolloutFnTrainOutput = Sample, RolloutFnTrainOutput  # type: ignore[attr-defined]
        for name in ("slime", "slime.utils", "slime.rollout"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setitem(sys.modules, "slime.utils.types", types)
        monkeypatch.setitem(sys.modules, "slime.rollout.base_types", base_types)
    monkeypatch.delitem(sys.modules, "pretokenized_sft_rollout", raising=False)
    return importlib.import_module("pretokenized_sft_rollout")


class DataSource:
    """Hands out samples in the file's order and begins again at its end, as slime's RolloutDataSource does."""

    def __init__(self, path: Path, module: ModuleType) -> None:
        if os.environ.get("SLIME_SOURCE"):
            from slime.utils.data import Dataset  # type: ignore[import-not-found]

            self.samples = Dataset(str(path), None, None, None, prompt_key="messages").samples
        else:
            records = pq.ParquetFile(path).read().to_pylist()
            self.samples = [module.Sample(prompt=r["messages"], metadata=r["metadata"]) for r in records]
        self.taken = 0

    def get_samples(self, count: int) -> list[list]:
        found = []
        for _ in range(count):
            sample = dataclasses.replace(self.samples[self.taken % len(self.samples)])
            sample.index = sample.group_index = self.taken
            self.taken += 1
            found.append([sample])
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rollout")
    write_source(folder / "chat.jsonl", 200)
    build(folder / "chat.jsonl", folder / "rows", rows=ROWS, row_tokens=ROW_TOKENS)
    return folder / "rows"


def arguments(**changes) -> SimpleNamespace:
    given = {"n_samples_per_prompt": 1, "rollout_batch_size": BATCH, "rollout_shuffle": False, "vocab_size": 257}
    return SimpleNamespace(**given | changes)


def test_each_step_takes_the_next_rows_in_the_order_of_the_file(slime, folder):
    source, rows = DataSource(folder / FILE, slime), list(read_rows(folder, ROW_TOKENS))
    taken = []
    for step in range(4):
        out = slime.generate_rollout(arguments(), step, source)
        assert [len(group) for group in out.samples] == [1] * BATCH
        taken += [sample for group in out.samples for sample in group]
    assert [sample.metadata["row"] for sample in taken] == [number % ROWS for number in range(4 * BATCH)]
    for sample in taken:
        row = rows[sample.metadata["row"]]
        assert sample.tokens == row.ids.tolist()
        whole = [0] * (ROW_TOKENS - sample.response_length) + sample.loss_mask
        assert whole == row.loss_mask.tolist()
        assert sample.loss_mask[0] == 1
        assert 0 < sample.response_length < ROW_TOKENS
        assert (sample.reward, sample.status.value, sample.prompt) == (0, "completed", "")


def test_a_step_reports_its_tokens(slime, folder):
    rows = list(read_rows(folder, ROW_TOKENS))[:BATCH]
    metrics = slime.generate_rollout(arguments(), 0, DataSource(folder / FILE, slime)).metrics
    supervised = int(np.sum([row.loss_mask for row in rows]))
    assert metrics == {
        "rollout/rows": BATCH,
        "rollout/tokens": BATCH * ROW_TOKENS,
        "rollout/supervised_tokens": supervised,
        "rollout/supervised_token_ratio": supervised / (BATCH * ROW_TOKENS),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_samples_per_prompt": 8}, "--n-samples-per-prompt is 8, expected 1"),
        ({"rollout_shuffle": True}, "--rollout-shuffle would change the order"),
        ({"vocab_size": 100}, r"row \d+ has ids from \d+ to \d+, the vocabulary has 100 entries"),
    ],
)
def test_options_that_do_not_fit_are_refused(slime, folder, changes, message):
    with pytest.raises(ValueError, match=message):
        slime.generate_rollout(arguments(**changes), 0, DataSource(folder / FILE, slime))


def test_an_evaluation_is_refused(slime, folder):
    with pytest.raises(ValueError, match="no evaluation set"):
        slime.generate_rollout(arguments(), 0, DataSource(folder / FILE, slime), evaluation=True)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "row 0 has no `input_ids`"),
        (None, "row 0 has no `input_ids`"),
        ({"input_ids": "12", "loss_mask": [0, 1]}, "row 0 has no `input_ids`"),
        ({"input_ids": [1, 2], "loss_mask": [0]}, "row 0 has 2 tokens and 1 mask values"),
        ({"input_ids": [1, 2], "loss_mask": [0, 2]}, "mask values other than 0 and 1"),
        ({"input_ids": [1, 2], "loss_mask": [1, 1]}, "its first token as a target"),
        ({"input_ids": [1, 2], "loss_mask": [0, 0], "row": 7}, "row 7 has no target"),
        ({"input_ids": [1, -2], "loss_mask": [0, 1]}, "ids from -2 to 1"),
    ],
)
def test_a_row_that_is_none_stops_the_run_with_its_number(slime, folder, metadata, message):
    source = DataSource(folder / FILE, slime)
    source.samples = [dataclasses.replace(source.samples[0], metadata=metadata)]
    with pytest.raises(ValueError, match=message):
        slime.generate_rollout(arguments(rollout_batch_size=1), 0, source)


def test_rows_of_two_lengths_are_refused(slime, folder):
    source = DataSource(folder / FILE, slime)
    short = {"input_ids": [1, 2], "loss_mask": [0, 1], "row": 1}
    source.samples = [source.samples[0], dataclasses.replace(source.samples[1], metadata=short)]
    with pytest.raises(ValueError, match=r"rows of step 3 have \[2, 64\] tokens"):
        slime.generate_rollout(arguments(rollout_batch_size=2), 3, source)
