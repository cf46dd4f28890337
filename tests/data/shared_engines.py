"""Encoders that share what takes seconds to load, so that a test of another mask costs no tokenizer of its own."""

from __future__ import annotations

from functools import cache
from unittest import mock

from openrecipes.data import encode
from openrecipes.data.encode import ConversationEncoder, EncodeOptions
from openrecipes.data.encoders import EngineChoice, HfEncoder, choose_engine


def load(options: EncodeOptions) -> ConversationEncoder:
    """The encoder of these options; tokenizers of the same content are loaded once a process."""
    with (
        mock.patch.object(encode, "HfEncoder", _reference),
        mock.patch.object(encode, "choose_engine", lambda engine, tokenizer_json, _: _engine(engine, tokenizer_json)),
    ):
        return ConversationEncoder(options)


@cache
def _reference(tokenizer_json: str) -> HfEncoder:
    return HfEncoder(tokenizer_json)


@cache
def _engine(engine: str, tokenizer_json: str) -> EngineChoice:
    return choose_engine(engine, tokenizer_json, _reference(tokenizer_json))
