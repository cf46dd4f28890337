from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.data.sources import jsonl
from openrecipes.data.sources.interface import Unreadable
from openrecipes.data.sources.jsonl import LineFile, index_lines, parse_record


def opened(tmp_path, data: bytes) -> LineFile:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(data)
    digest, records = index_lines(path, tmp_path / "index")
    assert digest == hashlib.sha256(data).hexdigest()
    file = LineFile(path, tmp_path / "index")
    assert len(file) == records
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lines")


LINES = st.lists(
    st.one_of(
        st.just(b""), st.just(b"\r"), st.just(b"7"), st.integers(0, 99).map(lambda n: json.dumps({"n": n}).encode())
    ),
    max_size=20,
)


@given(LINES, st.booleans(), st.integers(1, 9))
def test_every_line_is_found_whatever_the_read_size(folder, lines, ended, chunk):
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "_CHUNK", chunk)
        file = opened(folder, data)
    # The independent reading: the whole file, split.
    expected = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line]
    # A last line that is a lone \r has no line end behind it, so it is content.
    expected = [(n, line) for n, line in expected if line != b"\r" or (n == len(lines) and not ended)]
    assert [file.line(place) for place in range(len(file))] == [number for number, _ in expected]
    assert [isinstance(record, Unreadable) for record in file.read(range(len(file)))] == [
        not line.startswith(b"{") for _, line in expected
    ]


def test_any_order_gives_the_records_asked_for(tmp_path):
    file = opened(tmp_path, b"".join(b'{"n": %d}\n' % n for n in range(100)))
    places = [99, 0, 50, 50, 3]
    assert [record["n"] for record in file.read(places)] == places


@pytest.mark.parametrize(
    ("line", "kind", "detail"),
    [
        (b'{"a": "\xff"}', "invalid_utf8", "byte 7 is 0xff: invalid start byte"),
        (b'{"a": ', "invalid_json", "Expecting value"),
        (b"[1]", "invalid_json", "found list, expected an object"),
        (b"null", "invalid_json", "found NoneType"),
        (b'{"a":' * 100_000, "invalid_json", "recursion"),
        (b'{"a": ' + b"9" * 5000 + b"}", "invalid_json", "4300 digits"),
    ],
)
def test_a_line_that_is_no_json_object_says_why(line, kind, detail):
    found = parse_record(line)
    assert isinstance(found, Unreadable)
    assert found.kind == kind
    assert detail in found.detail


def test_bad_lines_are_records_between_their_neighbours(tmp_path):
    file = opened(tmp_path, b'{"n": 1}\n\xff\xfe\n\n{"n": 4}\n{"n": ')
    first, bad, last, torn = file.read([0, 1, 2, 3])
    assert (first, last) == ({"n": 1}, {"n": 4})
    assert [found.kind for found in (bad, torn)] == ["invalid_utf8", "invalid_json"]
    assert [file.line(place) for place in range(4)] == [1, 2, 4, 5]


def test_a_message_of_100_megabytes_is_refused_without_being_read(tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("wb") as out:
        out.write(b'{"n": 1}\n{"a": "')
        out.truncate(100 * 2**20)  # a hole: the bytes are there, the disk is not used
        out.seek(0, 2)
        out.write(b'"}\n{"n": 3}\n')
    index_lines(path, tmp_path / "index")
    first, long, last = LineFile(path, tmp_path / "index").read([0, 1, 2])
    assert (first, last) == ({"n": 1}, {"n": 3})
    assert long == Unreadable("too_long", "104857594 bytes, at most 8388608 are read")


def test_a_byte_order_mark_is_allowed_at_the_start_only(tmp_path):
    file = opened(tmp_path, b'\xef\xbb\xbf{"n": 1}\n\xef\xbb\xbf{"n": 2}\n')
    first, second = file.read([0, 1])
    assert first == {"n": 1}
    assert isinstance(second, Unreadable)


def test_an_empty_file_has_no_records(tmp_path):
    assert len(opened(tmp_path, b"")) == 0
