"""Evidence: whatever is altered, missing or outside is named."""

import hashlib
import json
import os

import pytest

from openrecipes.errors import ContentError
from openrecipes.recipe.evidence import EvidenceFile, NewFile, load_evidence, write_evidence
from openrecipes.recipe.fields import EvidenceReference

CREATED = "2026-12-01T04:23:00Z"
GOOD = {
    "kind": "log",
    "arm": "candidate",
    "run": 0,
    "path": "candidate/run.log",
    "sha256": hashlib.sha256(b"step 0\n").hexdigest(),
    "producer": "openrecipes 0.1.0",
    "created": CREATED,
}


@pytest.fixture
def folder(tmp_path):
    for arm in ("candidate", "reference"):
        (tmp_path / "evidence" / arm).mkdir(parents=True)
        (tmp_path / "evidence" / arm / "run.log").write_bytes(b"step 0\n")
    return tmp_path / "evidence"


def write(folder, *extra):
    files = [
        NewFile(kind="log", arm="candidate", run=0, path="candidate/run.log"),
        NewFile(kind="log", arm="reference", run=0, path="reference/run.log"),
        *extra,
    ]
    return write_evidence(folder, files, "openrecipes 0.1.0", CREATED)


def load(folder, sha256, manifest="evidence/evidence.json"):
    return load_evidence(folder.parent / "entry.yaml", EvidenceReference(manifest=manifest, sha256=sha256))


def load_text(folder, text):
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "evidence.json").write_bytes(data)
    return load(folder, hashlib.sha256(data).hexdigest())


def findings(act):
    with pytest.raises(ContentError) as caught:
        act()
    return caught.value.findings


def test_what_is_written_is_read_back(folder):
    (folder / "plot.svg").write_bytes(b"<svg/>")
    evidence = load(folder, write(folder, NewFile(kind="plot", path="plot.svg")))
    assert [f.path for f in evidence.files] == ["candidate/run.log", "reference/run.log", "plot.svg"]
    assert [f.path for f in evidence.find("log", "reference")] == ["reference/run.log"]
    assert evidence.find("journal") == []
    assert evidence.find("plot")[0].arm is None
    assert evidence.read(evidence.find("log")[0]) == b"step 0\n"
    assert evidence.folder == folder
    assert "arm" not in json.loads((folder / "evidence.json").read_text())["files"][2]


def test_the_runs_of_an_arm_are_found_in_order(folder):
    text = json.dumps({"format_version": 1, "files": [{**GOOD, "run": run, "path": f"{run}.log"} for run in (2, 0, 1)]})
    assert [f.run for f in load_text(folder, text).find("log", "candidate")] == [0, 1, 2]


def test_an_altered_file_is_named_with_both_hashes(folder):
    evidence = load(folder, write(folder))
    (folder / "candidate/run.log").write_bytes(b"step 1\n")
    (finding,) = findings(lambda: evidence.read(evidence.files[0]))
    assert finding.id == "D207"
    assert finding.path == folder / "candidate/run.log"
    assert hashlib.sha256(b"step 0\n").hexdigest() in finding.message
    assert hashlib.sha256(b"step 1\n").hexdigest() in finding.message
    assert evidence.read(evidence.files[1]) == b"step 0\n"


@pytest.mark.parametrize("what", ["missing", "folder", "pipe"])
def test_a_file_that_is_not_there_is_named(folder, what):
    evidence = load(folder, write(folder))
    path = folder / "candidate/run.log"
    path.unlink()
    if what == "folder":
        path.mkdir()
    if what == "pipe":
        os.mkfifo(path)
    (finding,) = findings(lambda: evidence.read(evidence.files[0]))
    assert (finding.id, finding.path) == ("D206", path)


def test_a_link_out_of_the_folder_is_refused(folder):
    evidence = load(folder, write(folder))
    outside = folder.parent / "outside.log"
    outside.write_bytes(b"step 0\n")
    (folder / "candidate/run.log").unlink()
    (folder / "candidate/run.log").symlink_to(outside)
    assert [f.id for f in findings(lambda: evidence.read(evidence.files[0]))] == ["D204"]


def test_a_loop_of_links_is_a_finding(folder):
    evidence = load(folder, write(folder))
    (folder / "candidate/run.log").unlink()
    (folder / "candidate/run.log").symlink_to(folder / "candidate/run.log")
    assert findings(lambda: evidence.read(evidence.files[0]))


def test_an_altered_manifest_is_found(folder):
    sha256 = write(folder)
    path = folder / "evidence.json"
    path.write_text(path.read_text().replace("0.1.0", "0.1.1"))
    assert [f.id for f in findings(lambda: load(folder, sha256))] == ["D202"]


@pytest.mark.parametrize(
    "manifest", ["evidence/none.json", "/etc/hostname", "../evidence.json", "evidence", "evidence/../x.json", "a\0b"]
)
def test_a_manifest_that_is_not_below_the_entry_is_refused(folder, manifest):
    assert [f.id for f in findings(lambda: load(folder, "0" * 64, manifest))] == ["D201"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        b"\xff\xfe",
        "[" * 100_000,
        '{"format_version": 2, "files": []}',
        '{"format_version": 1}',
        '{"format_version": 1, "files": [], "files": []}',
        '{"format_version": 1, "files": [], "extra": 1}',
        '{"format_version": 1, "files": [NaN]}',
        '{"format_version": 1, "files": ' + "9" * 5000 + "}",
    ],
)
def test_a_malformed_manifest_is_a_finding(folder, text):
    assert {f.id for f in findings(lambda: load_text(folder, text))} == {"D203"}


@pytest.mark.parametrize(
    ("field", "value", "id"),
    [
        ("kind", "photo", "D203"),
        ("arm", "control", "D203"),
        ("run", -1, "D203"),
        ("run", "0", "D203"),
        ("sha256", "abc", "D203"),
        ("created", "yesterday", "D203"),
        ("created", "2026-12-01T04:23:00", "D203"),
        ("created", "2026-12-01T04:23:00+05:00", "D203"),
        ("path", "/etc/passwd", "D204"),
        ("path", "../secret", "D204"),
        ("path", "a/../../b", "D204"),
        ("path", "a//b", "D204"),
        ("path", "./a", "D204"),
        ("path", ".", "D204"),
        ("path", "a\\b", "D204"),
        ("path", "C:/b", "D204"),
        ("path", "a\x00b", "D204"),
    ],
)
def test_a_wrong_entry_is_a_finding_at_its_field(folder, field, value, id):
    text = json.dumps({"format_version": 1, "files": [GOOD, {**GOOD, "path": "other.log", field: value}]})
    (finding,) = findings(lambda: load_text(folder, text))
    assert (finding.id, finding.field) == (id, f"files[1].{field}")


def test_all_problems_come_at_once(folder):
    files = [GOOD, GOOD, {**GOOD, "path": "/a"}, {**GOOD, "path": "../b"}]
    (folder / "evidence.json").write_text(json.dumps({"format_version": 1, "files": files}))
    assert [f.id for f in findings(lambda: load(folder, "0" * 64))] == ["D202", "D205", "D204", "D204"]


def test_nothing_is_written_for_files_that_cannot_be_listed(folder):
    extra = [
        NewFile(kind="plot", path="missing.svg"),
        NewFile(kind="plot", path="../outside.svg"),
        NewFile(kind="log", path="candidate/run.log"),
    ]
    assert [f.id for f in findings(lambda: write(folder, *extra))] == ["D206", "D204", "D205"]
    assert not (folder / "evidence.json").exists()


def test_a_file_of_the_manifest_is_frozen():
    file = EvidenceFile(**GOOD)
    with pytest.raises(ValueError, match="frozen"):
        file.path = "other"  # type: ignore[misc]
