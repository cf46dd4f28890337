"""Turns to tokens: the ChatML text of a conversation and which of its tokens are targets.

    <|im_start|>role\\ncontent<|im_end|>\\n        for each turn

Targets are the assistant's content through `<|im_end|>` and the newline after it. This is the general
assistant mask over plain ChatML, not slime's `qwen3_5` mask: no think block is inserted or supervised.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from openrecipes.data.source import Turn
from openrecipes.data.tokenizer import Tokenizer
from openrecipes.errors import UsageError

TEMPLATE = "chatml"
LOSS_MASK = "assistant content through <|im_end|> and the newline"
_START, _END = "<|im_start|>", "<|im_end|>"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """One conversation's ids and, for each, whether it is a target (1) or not (0)."""

    ids: list[int]
    loss_mask: list[int]


def special_id(tokenizer: Tokenizer, token: str) -> int:
    """The id of a special token.

    Raises:
        UsageError: the tokenizer has no such special token.
    """
    if token not in tokenizer.special_tokens:
        raise UsageError(f"the tokenizer has no special token `{token}`, which the rows need")
    return tokenizer.special_tokens[token]


def render(turns: Sequence[Turn], tokenizer: Tokenizer) -> Document:
    """Render a conversation.

    Header and content are encoded apart. For stripped content that gives the ids of the whole text:
    the pre-tokenizer ends a piece after the header's newline unless white space follows it.
    """
    start, end = special_id(tokenizer, _START), special_id(tokenizer, _END)
    newline = tokenizer.encode("\n")
    headers = {role: [start, *tokenizer.encode(f"{role}\n")] for role in {turn.role for turn in turns}}
    ids: list[int] = []
    mask: list[int] = []
    for turn in turns:
        header = headers[turn.role]
        body = [*tokenizer.encode(turn.content), end, *newline]
        ids += header + body
        mask += [0] * len(header) + [int(turn.role == "assistant")] * len(body)
    return Document(ids=ids, loss_mask=mask)
