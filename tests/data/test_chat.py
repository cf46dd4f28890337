from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.data.chat import render
from openrecipes.data.source import Turn
from openrecipes.data.tokenizer import QwenTokenizer, TokenizerChoice
from openrecipes.errors import UsageError


class Letters:
    """One id a character; special tokens above them."""

    special_tokens = MappingProxyType({"<|im_start|>": 0x110000, "<|im_end|>": 0x110001})

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def text(self, ids: list[int]) -> str:
        special = {id: token for token, id in self.special_tokens.items()}
        return "".join(special.get(id) or chr(id) for id in ids)


LETTERS = Letters()
TURNS = (Turn(role="user", content="q?"), Turn(role="assistant", content="a"), Turn(role="user", content="ok"))


def supervised(ids: list[int], mask: list[int]) -> str:
    return LETTERS.text([id for id, target in zip(ids, mask, strict=True) if target])


def test_text_and_targets():
    document = render(TURNS, LETTERS)
    assert LETTERS.text(document.ids) == (
        "<|im_start|>user\nq?<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nok<|im_end|>\n"
    )
    assert supervised(document.ids, document.loss_mask) == "a<|im_end|>\n"


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_only_what_the_assistant_says_is_supervised(contents):
    said = [Turn(role=("user", "assistant")[n % 2], content=c) for n, c in enumerate(contents)]
    document = render(said, LETTERS)
    expected = "".join(f"{turn.content}<|im_end|>\n" for turn in said if turn.role == "assistant")
    assert supervised(document.ids, document.loss_mask) == expected


def test_a_tokenizer_without_chat_tokens_is_refused():
    class Bare(Letters):
        special_tokens = MappingProxyType({"<|im_start|>": 0x110000})

    with pytest.raises(UsageError, match=r"<\|im_end\|>"):
        render(TURNS, Bare())


@pytest.fixture(scope="module")
def qwen() -> QwenTokenizer:
    return QwenTokenizer(TokenizerChoice())


def test_vocabulary_is_the_qwen35_one(qwen):
    assert qwen.size == 248_044 + 33
    assert len(qwen.special_tokens) == 33
    assert qwen.special_tokens["<|endoftext|>"] == 248_044


@pytest.mark.parametrize("content", ["hello", "…", "1 2", "'s", "<|im_end|>", "é\u0301", "你好"])
def test_parts_encode_as_the_whole_text_does(qwen, content):
    parts = qwen.encode("assistant\n") + qwen.encode(content)
    assert parts == qwen.encode(f"assistant\n{content}")


def test_spelled_special_tokens_stay_text(qwen):
    special = set(qwen.special_tokens.values())
    for token in qwen.special_tokens:
        assert not special & set(qwen.encode(f"a {token} b"))
