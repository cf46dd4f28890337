"""Megatron-Core's own reader reads the rows, and every damage is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.data.toy import build, write_source

from openrecipes.data import table
from openrecipes.data.megatron import INDEX, MASK, STARTS, TOKENS, read_rows
from openrecipes.errors import ContentError

SIZE, ROWS = 64, 20


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("megatron")
    write_source(folder / "chat.jsonl", 300)
    for format in ("megatron", "parquet"):
        build(folder / "chat.jsonl", folder / format, rows=ROWS, row_tokens=SIZE, format=format)
    return folder


@pytest.mark.filterwarnings("ignore")  # of torch and Megatron-Core, while they are imported
def test_megatrons_own_dataset_reads_every_row(built):
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    dataset = IndexedDataset(str(built / "megatron" / "rows"))
    rows = list(table.read_rows(built / "parquet", SIZE))
    assert len(dataset) == len(rows) == ROWS
    for found, row in zip(dataset, rows, strict=True):
        assert found.dtype == np.int32
        assert found.tolist() == row.ids.tolist()
    assert dataset.document_indices.tolist() == list(range(ROWS + 1))


def test_both_formats_hold_the_same_rows(built):
    for one, other in zip(read_rows(built / "megatron", SIZE), table.read_rows(built / "parquet", SIZE), strict=True):
        for field in ("ids", "loss_mask", "doc_starts"):
            assert getattr(one, field).tolist() == getattr(other, field).tolist()


# Not (STARTS, "longer"): a zip archive may have other bytes behind it; the hash in the manifest tells.
@pytest.mark.parametrize(
    ("name", "damage"),
    [(name, damage) for name in (TOKENS, INDEX, MASK) for damage in ("gone", "cut", "longer")]
    + [(STARTS, "gone"), (STARTS, "cut")],
)
def test_a_damaged_file_is_named(built, tmp_path, name, damage):
    for path in (built / "megatron").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink() if damage == "gone" else path.write_bytes(content[:-5] if damage == "cut" else content + b"12345")
    with pytest.raises(ContentError) as refused:
        list(read_rows(tmp_path, SIZE))
    assert refused.value.findings[0].path in (path, tmp_path / INDEX)
