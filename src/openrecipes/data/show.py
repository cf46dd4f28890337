"""One row as text, in pieces that are targets or are not."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from openrecipes.data.encode import ConversationEncoder, EncodeOptions
from openrecipes.data.formats import reader
from openrecipes.data.manifest import layout_of, read_manifest
from openrecipes.data.packing import Row
from openrecipes.errors import UsageError


class Decoder(Protocol):
    """Ids back to text."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids, special tokens spelled out."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """Consecutive tokens that are all targets or all not; `begins` says that a conversation begins here."""

    text: str
    target: bool
    begins: bool
    first_token: int


def read_row(folder: Path, number: int) -> Row:
    """Row `number` of a folder of rows.

    Raises:
        UsageError: there is no such row.
        ContentError: the folder is damaged.
    """
    rows, row_tokens, name = layout_of(folder, read_manifest(folder))
    if not 0 <= number < rows:
        raise UsageError(f"row {number} does not exist: {folder} has the rows 0 to {rows - 1}")
    found = reader(name)(folder, row_tokens)
    return next(itertools.islice(found, number, None))


def decoder(folder: Path, tokenizer: Path | None) -> Decoder:
    """The tokenizer that the rows were built with, found where it was or at `tokenizer`.

    Raises:
        UsageError: it is not there, or another one is.
    """
    manifest = read_manifest(folder)
    layout_of(folder, manifest)
    options = manifest["options"]["encode"]
    if tokenizer is not None:
        options = options | {"tokenizer": str(tokenizer)}
    return ConversationEncoder(EncodeOptions(**options))


def pieces(row: Row, decoder: Decoder) -> Iterator[Piece]:
    """The row's text, cut where the mask changes and where a conversation begins.

    A character whose bytes are tokens on both sides of a cut shows as the replacement character.
    """
    changes = np.flatnonzero(np.diff(row.loss_mask)) + 1
    starts = set(row.doc_starts.tolist())
    cuts = sorted({0, len(row.ids), *changes.tolist(), *starts})
    for start, stop in itertools.pairwise(cuts):
        text = decoder.decode(row.ids[start:stop].tolist())
        yield Piece(text=text, target=bool(row.loss_mask[start]), begins=start in starts, first_token=start)
