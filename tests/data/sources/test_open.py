from __future__ import annotations

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openrecipes.data.sources.open import open_source
from openrecipes.errors import UsageError


def lines(*numbers):
    return "".join(json.dumps({"n": n}) + "\n" for n in numbers)


def test_the_files_of_a_folder_are_numbered_through_in_the_order_of_their_names(tmp_path):
    folder = tmp_path / "set" / "data"
    folder.mkdir(parents=True)
    (folder / "train-00001-of-00002.jsonl").write_text(lines(3, 4))
    (folder / "train-00000-of-00002.jsonl").write_text(lines(0, 1, 2))
    (folder / "README.md").write_text("not data")
    (folder / ".hidden.jsonl").write_text(lines(9))
    source = open_source(str(tmp_path / "set"), tmp_path / "index")
    assert len(source) == 5
    assert [record["n"] for record in source.read([4, 0, 2, 3])] == [4, 0, 2, 3]
    assert source.where(2) == "data/train-00000-of-00002.jsonl:3"
    assert source.where(3) == "data/train-00001-of-00002.jsonl:1"
    listed = source.describe()["files"]
    assert [file["records"] for file in listed] == [3, 2]
    assert all(len(file["sha256"]) == 64 for file in listed)
    with pytest.raises(IndexError):
        source.read([5])


def test_a_second_opening_reads_the_index_and_not_the_files_again(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1, 2))
    first = open_source(str(path), tmp_path / "index")
    monkeypatch.setattr("openrecipes.data.sources.open.index_lines", lambda *_: pytest.fail("indexed again"))
    again = open_source(str(path), tmp_path / "index")
    assert again.describe() == first.describe()
    with pytest.raises(UsageError, match=r"is the index of `.*a\.jsonl`, not of `b\.jsonl`"):
        open_source("b.jsonl", tmp_path / "index")


def test_a_folder_that_save_to_disk_wrote_is_a_source(tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    table = pa.Table.from_pylist([{"messages": [{"role": "user", "content": str(n)}]} for n in range(40)])
    with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    (folder / "cache-1234.arrow").write_bytes(b"what datasets leaves behind")
    (folder / "state.json").write_text("{}")
    source = open_source(str(folder), tmp_path / "index")
    assert source.read([39])[0] == {"messages": [{"role": "user", "content": "39"}]}


def test_several_splits_want_a_choice(tmp_path):
    for name in ("train-00000-of-00001.jsonl", "test-00000-of-00001.jsonl"):
        (tmp_path / name).write_text(lines(1) if "test" in name else lines(1, 2))
    with pytest.raises(UsageError, match=r"several splits \(test, train\); choose some with a pattern, such as"):
        open_source(str(tmp_path), tmp_path / "index")
    assert len(open_source(f"{tmp_path}::train-*", tmp_path / "index")) == 2


def test_several_kinds_of_files_want_a_choice(tmp_path):
    (tmp_path / "a.jsonl").write_text(lines(1))
    pq.write_table(pa.table({"prompt": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=r"several kinds \(\.jsonl, \.parquet\)"):
        open_source(str(tmp_path), tmp_path / "index")
    assert len(open_source(f"{tmp_path}::*.parquet", tmp_path / "index")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere", "does not exist"),
        ("a.txt", r"no source: expected a file ending in \.jsonl"),
        ("empty", r"holds no \.jsonl"),
        ("empty::x*", r"named x\*"),
    ],
)
def test_what_is_no_source_says_so(tmp_path, text, message):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=message):
        open_source(str(tmp_path / text), tmp_path / "index")


def test_a_file_that_changes_is_noticed_and_one_put_back_is_not(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1, 2))
    source = open_source(str(path), tmp_path / "index")
    source.require_unchanged()
    os.utime(path, (1, 1))
    source.require_unchanged()  # another time, the same bytes
    path.write_text(lines(1, 3))
    with pytest.raises(UsageError, match=r"a\.jsonl changed since this build was begun: its sha256 was"):
        source.require_unchanged()
    path.unlink()
    with pytest.raises(UsageError, match=r"a\.jsonl is gone"):
        source.require_unchanged()


def test_a_file_that_changes_while_it_is_indexed_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1))

    def grow(text):
        with path.open("a") as file:
            file.write(lines(2))

    with pytest.raises(UsageError, match="changed while it was read"):
        open_source(str(path), tmp_path / "index", progress=grow)
    assert not (tmp_path / "index" / "source.json").exists()
