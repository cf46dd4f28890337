"""What of a checkpoint folder decides the ids: `tokenizer.json` and the chat template, each with its SHA-256."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openrecipes.errors import ContentError, Finding, Severity, UsageError

_TOKENIZER, _CONFIG, _TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
_SLOW = ("vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model", "*.tiktoken", "*.model")
# What a template may ask for by name, as transformers passes it.
_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedToken:
    """A token that is found in the text before anything else is."""

    id: int
    text: str
    special: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A tokenizer with its template, as a checkpoint's folder carries them.

    `named_tokens` are the tokens that the template may ask for by name (`eos_token`).
    """

    folder: Path
    tokenizer_json: bytes = dataclasses.field(repr=False)
    tokenizer_sha256: str
    template: str = dataclasses.field(repr=False)
    template_sha256: str
    added_tokens: tuple[AddedToken, ...]
    named_tokens: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path) -> Checkpoint:
        """Read a folder.

        Raises:
            UsageError: it is not there, or lacks the tokenizer or the template.
            ContentError: one of its files is damaged.
        """
        if not folder.is_dir():
            raise UsageError(f"tokenizer folder {folder} does not exist; give the folder of a checkpoint")
        data = _tokenizer(folder)
        config = _object(folder / _CONFIG) if (folder / _CONFIG).is_file() else {}
        template = _template(folder, config)
        added = _added_tokens(folder / _TOKENIZER, data)
        _require_same_tokens(folder, added, config)
        return cls(
            folder=folder,
            tokenizer_json=data,
            tokenizer_sha256=hashlib.sha256(data).hexdigest(),
            template=template,
            template_sha256=hashlib.sha256(template.encode()).hexdigest(),
            added_tokens=added,
            named_tokens={name: text for name in _NAMED if (text := _token_text(config.get(name))) is not None},
        )

    def require_tokenizer_sha256(self, expected: str) -> None:
        """Compare the tokenizer's hash.

        Raises:
            UsageError: it is another one.
        """
        if expected.lower() != self.tokenizer_sha256:
            raise UsageError(
                f"{self.folder / _TOKENIZER} has sha256 {self.tokenizer_sha256}, expected {expected}; "
                "give the folder of the checkpoint that the rows are for"
            )

    @property
    def special_tokens(self) -> dict[str, int]:
        """Spelling and id of every special token."""
        return {token.text: token.id for token in self.added_tokens if token.special}


def _tokenizer(folder: Path) -> bytes:
    try:
        return (folder / _TOKENIZER).read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        slow = sorted({path.name for pattern in _SLOW for path in folder.glob(pattern)})
        if slow:
            raise UsageError(
                f"{folder} has only a slow tokenizer ({', '.join(slow)}); rows need a {_TOKENIZER}: save it once with "
                f"transformers' AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            ) from None
        raise UsageError(f"{folder} has no {_TOKENIZER}; give the folder of a checkpoint") from None


def _template(folder: Path, config: Mapping[str, Any]) -> str:
    """The default template; like transformers, a file of its own stands above the one in the configuration."""
    path = folder / _TEMPLATE
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except ValueError as error:
            raise _wrong(path, f"not readable as UTF-8: {error}") from error
    found = config.get("chat_template")
    if isinstance(found, list):  # named templates: a tool's or a document's own ones are not for training rows
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    if not isinstance(found, str) or not found:
        raise UsageError(
            f"{folder} has no chat template: neither a {_TEMPLATE} nor a default `chat_template` in {_CONFIG}; "
            "rows need the template of the model they train"
        )
    return found


def _added_tokens(path: Path, data: bytes) -> tuple[AddedToken, ...]:
    try:
        found = json.loads(data)
        return tuple(
            AddedToken(id=int(one["id"]), text=str(one["content"]), special=bool(one["special"]))
            for one in found.get("added_tokens", [])
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _wrong(path, f"not readable as a tokenizer: {error}") from error


def _require_same_tokens(folder: Path, added: tuple[AddedToken, ...], config: Mapping[str, Any]) -> None:
    """Transformers adds tokens of the configuration that the tokenizer lacks; then the ids are not this file's."""
    listed = config.get("added_tokens_decoder")
    if not isinstance(listed, dict):
        return
    there = {(str(token.id), token.text) for token in added}
    lacking = [_token_text(one) for id, one in listed.items() if (str(id), _token_text(one)) not in there]
    if lacking:
        raise _wrong(folder / _CONFIG, f"adds tokens that {_TOKENIZER} lacks: {', '.join(map(str, lacking))}")


def _token_text(found: Any) -> str | None:
    found = found.get("content") if isinstance(found, dict) else found
    return found if isinstance(found, str) else None


def _object(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"not readable as JSON: {error}") from error
    if not isinstance(found, dict):
        raise _wrong(path, f"found {type(found).__name__}, expected an object")
    return found


def _wrong(path: Path, message: str) -> ContentError:
    remedy = "copy the checkpoint's tokenizer files again"
    return ContentError([Finding(id="F010", severity=Severity.ERROR, message=message, remedy=remedy, path=path)])
