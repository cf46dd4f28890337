"""A real tokenizer, the official Qwen3.5 template and real conversations, through the whole builder."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import toy
from assets import chitchat, llamafactory, qwen3_5_checkpoint

from openrecipes.data.builder import build
from openrecipes.data.encode import ConversationEncoder, EncodeOptions
from openrecipes.data.options import BuildOptions
from openrecipes.data.show import decoder, pieces, read_row
from openrecipes.data.verify import verify


@pytest.fixture(scope="module")
def records() -> list[dict]:
    """Human conversations, and others with tool calls, reasoning and system messages, mixed."""
    found = [*chitchat(600), *llamafactory()]
    random.Random(1).shuffle(found)
    return found[:1200]


@pytest.fixture(scope="module")
def source(records, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("source") / "chat.jsonl"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def rows(source: Path, out: Path, *, engine: str = "auto", workers: int = 1) -> dict:
    encode = EncodeOptions(tokenizer=str(qwen3_5_checkpoint()), loss_mask="qwen3_5", engine=engine)
    options = BuildOptions(
        source=str(source),
        encode=encode,
        row_tokens=512,
        rows=300,
        seed=42,
        out=out,
        max_rejected=100,
        block_size=64,
        workers=workers,
    )
    return build(options, toy.Quiet())


@pytest.fixture(scope="module")
def built(source, tmp_path_factory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("built") / "rows"
    return out, rows(source, out, engine="hf")


def test_both_engines_and_two_workers_give_the_same_rows(built, source, tmp_path):
    pytest.importorskip("fastokens")
    manifest = rows(source, tmp_path / "rows", engine="fastokens", workers=2)
    assert manifest["encoder"]["engine"]["name"] == "fastokens"
    assert built[1]["encoder"]["engine"]["name"] == "tokenizers"
    assert manifest["rows_sha256"] == built[1]["rows_sha256"]
    assert (tmp_path / "rows" / "rows.parquet").read_bytes() == (built[0] / "rows.parquet").read_bytes()
    assert manifest["conversations"] == built[1]["conversations"]


def test_what_was_built_verifies_and_reads_as_conversations(built):
    folder, manifest = built
    assert verify(folder, toy.Quiet()) == []
    encoder = decoder(folder, None)
    assert isinstance(encoder, ConversationEncoder)
    text = ""
    for number in range(20):
        row = read_row(folder, number)
        for piece in pieces(row, encoder):
            text += f"[[{piece.text}]]" if piece.target else piece.text
    assert "<|im_start|>user\n" in text
    # What qwen3_5 trains of a last turn without reasoning: the closing of the empty think block and the answer.
    # The blank line in the block is one token, whose second half is in the span, so all of it is a target.
    assert "<|im_start|>assistant\n<think>[[\n\n</think>\n\n" in text
    assert "<|im_end|>\n]]" in text
    assert "]]<|endoftext|><|im_start|>" in text  # EOS stands between conversations and is no target
    assert manifest["conversations"]["used"] > 100
