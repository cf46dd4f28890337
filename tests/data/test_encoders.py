from __future__ import annotations

import sys

import assets
import numpy as np
import pytest

from openrecipes.data import encoders
from openrecipes.data.check_texts import check_texts
from openrecipes.data.encoders import FastEncoder, HfEncoder, choose_engine, self_check
from openrecipes.errors import MissingToolError, RunError, UsageError


@pytest.fixture(scope="module")
def tokenizer_json() -> str:
    return (assets.qwen3_checkpoint() / "tokenizer.json").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reference(tokenizer_json) -> HfEncoder:
    return HfEncoder(tokenizer_json)


@pytest.fixture(scope="module")
def fast(tokenizer_json, reference) -> FastEncoder:
    pytest.importorskip("fastokens")
    return FastEncoder(tokenizer_json, reference)


class Lying(FastEncoder):
    """Takes one character for another."""

    def encode_unchecked(self, texts):
        return super().encode_unchecked([text.replace("é", "e").replace("天", "地") for text in texts])


@pytest.fixture
def lying(fast, monkeypatch) -> None:
    monkeypatch.setattr(encoders, "FastEncoder", Lying)


def test_the_reference_gives_int32_ids_without_added_ones_and_offsets_of_characters(reference):
    assert [one.tolist() for one in reference.encode(["<|im_start|>天", ""])] == [[151644, 35727], []]
    ids, offsets = reference.encode_with_offsets("<|im_start|>天")
    assert ids.dtype == np.int32
    assert ids.tolist() == [151644, 35727]
    assert offsets.tolist() == [[0, 12], [12, 13]]
    assert reference.encode_with_offsets("")[1].shape == (0, 2)


def test_ordinary_text_has_no_control_tokens_and_the_next_text_has_them_again(reference):
    assert 151644 not in reference.encode_with_offsets("<|im_start|>", ordinary=True)[0]
    assert 151644 in reference.encode_with_offsets("<|im_start|>")[0]


def test_the_fast_engine_agrees_on_the_check_texts_and_is_chosen(fast, reference, tokenizer_json):
    assert self_check(fast, reference) is None
    for name in ("auto", "fastokens"):
        found = choose_engine(name, tokenizer_json, reference)
        assert found.encoder.name == "fastokens"
        assert found.fall_back is None


def test_the_reference_can_be_asked_for(reference, tokenizer_json):
    found = choose_engine("hf", tokenizer_json, reference)
    assert found.encoder is reference
    assert found.fall_back is None


def test_an_engine_that_is_not_installed_is_said_and_the_reference_used(reference, tokenizer_json, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastokens", None)
    found = choose_engine("auto", tokenizer_json, reference)
    assert found.encoder is reference
    assert found.fall_back is not None
    assert "fastokens is not installed" in found.fall_back
    with pytest.raises(MissingToolError, match="pip install"):
        choose_engine("fastokens", tokenizer_json, reference)


@pytest.mark.usefixtures("lying")
def test_an_engine_whose_ids_differ_fails_the_self_check(reference, tokenizer_json):
    found = choose_engine("auto", tokenizer_json, reference)
    assert found.encoder is reference
    assert found.fall_back is not None
    assert "other ids than tokenizers for" in found.fall_back
    with pytest.raises(MissingToolError, match="other ids"):
        choose_engine("fastokens", tokenizer_json, reference)


def test_an_engine_that_cannot_read_the_tokenizer_is_said(fast, reference):
    found = choose_engine("auto", '{"model": 3}', reference)
    assert found.encoder is reference
    assert found.fall_back is not None
    assert "cannot be used" in found.fall_back


def test_an_engine_that_panics_is_said(reference, tokenizer_json, monkeypatch):
    class Panic(BaseException):
        pass

    def panic(*_):
        raise Panic("out of range")

    pytest.importorskip("fastokens")
    monkeypatch.setattr(FastEncoder, "encode_unchecked", panic)
    found = choose_engine("auto", tokenizer_json, reference)
    assert found.encoder is reference
    assert "out of range" in str(found.fall_back)


def test_a_tokenizer_that_the_reference_cannot_read_is_an_error():
    with pytest.raises(UsageError, match=r"cannot read the tokenizer\.json"):
        HfEncoder('{"model": 3}')


def test_an_unknown_engine_is_an_error(reference, tokenizer_json):
    with pytest.raises(UsageError, match="expected one of auto, hf, fastokens"):
        choose_engine("quick", tokenizer_json, reference)


def test_some_texts_go_through_both_engines_and_a_difference_stops_the_run(fast, reference, tokenizer_json):
    texts = [f"é {number}" for number in range(1000)]
    fast.encode(texts)
    with pytest.raises(RunError, match="--engine hf"):
        Lying(tokenizer_json, reference).encode(texts)


def test_which_texts_are_checked_again_does_not_depend_on_the_batch(fast, reference, tokenizer_json, monkeypatch):
    texts = [f"text {number}" for number in range(1000)]
    seen: list[str] = []
    original = HfEncoder.encode

    def note(self, some):
        seen.extend(some)
        return original(self, some)

    monkeypatch.setattr(HfEncoder, "encode", note)
    fast.encode(texts)
    together, seen[:] = list(seen), []
    for text in texts:
        fast.encode([text])
    assert 0 < len(together) < 20
    assert seen == together


def test_no_texts_give_no_ids(fast, reference):
    assert fast.encode([]) == reference.encode([]) == []


def test_the_check_texts_are_the_same_every_time_and_hold_what_is_hard():
    texts = check_texts()
    assert texts == check_texts()
    assert len(texts) > 400
    joined = "".join(texts)
    assert all(hard in joined for hard in ("<|im_start|>", "\u0958", "\u0301", "👩‍👩‍👧‍👦", "天空", "\r\n"))
