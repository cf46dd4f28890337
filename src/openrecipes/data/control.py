"""Control tokens spelled in a conversation's own text: found, or marked so that they stay text.

`<|im_end|>` inside an answer would end it, and `<|im_start|>assistant` inside a question would have the question
trained. Under `refuse` such a conversation is left out. Under `escape` a mark is put inside every spelling, which
no template or mask then takes for the token, and the mark is taken out again when the text around the template's
own control tokens is encoded as ordinary text.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from openrecipes.data.conversation import Conversation
from openrecipes.data.encoders import HfEncoder

POLICIES = ("refuse", "escape")
_PRIVATE_USE = range(0xF0000, 0xFFFFE)


class ControlTokens:
    """The spellings that only the template may write."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        longest_first = sorted(tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._ids = np.array(sorted(tokens.values()), dtype=np.int32)

    def find(self, conversation: Conversation) -> str | None:
        """A control token that the conversation spells, if it does."""
        found = self._pattern.search("\0".join(_texts(conversation)))
        return found and found.group()

    def mark(self, conversation: Conversation) -> tuple[Conversation, str]:
        """The conversation with the mark behind the first character of every spelling, and the mark."""
        used = set("".join(_texts(conversation)))
        mark = next(chr(code) for code in _PRIVATE_USE if chr(code) not in used)

        def insert(text: str) -> str:
            # Twice: a name is checked with the `>` that templates write behind it.
            marked = self._pattern.sub(lambda found: found[0][0] + mark + found[0][1:], text)
            return self._pattern.sub(lambda found: found[0][0] + mark + found[0][1:], f"{marked}>")[:-1]

        messages = tuple(
            dataclasses.replace(
                message,
                content=insert(message.content),
                reasoning_content=None if message.reasoning_content is None else insert(message.reasoning_content),
                tool_calls=_map_texts(message.tool_calls, insert),
                name=None if message.name is None else insert(message.name),
                tool_call_id=None if message.tool_call_id is None else insert(message.tool_call_id),
            )
            for message in conversation.messages
        )
        return Conversation(messages, _map_texts(conversation.tools, insert)), mark

    def encode_marked(self, text: str, mark: str, encoder: HfEncoder) -> tuple[np.ndarray, np.ndarray] | None:
        """Ids, and offsets in the marked text; None where the tokenizer makes a control token out of plain text."""
        ids, offsets, position = [], [], 0
        for part in re.split(f"({self._pattern.pattern})", text):
            control = self._pattern.fullmatch(part) is not None
            kept = np.array([n for n, character in enumerate(part) if character != mark], dtype=np.int64) + position
            found, places = encoder.encode_with_offsets(part.replace(mark, ""), ordinary=not control)
            if not control and np.isin(found, self._ids).any():
                return None
            if len(found):
                ids.append(found)
                offsets.append(np.stack([kept[places[:, 0]], kept[places[:, 1] - 1] + 1], axis=1))
            position += len(part)
        return np.concatenate(ids), np.concatenate(offsets)


def _texts(conversation: Conversation) -> Iterator[str]:
    for message in conversation.messages:
        yield message.content
        if message.reasoning_content is not None:
            yield message.reasoning_content
        if message.tool_calls:
            yield from _texts_in(message.tool_calls)
        if message.name is not None:
            yield message.name
        if message.tool_call_id is not None:
            yield message.tool_call_id
    if conversation.tools:
        yield from _texts_in(conversation.tools)


def _texts_in(found: Any) -> Iterator[str]:
    """Every text inside, keys included, each with the `>` that templates write behind names."""
    if isinstance(found, str):
        yield f"{found}>"
    elif isinstance(found, Mapping):
        for key, value in found.items():
            yield f"{key}>"
            yield from _texts_in(value)
    elif isinstance(found, Iterable):
        for one in found:
            yield from _texts_in(one)


def _map_texts(found: Any, change: Callable[[str], str]) -> Any:
    if isinstance(found, str):
        return change(found)
    if isinstance(found, Mapping):
        return {change(key): _map_texts(value, change) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return type(found)(_map_texts(one, change) for one in found)
    return found
