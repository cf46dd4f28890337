"""Bad files: one clear finding each, in bounded time and memory."""

import os
import time
from pathlib import Path

import pytest

from openrecipes.errors import ContentError, UsageError
from openrecipes.recipe.reader import MAX_BYTES, MAX_DEPTH, ScalarNode, parse_document, read_document

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


def refused(text: str):
    with pytest.raises(ContentError) as caught:
        parse_document(text, Path("r.yaml"))
    return caught.value.findings


@pytest.mark.parametrize(
    ("data", "id"),
    [
        (b"", "D104"),
        (b"# only a comment\n", "D104"),
        (b"- a\n- b\n", "D104"),
        (b"just text\n", "D104"),
        (b"a: 1\n---\nb: 2\n", "D104"),
        (b"\x7fELF\x00\x01\x02", "D102"),
        (b"model: caf\xe9\n", "D102"),
        ("model: x\n".encode("utf-16"), "D102"),
        (b"\xef\xbb\xbfmodel: x\n", "D102"),
        (b"a: 'unfinished\n", "D103"),
        (b"a: b: c\n", "D103"),
        (b"a:\n\t- tab\n", "D103"),
        (b"a: \x07bell\n", "D103"),
        (b"[" * 100_000, "D103"),
        (b"a: *nowhere\n", "D107"),
        (b"a: &x [*x]\n", "D107"),
    ],
)
def test_a_file_that_is_no_recipe_is_one_finding(tmp_path, data, id):
    path = tmp_path / "r.yaml"
    path.write_bytes(data)
    with pytest.raises(ContentError) as caught:
        read_document(path)
    assert [f.id for f in caught.value.findings] == [id]
    assert caught.value.findings[0].path == path
    assert caught.value.findings[0].remedy


def test_a_good_file_is_read_with_the_place_of_every_node():
    root = parse_document("a: x\nb:\n  - é: 'q'\n    c: |\n      text\n", Path("r.yaml")).root
    (_, a), (_, b) = root.entries
    assert isinstance(a, ScalarNode)
    assert (a.text, a.place.line, a.place.column) == ("x", 1, 4)
    (_, q), (c_key, c) = b.items[0].entries  # type: ignore[union-attr]
    assert (q.place.line, q.place.column, q.plain) == (3, 8, False)
    assert (c_key.place.line, c_key.place.column, c.text) == (4, 5, "text\n")


@pytest.mark.parametrize("name", ["missing.yaml", "folder", "pipe", "nul\0.yaml"])
def test_a_path_that_is_no_file_is_a_usage_error(tmp_path, name):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    if name == "pipe":
        os.mkfifo(path)
    with pytest.raises(UsageError, match="expected a YAML file"):
        read_document(path)


def test_fifty_megabytes_are_refused_without_being_read(tmp_path):
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(50 * 2**20)
    started = time.perf_counter()
    with pytest.raises(ContentError) as caught:
        read_document(path)
    assert caught.value.findings[0].id == "D101"
    assert time.perf_counter() - started < 0.5


def test_the_size_limit_is_exact(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"a: b\n#".ljust(MAX_BYTES, b"#"))
    assert read_document(path).findings == ()
    path.write_bytes(b"a: b\n#".ljust(MAX_BYTES + 1, b"#"))
    with pytest.raises(ContentError, match="D101"):
        read_document(path)


def test_a_yaml_bomb_is_one_finding_at_once():
    started = time.perf_counter()
    (finding,) = refused(BOMB)
    assert finding.id == "D106"
    assert "expands" in finding.message
    assert time.perf_counter() - started < 0.5


def test_many_empty_nodes_reach_the_limit_as_well():
    (finding,) = refused("a: [" + "[],\n" * 250_000 + "]")
    assert finding.id == "D106"


def test_a_few_aliases_are_read():
    root = parse_document("a: &a [1, 2]\nb: *a\n", Path("r.yaml")).root
    assert root.entries[0][1] is root.entries[1][1]


@pytest.mark.parametrize(("depth", "refuse"), [(MAX_DEPTH - 2, False), (MAX_DEPTH, True)])
def test_the_depth_limit_holds(depth, refuse):
    text = "a: " + "[" * depth + "x" + "]" * depth + "\n"
    if refuse:
        assert [f.id for f in refused(text)] == ["D106"]
    else:
        assert parse_document(text, Path("r.yaml")).findings == ()


@pytest.mark.parametrize(
    ("text", "id", "line", "column", "field"),
    [
        ("a: 1\nb: 2\na: 3\n", "D105", 3, 1, "a"),
        ("a: {x: 1, 'x': 2}\n", "D105", 1, 11, "a.x"),
        ("a: !!python/object:os.system {}\n", "D107", 1, 4, "a"),
        ("a:\n- !custom x\n", "D107", 2, 3, "a[0]"),
        ("a: &m {x: 1}\nb:\n  <<: *m\n", "D107", 3, 3, "b"),
        ("? [a, b]\n: c\n", "D107", 1, 3, None),
    ],
)
def test_a_fault_in_one_place_is_kept_and_reading_goes_on(text, id, line, column, field):
    document = parse_document(text + "last: x\n", Path("r.yaml"))
    (finding,) = document.findings
    assert (finding.id, finding.line, finding.column, finding.field) == (id, line, column, field)
    assert document.root.entries[-1][0].text == "last"
