from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import toy

from openrecipes.data import blocks
from openrecipes.data.formats import FORMATS, reader
from openrecipes.data.permutation import Permutation
from openrecipes.data.rows import rows_sha256
from openrecipes.data.verify import verify
from openrecipes.errors import ContentError, RunError, UsageError


@pytest.fixture(scope="module")
def built(toy_source, tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "rows"
    return out, toy.build(toy_source, out)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def straightforward_rows(source: Path, *, row_tokens: int, rows: int, eos_supervised: int = 0):
    """The rows by the documentation, all in memory, one token at a time."""
    lines = source.read_bytes().splitlines()
    ids, mask, starts = [], [], []
    for place in Permutation(len(lines), 42):
        try:
            messages = json.loads(lines[place])["messages"]
        except ValueError:
            continue
        if len(messages) < 2:
            continue
        if ids:
            ids.append(toy.EOS)
            mask.append(eos_supervised)
        starts.append(len(ids))
        for message in messages:
            for byte in message["content"].encode():
                ids.append(byte)
                mask.append(int(message["role"] == "assistant"))
    found = []
    for cut in range(0, len(ids) - row_tokens + 1, row_tokens):
        row_mask = mask[cut : cut + row_tokens]
        row_mask[0] = 0
        if any(row_mask):
            inside = [start - cut for start in starts if cut <= start < cut + row_tokens]
            found.append((ids[cut : cut + row_tokens], row_mask, inside))
    return found[:rows]


@pytest.mark.parametrize("supervised", [False, True])
def test_rows_are_those_of_a_straightforward_implementation(toy_source, tmp_path, supervised):
    manifest = toy.build(toy_source, tmp_path / "rows", eos_supervised=supervised)
    expected = straightforward_rows(toy_source, row_tokens=128, rows=300, eos_supervised=int(supervised))
    rows = list(reader("parquet")(tmp_path / "rows", 128))
    assert len(rows) == 300
    assert [(r.ids.tolist(), r.loss_mask.tolist(), r.doc_starts.tolist()) for r in rows] == expected
    ids, mask = np.array([r.ids for r in rows]), np.array([r.loss_mask for r in rows])
    assert manifest["rows_sha256"] == rows_sha256(ids, mask)
    assert manifest["supervised_tokens"] == mask.sum()
    assert not (tmp_path / "rows.building").exists()


def test_the_manifest_counts_every_conversation_that_was_read(built, toy_source):
    out, manifest = built
    counts = manifest["conversations"]
    assert counts["in_source"] == 600
    assert counts["read"] == counts["used"] + sum(counts["rejected"].values())
    assert set(counts["rejected"]) == {"invalid_json", "no_targets"}
    listed = [json.loads(line) for line in (out / "rejections.jsonl").read_text().splitlines()]
    assert len(listed) == sum(counts["rejected"].values())
    lines = toy_source.read_bytes().splitlines()
    for one in listed:
        line = int(one["where"].removeprefix("chat.jsonl:"))
        assert Permutation(600, 42)[one["place"]] == line - 1
        assert (lines[line - 1] == b"not json") == (one["kind"] == "invalid_json")


@pytest.mark.parametrize(
    "changes", [{"block_size": size} for size in (1, 7, 100, 4096)] + [{"workers": 2}, {"workers": 4}]
)
def test_workers_and_blocks_change_nothing_but_their_own_record(built, toy_source, tmp_path, changes):
    manifest = toy.build(toy_source, tmp_path / "rows", **changes)
    expected = built[1] | {"options": built[1]["options"] | changes}
    assert manifest == expected
    assert (tmp_path / "rows" / "rows.parquet").read_bytes() == (built[0] / "rows.parquet").read_bytes()


def test_every_format_holds_the_same_rows_and_the_same_bytes_each_time(built, toy_source, tmp_path):
    hashes = {built[1]["rows_sha256"]}
    for name in FORMATS:
        manifest = toy.build(toy_source, tmp_path / name, format=name)
        hashes.add(manifest["rows_sha256"])
        assert manifest["doc_starts_sha256"] == built[1]["doc_starts_sha256"]
        assert verify(tmp_path / name, toy.Quiet()) == []
        toy.build(toy_source, tmp_path / f"{name}-again", format=name, workers=2)
        again = content(tmp_path / f"{name}-again") | {"manifest.json": b""}
        assert again == content(tmp_path / name) | {"manifest.json": b""}  # the manifests differ in `workers`
    assert len(hashes) == 1


def test_parquet_and_jsonl_of_the_same_conversations_give_the_same_rows(toy_source, tmp_path):
    lines = [line for line in toy_source.read_bytes().splitlines() if line != b"not json"]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    pq.write_table(pa.Table.from_pylist([json.loads(line) for line in lines]), tmp_path / "a.parquet")
    first, second = (toy.build(tmp_path / f"a.{kind}", tmp_path / kind) for kind in ("jsonl", "parquet"))
    assert first["rows_sha256"] == second["rows_sha256"]
    assert first["conversations"] == second["conversations"]


def test_ray_makes_the_same_rows(built, toy_source, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of a default that will change
    ray.init(num_cpus=2, log_to_driver=False)  # a cluster that is there, as RAY_ADDRESS would name it
    try:
        manifest = toy.build(toy_source, tmp_path / "rows", workers="ray")
        assert manifest["rows_sha256"] == built[1]["rows_sha256"]
        with pytest.raises(UsageError, match=r"no special token `<\|nope\|>`"):  # an actor's error, as it was
            toy.build(toy_source, tmp_path / "more", workers="ray", eos_token="<|nope|>")
        assert ray.is_initialized()  # it was there before, so it stays
    finally:
        ray.shutdown()


def run_toy(source: Path, out: Path, *arguments: str, slow: float = 0) -> subprocess.Popen[str]:
    command = [sys.executable, toy.__file__, str(source), str(out), *arguments]
    environment = {**os.environ, "TOY_SLOW": str(slow)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def test_a_build_killed_at_20_random_points_finishes_with_the_same_bytes(built, toy_source, tmp_path):
    out = tmp_path / "rows"
    chance = random.Random(4)
    died, finished = 0, 0
    with run_toy(toy_source, out, "--die-at-each") as process:
        while died < 17:
            # Between two files, and in the midst of one: index, blocks and rows have some thousand bytes each.
            point = f"byte {chance.randrange(1, 15_000)}" if died % 3 == 0 else f"event {chance.randrange(1, 190)}"
            print(point, file=process.stdin, flush=True)
            code = int(process.stdout.readline())
            assert code in (-signal.SIGKILL, -signal.SIGXFSZ, 0)
            died += code != 0
            if out.exists():  # complete, or not there at all
                assert content(out) == content(built[0])
                finished += 1
                shutil.rmtree(out)
    assert finished < died  # else the kills came too late to prove anything
    for _ in range(3):  # by the clock, with workers
        process = run_toy(toy_source, out, "--workers", "2", slow=0.05)
        time.sleep(chance.uniform(0.5, 3))
        process.kill()
        process.communicate()
        if out.exists():
            shutil.rmtree(out)
    process = run_toy(toy_source, out)
    printed, errors = process.communicate(timeout=60)
    assert printed.strip() == built[1]["rows_sha256"], errors
    assert content(out) == content(built[0])
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_workers_end_with_a_parent_that_is_killed(toy_source, tmp_path):
    process = run_toy(toy_source, tmp_path / "rows", "--workers", "2", slow=0.2)
    blocks_folder = tmp_path / "rows.building" / "blocks"
    deadline = time.monotonic() + 60
    while not list(blocks_folder.glob("*.npz")) and time.monotonic() < deadline:
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 2
    process.kill()
    process.communicate()
    while (alive := [pid for pid in children if _is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive == []


def _is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_finished_blocks_are_not_made_again(toy_source, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="ask for fewer or shorter rows"):
        toy.build(toy_source, tmp_path / "rows", rows=10**6)
    monkeypatch.setattr(blocks.BlockMaker, "make", lambda *_: pytest.fail("made again"))
    # Other rows of the same blocks are no reason to make them again either.
    assert toy.build(toy_source, tmp_path / "rows", rows=20, row_tokens=64)["rows"] == 20


def test_a_source_that_is_too_small_says_how_much_it_gives(toy_source, tmp_path):
    everything = len(straightforward_rows(toy_source, row_tokens=128, rows=10**9))
    message = rf"gives {everything} rows of 128 tokens, 1000000 were asked for: \d+ of its 600 conversations"
    with pytest.raises(UsageError, match=message):
        toy.build(toy_source, tmp_path / "rows", rows=10**6)
    assert not (tmp_path / "rows").exists()


def test_rejections_above_the_limit_fail_with_positions_and_keep_the_blocks(toy_source, tmp_path):
    with pytest.raises(
        ContentError, match=r"3 of the first \d+ conversations are unusable \(.*\), 2 allowed"
    ) as caught:
        toy.build(toy_source, tmp_path / "rows", max_rejected=2)
    places = [str(finding.path) for finding in caught.value.findings if finding.path]
    assert len(places) == 3
    assert all(place.startswith("chat.jsonl:") for place in places)
    assert list((tmp_path / "rows.building" / "blocks").glob("*.npz"))
    assert toy.build(toy_source, tmp_path / "rows", max_rejected=1000)["rows"] == 300


def test_lines_that_cannot_be_read_are_counted_where_they_stand(tmp_path):
    source = tmp_path / "chat.jsonl"
    toy.write_source(source, 40)
    with source.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b'{"messages": "\xff"}\n{"messages": "')
        file.truncate(file.tell() + 100 * 2**20)  # a message of 100 MB: a hole, so that the disk is not used
        file.seek(0, os.SEEK_END)
        file.write(b'"}\n')
    toy.build(source, tmp_path / "rows", rows=10)
    begun(source, tmp_path / "all")
    kept = (tmp_path / "all.building" / "blocks").glob("*.npz")
    rejected = [one for path in sorted(kept) for one in blocks.read_block(path) if isinstance(one, blocks.Rejected)]
    found = {one.where: one.kind for one in rejected}
    assert found["chat.jsonl:41"] == "invalid_utf8"
    assert found["chat.jsonl:42"] == "too_long"


def begun(source: Path, out: Path) -> None:
    with pytest.raises(UsageError):
        toy.build(source, out, rows=10**6)


def test_a_source_that_changed_since_the_build_was_begun_is_refused(toy_source, tmp_path):
    source = tmp_path / "chat.jsonl"
    shutil.copy(toy_source, source)
    begun(source, tmp_path / "rows")
    data = source.read_bytes()
    source.write_bytes(data.replace(b"a1 ", b"b1 "))
    with pytest.raises(UsageError, match=r"chat\.jsonl changed since this build was begun"):
        toy.build(source, tmp_path / "rows")
    source.write_bytes(data)  # put back, the build goes on
    assert toy.build(source, tmp_path / "rows")["rows"] == 300


@pytest.mark.parametrize(
    ("changes", "named"), [({"seed": 43}, "another seed"), ({"block_size": 8}, "another block size")]
)
def test_an_unfinished_build_of_other_blocks_is_refused(toy_source, tmp_path, changes, named):
    begun(toy_source, tmp_path / "rows")
    with pytest.raises(UsageError, match=f"is an unfinished build of {named}"):
        toy.build(toy_source, tmp_path / "rows", **changes)
    assert toy.build(toy_source, tmp_path / "rows")["rows"] == 300


def test_rows_that_are_there_are_used_again_and_others_refused(built, toy_source, tmp_path, monkeypatch):
    out = tmp_path / "rows"
    shutil.copytree(built[0], out)
    before = content(out)
    monkeypatch.setattr(blocks.BlockMaker, "make", lambda *_: pytest.fail("made again"))
    assert toy.build(toy_source, out, workers=3, block_size=5) == built[1] | {
        "kind": "openrecipes fixed rows",
        "format_version": 1,
    }
    for changes, differing in [
        ({"seed": 1}, "seed"),
        ({"rows": 9}, "rows"),
        ({"eos_supervised": True}, "eos_supervised"),
    ]:
        with pytest.raises(UsageError, match=f"holds rows of other options \\({differing} differ\\)"):
            toy.build(toy_source, out, **changes)
    other = tmp_path / "chat.jsonl"
    toy.write_source(other, 601)
    with pytest.raises(UsageError, match=r"\(source differ\)"):
        toy.build(other, out, name=None)
    assert content(out) == before


def test_a_folder_of_something_else_is_left_alone(toy_source, tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="exists and holds no rows of a build"):
        toy.build(toy_source, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(("bytes_", "where"), [(2000, "index"), (10_000, "blocks")])
def test_a_disk_without_room_is_one_error_and_the_build_goes_on_later(built, toy_source, tmp_path, bytes_, where):
    out = tmp_path / "rows"
    process = run_toy(toy_source, out, "--file-bytes", str(bytes_))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 4
    assert errors.startswith(f"no room left for {out}.building (File too large); make room")
    assert len(errors.splitlines()) == 1
    assert not out.exists()
    assert toy.build(toy_source, out)["rows_sha256"] == built[1]["rows_sha256"]


def test_a_full_disk_in_a_worker_is_the_same_error(toy_source, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(blocks, "_write", full)
    with pytest.raises(RunError, match=r"no room left for .* \(No space left on device\)"):
        toy.build(toy_source, tmp_path / "rows")


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("crash", RunError, "a worker process died, killed or out of memory; the same command goes on"),
        ("start", UsageError, "the worker found no tokenizer"),
    ],
)
def test_a_worker_that_dies_is_one_error_and_the_build_goes_on_later(
    built, toy_source, tmp_path, monkeypatch, fault, error, message
):
    monkeypatch.setenv("TOY_FAULT", fault)
    with pytest.raises(error, match=message):
        toy.build(toy_source, tmp_path / "rows", workers=2)
    monkeypatch.delenv("TOY_FAULT")
    assert toy.build(toy_source, tmp_path / "rows", workers=2)["rows_sha256"] == built[1]["rows_sha256"]


def test_a_damaged_block_is_named(toy_source, tmp_path):
    begun(toy_source, tmp_path / "rows")
    block = tmp_path / "rows.building" / "blocks" / "00000003.npz"
    data = bytearray(block.read_bytes())
    data[len(data) // 2] ^= 1
    block.write_bytes(data)
    with pytest.raises(ContentError, match=r"00000003\.npz.*F009: a finished block is damaged"):
        toy.build(toy_source, tmp_path / "rows")
    block.unlink()
    assert toy.build(toy_source, tmp_path / "rows")["rows"] == 300


def test_two_builds_of_one_folder_do_not_meet(toy_source, tmp_path):
    process = run_toy(toy_source, tmp_path / "rows", slow=0.2)
    deadline = time.monotonic() + 60
    while not (tmp_path / "rows.building" / "blocks").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(UsageError, match="another process is building in"):
        toy.build(toy_source, tmp_path / "rows")
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_tokens": 1}, "row_tokens is 1, expected 2 or more"),
        ({"rows": 0}, "rows is 0, expected 1 or more"),
        ({"workers": 0}, "workers is 0, expected 1 or more"),
        ({"block_size": 0}, "block_size is 0"),
        ({"max_rejected": -1}, "max_rejected is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"format": "csv"}, "format `csv` is not known, expected one of parquet, megatron"),
        ({"eos_token": "<|nope|>"}, "no special token"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(toy_source, tmp_path, changes, message):
    with pytest.raises(UsageError, match=message.replace("|", r"\|")):
        toy.build(toy_source, tmp_path / "rows", **changes)
    assert list(tmp_path.iterdir()) == []
