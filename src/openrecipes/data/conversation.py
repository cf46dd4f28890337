"""A conversation as the encoder takes it, read from any of the shapes that SFT datasets have.

messages       [{"role", "content", "reasoning_content", "tool_calls"}, ...]     OpenAI's
conversations  [{"from", "value"}, ...]                                          ShareGPT's
prompt, completion                                                                two texts, or two lists of messages
system, tools  beside any of them: a system message in front, and the functions that the assistant may call

A record that is none of these is a `Rejection`: a value with its reason, so that it is counted and never lost.
A key of a message that is there and None is a key that is not there: Parquet gives every field of a struct.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

_ROLES = ("system", "user", "assistant", "tool")
_SHAREGPT = {
    "human": "user",
    "gpt": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "function": "tool",
}
# The names that transformers reads reasoning under, the first that is there winning.
_REASONING = ("reasoning_content", "thinking", "reasoning")
_DEEPEST = 100  # of a call's arguments or a tool's schema: the same limit on every Python


class RejectionKind(str, Enum):
    """Why a conversation is left out; the values stand in manifests."""

    NO_MESSAGES = "no_messages"
    BAD_ROLE = "bad_role"
    EMPTY_MESSAGE = "empty_message"
    BAD_TYPE = "bad_type"
    CONTROL_TOKEN = "control_token"
    TEMPLATE_ERROR = "template_error"
    NO_TARGETS = "no_targets"
    TOKENIZER_MISMATCH = "tokenizer_mismatch"


@dataclasses.dataclass(frozen=True)
class Rejection:
    """A conversation that is left out: the kind is counted, the detail is for the person who looks."""

    kind: RejectionKind
    detail: str


@dataclasses.dataclass(frozen=True)
class Message:
    """One message. Only a `step_loss_mask` of 1 lets an assistant's message be trained, as slime has it."""

    role: str
    content: str
    reasoning_content: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    step_loss_mask: int = 1
    name: str | None = None
    tool_call_id: str | None = None

    def to_template(self) -> dict[str, Any]:
        """The message as a chat template sees it, without what it does not have."""
        found: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.reasoning_content is not None:
            found["thinking"] = found["reasoning_content"] = self.reasoning_content
        if self.tool_calls:
            found["tool_calls"] = list(self.tool_calls)
        if self.name is not None:
            found["name"] = self.name
        if self.tool_call_id is not None:
            found["tool_call_id"] = self.tool_call_id
        return found


@dataclasses.dataclass(frozen=True)
class Conversation:
    """Messages in their order, and the functions that the assistant was told of."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] | None = None


class _RejectedError(Exception):
    def __init__(self, kind: RejectionKind, detail: str) -> None:
        self.rejection = Rejection(kind, detail)


def read_conversation(raw: Mapping[str, Any]) -> Conversation | Rejection:
    """Read one record of a dataset, or say why it holds no conversation."""
    try:
        messages = [
            _plain_message(found) or _message(found, f"message {number}")
            for number, found in enumerate(_raw_messages(raw))
        ]
        if not messages:
            return Rejection(RejectionKind.NO_MESSAGES, "the list of messages is empty")
        if raw.get("system"):
            text = _text(raw["system"], "system")
            messages.insert(0, _nonempty(Message("system", text), "system"))
        return Conversation(tuple(messages), _tools(raw.get("tools")))
    except _RejectedError as error:
        return error.rejection


def _raw_messages(raw: Mapping[str, Any]) -> Sequence[Any]:
    for key in ("messages", "conversations"):
        if raw.get(key) is not None:
            return _list(raw[key], key)
    if raw.get("prompt") is None:
        keys = ", ".join(f"`{key}`" for key in raw) or "none"
        raise _RejectedError(
            RejectionKind.NO_MESSAGES, f"no `messages`, `conversations` or `prompt` among the keys: {keys}"
        )
    if raw.get("completion") is None:
        raise _RejectedError(RejectionKind.NO_MESSAGES, "a `prompt` without a `completion`")
    return [*_side(raw["prompt"], "user", "prompt"), *_side(raw["completion"], "assistant", "completion")]


def _side(found: Any, role: str, key: str) -> Sequence[Any]:
    return [{"role": role, "content": found}] if isinstance(found, str) else _list(found, key)


def _plain_message(raw: Any) -> Message | None:
    """The same as `_message` for what most messages are: a role and a text, and nothing else."""
    if isinstance(raw, dict) and len(raw) == 2:
        role, content = raw.get("role"), raw.get("content")
        if role in _ROLES and isinstance(content, str) and content.isascii() and content.strip():
            return Message(role, content)
    return None


def _message(raw: Any, where: str) -> Message:
    if not isinstance(raw, Mapping):
        raise _wrong_type(where, raw, "an object")
    role = raw.get("role") if raw.get("role") is not None else _sharegpt_role(raw.get("from"))
    if role not in _ROLES:
        raise _RejectedError(RejectionKind.BAD_ROLE, f"{where}: role {role!r}, expected one of {', '.join(_ROLES)}")
    content = raw.get("content") if raw.get("content") is not None else raw.get("value")
    reasoning = next((raw[key] for key in _REASONING if raw.get(key) is not None), None)
    calls = _calls(raw.get("tool_calls"), where)
    text = _content(content, where)
    if raw.get("from") == "function_call":  # ShareGPT writes the call itself as the text
        text, calls = "", _sharegpt_call(text, where)
    message = Message(
        role=role,
        content=text,
        reasoning_content=None if reasoning is None else _text(reasoning, f"{where}: reasoning"),
        tool_calls=calls,
        step_loss_mask=_step_loss_mask(raw.get("step_loss_mask"), where),
        name=_optional_text(raw.get("name"), f"{where}: name"),
        tool_call_id=_optional_text(raw.get("tool_call_id"), f"{where}: tool_call_id"),
    )
    return _nonempty(message, where)


def _sharegpt_role(found: Any) -> Any:
    return _SHAREGPT.get(found, found) if isinstance(found, str) else found


def _nonempty(message: Message, where: str) -> Message:
    """A tool may answer nothing, and a call needs no text; anything else says something."""
    if message.role != "tool" and not message.tool_calls and not message.content.strip():
        raise _RejectedError(RejectionKind.EMPTY_MESSAGE, f"{where}: the {message.role}'s text is empty")
    return message


def _content(found: Any, where: str) -> str:
    """Text, or the texts of a list of parts; a part that is no text (an image) is nothing that rows can hold."""
    if found is None:
        return ""
    if isinstance(found, str):
        return _text(found, f"{where}: content")
    texts = []
    for part in _list(found, f"{where}: content"):
        if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
            raise _wrong_type(f"{where}: content part", part, "text")
        texts.append(_text(part["text"], f"{where}: content part"))
    return "".join(texts)


def _calls(found: Any, where: str) -> tuple[Mapping[str, Any], ...]:
    calls = () if found is None else tuple(_list(found, f"{where}: tool_calls"))
    for call in calls:
        if not isinstance(call, Mapping):
            raise _wrong_type(f"{where}: tool call", call, "an object")
    return tuple(_json(call, f"{where}: tool call") for call in calls)


def _sharegpt_call(text: str, where: str) -> tuple[Mapping[str, Any], ...]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    calls = found if isinstance(found, list) else [found]
    if not calls or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        raise _RejectedError(RejectionKind.BAD_TYPE, f"{where}: a function_call whose text is no JSON call")
    return tuple({"type": "function", "function": call} for call in calls)


def _tools(found: Any) -> tuple[Mapping[str, Any], ...] | None:
    """The tools, also where a dataset keeps them as JSON text."""
    if isinstance(found, str) and found.strip():
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            raise _RejectedError(RejectionKind.BAD_TYPE, "tools: text that is no JSON") from None
    if not found:
        return None
    tools = _list(found, "tools")
    for tool in tools:
        if not isinstance(tool, Mapping):
            raise _wrong_type("tools: a tool", tool, "an object")
    return tuple(_json(tool, "tools") for tool in tools)


def _json(found: Any, where: str, depth: int = _DEEPEST) -> Any:
    """A plain copy whose texts are UTF-8; a null inside a call or a tool may mean something, so it stays."""
    if depth == 0:
        raise _RejectedError(RejectionKind.BAD_TYPE, f"{where}: nested deeper than {_DEEPEST}")
    if isinstance(found, Mapping):
        return {_text(key, where): _json(value, where, depth - 1) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_json(value, where, depth - 1) for value in found]
    if isinstance(found, str):
        return _text(found, where)
    if found is None or isinstance(found, bool | int | float):
        return found
    raise _wrong_type(where, found, "JSON")


def _step_loss_mask(found: Any, where: str) -> int:
    if found is None:
        return 1
    if not isinstance(found, int | float):
        raise _wrong_type(f"{where}: step_loss_mask", found, "0 or 1")
    return int(found == 1)


def _optional_text(found: Any, where: str) -> str | None:
    return None if found is None else _text(found, where)


def _text(found: Any, where: str) -> str:
    if not isinstance(found, str):
        raise _wrong_type(where, found, "text")
    try:
        found.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON can spell and UTF-8 cannot
        raise _RejectedError(
            RejectionKind.BAD_TYPE, f"{where}: character {error.start} is half of a surrogate pair"
        ) from None
    return found


def _list(found: Any, where: str) -> Sequence[Any]:
    if not isinstance(found, list | tuple):
        raise _wrong_type(where, found, "a list")
    return found


def _wrong_type(where: str, found: Any, expected: str) -> _RejectedError:
    return _RejectedError(RejectionKind.BAD_TYPE, f"{where}: found {type(found).__name__}, expected {expected}")
