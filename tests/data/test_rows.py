from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from openrecipes.data.rows import compact, load_rows, rows_sha256, write_rows
from openrecipes.errors import ContentError, UsageError

SHAPES = st.tuples(st.integers(1, 5), st.integers(2, 9))


@st.composite
def token_rows(draw):
    shape = draw(SHAPES)
    ids = draw(hnp.arrays(np.int32, shape, elements=st.integers(0, 300_000)))
    mask = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    return ids, mask


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ids = np.array([[7, 248_044, 7, 3], [9, 9, 3, 7]], dtype=np.int32)
    mask = np.array([[0, 1, 1, 0], [0, 0, 1, 1]], dtype=np.uint8)
    write_rows(tmp_path / "rows", tokenizer_ids=ids, loss_mask=mask, manifest={"made_by": "a test"})
    return tmp_path / "rows"


@settings(max_examples=40, deadline=None)
@given(token_rows())
def test_what_is_written_is_read_back(tmp_path_factory, rows):
    ids, mask = rows
    folder = tmp_path_factory.mktemp("rows") / "new"
    manifest = write_rows(folder, tokenizer_ids=ids, loss_mask=mask, manifest={})
    found = load_rows(folder)
    np.testing.assert_array_equal(found.vocabulary[found.ids], ids)
    np.testing.assert_array_equal(found.loss_mask, mask)
    assert found.manifest == manifest
    assert found.ids.max() < found.vocabulary.size == manifest["vocabulary_size"]


@given(token_rows())
def test_compact_ids_are_dense_and_ascending(rows):
    ids, vocabulary = compact(rows[0])
    assert set(ids.flat) == set(range(vocabulary.size))
    assert (np.diff(vocabulary) > 0).all()


def test_hash_is_the_documented_one():
    ids, mask = np.array([[1, 2], [3, 248_044]]), np.array([[0, 1], [1, 1]])
    text = b"openrecipes-rows-v1\n" + struct.pack("<I", 2)
    text += struct.pack("<ii", 1, 2) + bytes([0, 1]) + struct.pack("<ii", 3, 248_044) + bytes([1, 1])
    assert rows_sha256(ids, mask) == hashlib.sha256(text).hexdigest()


def test_hash_tells_rows_of_another_length_apart():
    flat = np.arange(8)
    hashes = {rows_sha256(flat.reshape(s), np.zeros(s, np.uint8)) for s in ((2, 4), (4, 2), (1, 8))}
    assert len(hashes) == 3


def test_arrays_are_read_only(folder):
    with pytest.raises(ValueError, match="read-only"):
        load_rows(folder).ids[0, 0] = 1


def _save(folder: Path, name: str, change) -> None:
    array = np.load(folder / name)
    np.save(folder / name, change(array))


def _edit(array: np.ndarray, place, value) -> np.ndarray:
    array[place] = value
    return array


def _archive(folder: Path) -> None:
    with (folder / "rows.npy").open("wb") as file:
        np.savez(file, a=np.zeros(1))


DAMAGE = {
    "an id changed": ("F007", lambda f: _save(f, "rows.npy", lambda a: _edit(a, (0, 0), 0))),
    "a mask bit changed": ("F007", lambda f: _save(f, "loss_mask.npy", lambda a: _edit(a, (0, 0), 1))),
    "a vocabulary entry changed": ("F007", lambda f: _save(f, "vocabulary.npy", lambda a: _edit(a, -1, 248_045))),
    "rows swapped": ("F007", lambda f: _save(f, "rows.npy", lambda a: a[::-1])),
    "a row dropped": ("F005", lambda f: _save(f, "loss_mask.npy", lambda a: a[:1])),
    "a mask of 2": ("F005", lambda f: _save(f, "loss_mask.npy", lambda a: _edit(a, (0, 0), 2))),
    "a vocabulary out of order": ("F006", lambda f: _save(f, "vocabulary.npy", lambda a: a[::-1])),
    "an id above the vocabulary": ("F006", lambda f: _save(f, "rows.npy", lambda a: _edit(a, (0, 0), 99))),
    "a negative id": ("F006", lambda f: _save(f, "rows.npy", lambda a: _edit(a, (0, 0), -1))),
    "another type": ("F003", lambda f: _save(f, "rows.npy", lambda a: a.astype(np.int64))),
    "another byte order": ("F003", lambda f: _save(f, "rows.npy", lambda a: a.astype(">i4"))),
    "one dimension": ("F003", lambda f: _save(f, "rows.npy", np.ravel)),
    "no rows": ("F003", lambda f: _save(f, "rows.npy", lambda a: a[:0])),
    "pickled objects": ("F003", lambda f: np.save(f / "rows.npy", np.array([{}], dtype=object))),
    "an archive": ("F003", _archive),
    "half a file": ("F003", lambda f: (f / "rows.npy").write_bytes((f / "rows.npy").read_bytes()[:-5])),
    "an empty file": ("F003", lambda f: (f / "rows.npy").write_bytes(b"")),
    "a missing array": ("F003", lambda f: (f / "rows.npy").unlink()),
    "a missing manifest": ("F001", lambda f: (f / "manifest.json").unlink()),
    "a manifest that is no JSON": ("F001", lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe")),
    "a manifest that is a list": ("F001", lambda f: (f / "manifest.json").write_text("[]")),
    "a manifest nested deeply": ("F001", lambda f: (f / "manifest.json").write_text("[" * 100_000)),
}


@pytest.mark.parametrize(("id", "damage"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found(folder, id, damage):
    damage(folder)
    with pytest.raises(ContentError) as raised:
        load_rows(folder)
    assert {finding.id for finding in raised.value.findings} == {id}


@pytest.mark.parametrize(
    ("key", "value", "id"),
    [
        ("rows", 3, "F004"),
        ("row_tokens", 5, "F004"),
        ("vocabulary_size", 3, "F004"),
        ("rows_sha256", "0" * 64, "F007"),
        ("rows_sha256", None, "F007"),
        ("format_version", 2, "F002"),
    ],
)
def test_manifest_must_agree(folder, key, value, id):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ContentError) as raised:
        load_rows(folder)
    assert [finding.id for finding in raised.value.findings] == [id]


def test_all_findings_come_at_once(folder):
    (folder / "rows.npy").unlink()
    (folder / "vocabulary.npy").unlink()
    with pytest.raises(ContentError) as raised:
        load_rows(folder)
    assert len(raised.value.findings) == 2


def test_missing_folder_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="not a folder of fixed rows"):
        load_rows(tmp_path / "none")


def test_nothing_is_written_over_or_left_half_written(folder, tmp_path):
    one = np.zeros((1, 2), np.int32)
    with pytest.raises(UsageError, match="cannot write rows"):
        write_rows(folder, tokenizer_ids=one, loss_mask=one, manifest={})
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write rows"):
        write_rows(tmp_path / "file" / "rows", tokenizer_ids=one, loss_mask=one, manifest={})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "rows"]
    assert load_rows(folder).manifest["rows"] == 2
