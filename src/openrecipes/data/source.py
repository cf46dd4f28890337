"""Human conversations from a JSON file inside an installed package.

The file maps a conversation's id to `{"messages": [[{"text", "sender"}, ...], ...]}`, the shape of the
`chitchat-dataset` package (https://github.com/BYU-PCCL/chitchat-dataset, MIT, read 2026-12-01). The first
speaker becomes the user, the second the assistant, and what one of them said in a row is one turn.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from openrecipes.errors import ContentError, Finding, Severity

JOINER = "\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """Where conversations come from; `license` must be what the package's own metadata states."""

    package: str = "chitchat-dataset"
    file: str = "chitchat_dataset/dataset.json"
    license: str = "MIT"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turn:
    """What one side said without the other in between; `role` is `user` or `assistant`."""

    role: str
    content: str


class Rejection(str, Enum):
    """Why a conversation is left out."""

    ONE_SIDED = "fewer than one turn of each side"
    CROWD = "more than two senders"
    CONTROL_TOKEN = "text that spells a control token"


def read_conversations(path: Path) -> list[Any]:
    """Read the file's conversations in its own order, unchecked; `turns` judges each.

    Raises:
        ContentError: the file is not JSON, or not an object of conversations.
    """
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ContentError([_finding(path, None, f"not readable as JSON: {error}")]) from error
    if not isinstance(found, dict):
        message = f"found {type(found).__name__}, expected an object of conversations by id"
        raise ContentError([_finding(path, None, message)])
    wrong = [
        _finding(path, key, 'expected {"messages": [[{"text": ..., "sender": ...}, ...], ...]}')
        for key, value in found.items()
        if not _has_shape(value)
    ]
    if wrong:
        raise ContentError(wrong)
    return list(found.values())


def turns(conversation: Any, control_tokens: Collection[str]) -> tuple[Turn, ...] | Rejection:
    """The turns of one conversation, or why it is left out.

    Contents are stripped, as the Qwen3.5 chat template does; a message without text is passed over.
    """
    messages = [(m["sender"], m["text"].strip()) for block in conversation["messages"] for m in block]
    messages = [(sender, text) for sender, text in messages if text]
    speakers = list(dict.fromkeys(sender for sender, _ in messages))
    if len(speakers) > 2:
        return Rejection.CROWD
    if len(speakers) < 2:
        return Rejection.ONE_SIDED
    if any(token in text for _, text in messages for token in control_tokens):
        return Rejection.CONTROL_TOKEN
    roles = dict(zip(speakers, ("user", "assistant"), strict=True))
    return tuple(Turn(role=roles[sender], content=JOINER.join(texts)) for sender, texts in _merged(messages))


def _merged(messages: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    merged: list[tuple[str, list[str]]] = []
    for sender, text in messages:
        if merged and merged[-1][0] == sender:
            merged[-1][1].append(text)
        else:
            merged.append((sender, [text]))
    return merged


def _has_shape(value: Any) -> bool:
    blocks = value.get("messages") if isinstance(value, dict) else None
    return isinstance(blocks, list) and all(
        isinstance(block, list)
        and all(
            isinstance(m, dict) and isinstance(m.get("text"), str) and isinstance(m.get("sender"), str) for m in block
        )
        for block in blocks
    )


def _finding(path: Path, field: str | None, message: str) -> Finding:
    return Finding(
        id="F008",
        severity=Severity.ERROR,
        message=message,
        remedy="install the package again, or name a file of this shape",
        path=path,
        field=field,
    )
