"""Documents to rows: concatenate with EOS between them, cut every `row_tokens`; nothing is padded."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np


class HasTokens(Protocol):
    """What packing needs of a document: its ids and, for each, whether it is a target (1) or not (0)."""

    @property
    def ids(self) -> Sequence[int] | np.ndarray: ...  # noqa: D102

    @property
    def loss_mask(self) -> Sequence[int] | np.ndarray: ...  # noqa: D102


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One fixed row: `ids` int32 and `loss_mask` uint8 [row_tokens].

    `doc_starts` int32 are the places in the row where a document's first token stands, ascending; a row
    that goes on with the document of the row before has no 0 in it. EOS belongs to the document before it.
    """

    ids: np.ndarray
    loss_mask: np.ndarray
    doc_starts: np.ndarray


class Packer:
    """Cuts a stream of documents into rows as they come, holding less than a row and one document.

    `eos` stands between documents, a target if `eos_supervised`. A row none of whose tokens from the second
    on is a target is skipped and counted: the first token of a row is predicted by nothing. For the same
    reason `clear_first` sets the mask of a row's first token to 0.
    """

    def __init__(self, *, eos: int, eos_supervised: bool, row_tokens: int, clear_first: bool) -> None:
        self._eos = np.array([eos], dtype=np.int32), np.array([eos_supervised], dtype=np.uint8)
        self._row_tokens = row_tokens
        self._clear_first = clear_first
        self._ids: list[np.ndarray] = []
        self._masks: list[np.ndarray] = []
        self._starts: list[int] = []
        self._tokens = 0
        self.documents = 0
        self.rows_without_targets = 0

    def add(self, document: HasTokens) -> Iterator[Row]:
        """Append a document and yield the rows that it completes; a row is counted as skipped when it is passed."""
        if self.documents:
            self._append(*self._eos)
        self._starts.append(self._tokens)
        self._append(np.asarray(document.ids, dtype=np.int32), np.asarray(document.loss_mask, dtype=np.uint8))
        self.documents += 1
        if self._tokens >= self._row_tokens:
            yield from self._cut()

    def _append(self, ids: np.ndarray, mask: np.ndarray) -> None:
        self._ids.append(ids)
        self._masks.append(mask)
        self._tokens += len(ids)

    def _cut(self) -> Iterator[Row]:
        size = self._row_tokens
        ids, mask, starts = np.concatenate(self._ids), np.concatenate(self._masks), np.array(self._starts, np.int32)
        used = len(ids) // size * size
        self._ids, self._masks, self._tokens = [ids[used:]], [mask[used:]], len(ids) - used
        self._starts = (starts[starts >= used] - used).tolist()
        for cut in range(0, used, size):
            row_mask = mask[cut : cut + size].copy()
            if not row_mask[1:].any():
                self.rows_without_targets += 1
                continue
            if self._clear_first:
                row_mask[0] = 0
            inside = starts[(starts >= cut) & (starts < cut + size)] - cut
            yield Row(ids=ids[cut : cut + size], loss_mask=row_mask, doc_starts=inside.astype(np.int32))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """Rows cut from a stream: `ids` int32 and `loss_mask` uint8, both [rows, row_tokens].

    `documents` were begun, `rows_without_targets` were cut and skipped, and the stream's rest, less
    than one row, is left over. There are fewer rows than asked for where the documents ran out.
    """

    ids: np.ndarray
    loss_mask: np.ndarray
    documents: int
    rows_without_targets: int


def pack(documents: Iterable[HasTokens], *, separator: int, row_tokens: int, rows: int) -> Packed:
    """Cut `rows` rows in memory from the documents in their order, reading no more of them than needed.

    The separator is no target, and the mask of a row's first token is kept as it is.
    """
    packer = Packer(eos=separator, eos_supervised=False, row_tokens=row_tokens, clear_first=False)
    kept = list(itertools.islice((row for document in documents for row in packer.add(document)), rows))
    shape = (len(kept), row_tokens)
    return Packed(
        ids=np.array([row.ids for row in kept], dtype=np.int32).reshape(shape),
        loss_mask=np.array([row.loss_mask for row in kept], dtype=np.uint8).reshape(shape),
        documents=packer.documents,
        rows_without_targets=packer.rows_without_targets,
    )
