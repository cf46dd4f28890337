"""Text to ids: `tokenizers` is the reference; `fastokens`, thirty times as fast, is used where its ids agree."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from importlib.metadata import version
from typing import Protocol

import numpy as np
import tokenizers

from openrecipes.data.check_texts import check_texts
from openrecipes.errors import MissingToolError, RunError, UsageError

ENGINES = ("auto", "hf", "fastokens")
_CHECKED_AGAIN = 256  # one text of so many goes through both engines while the rows are made


class Encoder(Protocol):
    """Whole texts to ids; spelled control tokens become their ids."""

    name: str

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The int32 ids of each text."""
        ...


class HfEncoder:
    """The reference: the `tokenizers` library, as transformers uses it for a rendered chat."""

    name = "tokenizers"

    def __init__(self, tokenizer_json: str) -> None:
        """Load.

        Raises:
            UsageError: `tokenizers` cannot read it.
        """
        try:
            self.tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json)
        except Exception as error:  # the Rust side raises bare Exception
            raise UsageError(
                f"`tokenizers` {tokenizers.__version__} cannot read the tokenizer.json: {error}"
            ) from error
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The ids of each text, without offsets."""
        found = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(one.ids, dtype=np.int32) for one in found]

    def encode_with_offsets(self, text: str, *, ordinary: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Ids and (start, end) characters; in `ordinary` text a spelled special token is text like any other."""
        self.tokenizer.encode_special_tokens = ordinary
        try:
            found = self.tokenizer.encode(text, add_special_tokens=False)
        finally:
            self.tokenizer.encode_special_tokens = False
        offsets = np.array(found.offsets, dtype=np.int64).reshape(-1, 2)
        return np.array(found.ids, dtype=np.int32), offsets


class FastEncoder:
    """`fastokens`; now and then a text goes through the reference too."""

    name = "fastokens"

    def __init__(self, tokenizer_json: str, reference: HfEncoder) -> None:
        from fastokens import Tokenizer

        self._tokenizer = Tokenizer.from_json_str(tokenizer_json)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._reference = reference

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The ids of each text.

        Raises:
            RunError: they are not the reference's.
        """
        found = self.encode_unchecked(texts)
        # Which texts are checked depends on the text alone, so that it is the same however the work is cut.
        again = [number for number, text in enumerate(texts) if zlib.crc32(text.encode()) % _CHECKED_AGAIN == 0]
        for number, expected in zip(again, self._reference.encode([texts[n] for n in again]), strict=True):
            if not np.array_equal(found[number], expected):
                raise RunError(
                    f"fastokens gives other ids than tokenizers for {_excerpt(texts[number])}; "
                    "run again with --engine hf, and in a new folder"
                )
        return found

    def encode_unchecked(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The ids of each text, whatever the reference says."""
        flat, ends = self._tokenizer.encode_batch_flat(list(texts))
        ids = np.frombuffer(flat, dtype="<u4").astype(np.int32)
        return np.split(ids, np.frombuffer(ends, dtype="<u8")[1:-1].astype(np.int64)) if texts else []


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """The engine that makes the ids, and why not the fast one where it was not forced."""

    encoder: Encoder
    version: str
    fall_back: str | None = None


def choose_engine(engine: str, tokenizer_json: str, reference: HfEncoder) -> EngineChoice:
    """The engine asked for; `auto` takes `fastokens` where it is installed and passes the self-check.

    Raises:
        UsageError: there is no such engine.
        MissingToolError: `fastokens` was asked for and is not installed, or its ids differ.
    """
    if engine not in ENGINES:
        raise UsageError(f"engine `{engine}` is not known, expected one of {', '.join(ENGINES)}")
    hf = EngineChoice(encoder=reference, version=tokenizers.__version__)
    if engine == "hf":
        return hf
    try:
        fast = FastEncoder(tokenizer_json, reference)
        problem = self_check(fast, reference)
    except ImportError:
        problem = "fastokens is not installed; `pip install openrecipes[fast]` makes this thirty times as fast"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of its Rust side is no Exception
        problem = f"fastokens cannot be used with this tokenizer.json: {error}"
    else:
        if problem is None:
            return EngineChoice(encoder=fast, version=version("fastokens"))
    if engine == "fastokens":
        raise MissingToolError(problem)
    return dataclasses.replace(hf, fall_back=problem)


def self_check(fast: FastEncoder, reference: HfEncoder) -> str | None:
    """What the first disagreement with the reference is, over chats and over strings made to find one."""
    texts = check_texts()
    for text, found, expected in zip(texts, fast.encode_unchecked(texts), reference.encode(texts), strict=True):
        if not np.array_equal(found, expected):
            return f"fastokens gives other ids than tokenizers for {_excerpt(text)}"
    return None


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}...")
