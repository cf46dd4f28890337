"""The journal keeps what finished, drops what did not, and refuses what is not its own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.errors import UsageError
from openrecipes.tune.journal import ArmRecord, Journal

IDENTITY = {"workload": {"steps": 20}, "rows_sha256": "ab"}


def record(arm: str, *, ok: bool = True) -> ArmRecord:
    return ArmRecord(
        arm=arm,
        layout="tp=1",
        ok=ok,
        cause=None if ok else "rank 1: out of memory",
        predicted_tokens_per_s=1.5,
        wall_s=2.0,
    )


def test_finished_arms_are_found_again_and_failed_ones_too(tmp_path):
    with Journal(tmp_path, IDENTITY) as journal:
        for name, ok in (("tp2", True), ("pp2", False)):
            (journal.begin(name) / "run.log").write_text("step")
            journal.finish(record(name, ok=ok))
    with Journal(tmp_path, IDENTITY) as journal:
        assert list(journal.arms.values()) == [record("tp2"), record("pp2", ok=False)]
        assert (tmp_path / "tp2" / "run.log").read_text() == "step"


def test_an_arm_that_did_not_finish_leaves_nothing(tmp_path):
    with Journal(tmp_path, IDENTITY) as journal:
        (journal.begin("tp2") / "run.log").write_text("half")
    with Journal(tmp_path, IDENTITY) as journal:
        assert journal.arms == {}
        assert not list(tmp_path.glob("tp2*"))


def test_a_kill_between_rename_and_line_runs_the_arm_again(tmp_path):
    with Journal(tmp_path, IDENTITY) as journal:
        journal.begin("tp2").rename(tmp_path / "tp2")
    with Journal(tmp_path, IDENTITY) as journal:
        assert journal.arms == {}
        journal.begin("tp2")
        journal.finish(record("tp2"))
    with Journal(tmp_path, IDENTITY) as journal:
        assert list(journal.arms) == ["tp2"]


@given(cut=st.integers(0, 400))
def test_a_line_cut_short_by_a_kill_costs_that_line_only(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("journal")
    with Journal(folder, IDENTITY) as journal:
        for name in ("a", "b"):
            journal.begin(name)
            journal.finish(record(name))
    path = folder / "journal.jsonl"
    whole = path.read_bytes()
    kept = whole[: min(cut, len(whole))]
    path.write_bytes(kept)
    with Journal(folder, IDENTITY) as journal:
        assert len(journal.arms) == max(0, kept.count(b"\n") - 1)
        journal.begin("c")
        journal.finish(record("c"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["identity"] == IDENTITY
    assert lines[-1]["arm"] == "c"


def test_another_tune_is_refused_and_says_what_differs(tmp_path):
    with Journal(tmp_path, IDENTITY):
        pass
    with pytest.raises(UsageError, match="different: rows_sha256"), Journal(tmp_path, IDENTITY | {"rows_sha256": "cd"}):
        pass


def test_a_running_tune_is_not_joined(tmp_path):
    with (
        Journal(tmp_path, IDENTITY),
        pytest.raises(UsageError, match="another tune is running"),
        Journal(tmp_path, IDENTITY),
    ):
        pass


@pytest.mark.parametrize("text", ["no json\n", "[]\n", '{"identity": {"x": 1}}\n{"arm": 3}\n', "\x00\xff\n"])
def test_a_file_that_is_no_journal_is_refused(tmp_path, text):
    (tmp_path / "journal.jsonl").write_text(text)
    with pytest.raises(UsageError, match="not a journal"), Journal(tmp_path, IDENTITY):
        pass
