from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openrecipes.data.sources.arrow import SpilledFile, spill
from openrecipes.data.sources.interface import Unreadable
from openrecipes.errors import ContentError

RECORDS = [
    {"id": n, "messages": [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": "ä" * (n % 7)}]}
    for n in range(2500)
]
WITHOUT_ID = [{"messages": record["messages"]} for record in RECORDS]


def write(path, layout):
    table = pa.Table.from_pylist(RECORDS)
    if layout == "parquet":
        pq.write_table(table, path, row_group_size=700)
        return
    make = pa.ipc.new_stream if layout == "stream" else pa.ipc.new_file
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


@pytest.mark.parametrize("layout", ["parquet", "stream", "file"])
def test_every_record_is_found_in_any_order(tmp_path, layout):
    path = tmp_path / ("a.parquet" if layout == "parquet" else "a.arrow")
    write(path, layout)
    assert spill(path, tmp_path / "index") == 2500
    file = SpilledFile(tmp_path / "index")
    assert len(file) == 2500
    assert file.read(range(2500)) == WITHOUT_ID
    places = [2499, 0, 1023, 1024, 699, 700, 31, 32, 0]
    assert file.read(places) == [WITHOUT_ID[place] for place in places]


@pytest.mark.parametrize("layout", ["parquet", "file", "stream"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_one_clear_error(tmp_path, layout, kept):
    path = tmp_path / ("a.parquet" if layout == "parquet" else "a.arrow")
    write(path, layout)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    if layout == "stream" and kept == 0.999:
        return  # only the end marker is gone, which the format allows
    with pytest.raises(ContentError, match="is damaged or incomplete"):
        spill(path, tmp_path / "index")


def test_a_table_without_conversations_is_refused(tmp_path):
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(ContentError, match="has the columns text, none of which is one of messages"):
        spill(tmp_path / "a.parquet", tmp_path / "index")


def test_an_empty_table_has_no_records(tmp_path):
    pq.write_table(pa.Table.from_pylist(RECORDS).slice(0, 0), tmp_path / "a.parquet")
    assert spill(tmp_path / "a.parquet", tmp_path / "index") == 0
    assert len(SpilledFile(tmp_path / "index")) == 0


def test_a_record_that_is_too_long_or_no_utf8_is_a_counted_value(tmp_path):
    texts = pa.array([b"fine", b"x" * (9 * 2**20), b"\xff"], pa.binary())
    bad = pa.Array.from_buffers(pa.string(), 3, texts.buffers())
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema([("prompt", pa.string())])) as writer:
        writer.write_batch(pa.record_batch({"prompt": bad}))
    spill(tmp_path / "a.arrow", tmp_path / "index")
    fine, long, broken = SpilledFile(tmp_path / "index").read([0, 1, 2])
    assert fine == {"prompt": "fine"}
    assert [found.kind for found in (long, broken) if isinstance(found, Unreadable)] == ["too_long", "invalid_utf8"]


def test_a_field_that_only_other_records_have_is_not_there(tmp_path):
    call = {"function": {"name": "f", "arguments": {"city": "Bonn"}}}
    other = {"function": {"name": "g", "arguments": {"day": "today"}}}
    records = [
        {"messages": [{"role": "assistant", "content": "a"}]},
        {"messages": [{"role": "assistant", "content": "", "tool_calls": [call, other]}]},
    ]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    spill(tmp_path / "a.parquet", tmp_path / "index")
    assert SpilledFile(tmp_path / "index").read([0, 1]) == records
