"""Rows as Megatron-Core's indexed dataset: `rows.bin` and `rows.idx`, one sequence and one document a row.

    rows.bin         int32 [rows, row_tokens], little-endian: the tokens
    rows.idx         magic "MMIDIDX\\0\\0", uint64 version 1, uint8 dtype code 4 (int32), uint64 sequences,
                     uint64 document indices, int32 length of each sequence, int64 byte offset of each,
                     int64 document indices 0 .. rows
    loss_mask.bin    uint8 [rows, row_tokens]: 1 = the token is a target
    doc_starts.npz   `starts` int32: where in its row a conversation begins; `counts` int32 [rows]: how many a row has

The first two are what `megatron.core.datasets.indexed_dataset.IndexedDataset` reads (`_IndexWriter` there, release
core_v0.16.1, read 2026-12-01); Megatron's format has no place for a mask, so it stands beside.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from openrecipes.data.packing import Row
from openrecipes.errors import ContentError, Finding, Severity

TOKENS, INDEX, MASK, STARTS = "rows.bin", "rows.idx", "loss_mask.bin", "doc_starts.npz"
_MAGIC = b"MMIDIDX\x00\x00"
_VERSION, _INT32 = 1, 4
_HEADER = struct.Struct("<9sQBQQ")


class MegatronRows:
    """Writes rows in their order; the files are complete after `close`."""

    def __init__(self, folder: Path, *, row_tokens: int, source_name: str) -> None:
        self._folder = folder
        self._row_tokens = row_tokens
        self._starts: list[np.ndarray] = []
        self._tokens = (folder / TOKENS).open("wb")
        self._mask = (folder / MASK).open("wb")

    def write(self, row: Row) -> None:
        """Append a row."""
        self._tokens.write(row.ids.astype("<i4").tobytes())
        self._mask.write(row.loss_mask.astype("u1").tobytes())
        self._starts.append(row.doc_starts.astype("<i4"))

    def close(self) -> None:
        """Write the index and make all files durable."""
        rows, size = len(self._starts), self._row_tokens
        with (self._folder / INDEX).open("wb") as file:
            file.write(_index(rows, size))
            _settle(file)
        with (self._folder / STARTS).open("wb") as file:
            counts = np.array([len(starts) for starts in self._starts], dtype="<i4")
            np.savez(file, starts=np.concatenate([np.empty(0, "<i4"), *self._starts]), counts=counts)
            _settle(file)
        for file in (self._tokens, self._mask):
            _settle(file)
            file.close()

    def abandon(self) -> None:
        """Let go of the files as they are, after `close` or without it."""
        for file in (self._tokens, self._mask):
            with contextlib.suppress(OSError):
                file.close()


def read_rows(folder: Path, row_tokens: int) -> Iterator[Row]:
    """Read the rows back in their order.

    Raises:
        ContentError: a file is missing, damaged or of another shape.
    """
    index = _read(folder / INDEX)
    size = 4 * row_tokens
    rows, rest = divmod((folder / TOKENS).stat().st_size if (folder / TOKENS).is_file() else 0, size)
    if rest or not rows or index != _index(rows, row_tokens):
        raise _wrong(folder / INDEX, f"is not the index of {TOKENS} in rows of {row_tokens} tokens")
    starts, counts = _read_starts(folder / STARTS, rows)
    ends = np.cumsum(counts)
    with _open(folder / TOKENS) as tokens, _open(folder / MASK) as masks:
        for row in range(rows):
            ids, mask = tokens.read(size), masks.read(row_tokens)
            if len(mask) != row_tokens:
                raise _wrong(folder / MASK, f"ends within row {row}")
            yield Row(
                ids=np.frombuffer(ids, dtype="<i4"),
                loss_mask=np.frombuffer(mask, dtype="u1"),
                doc_starts=starts[ends[row] - counts[row] : ends[row]],
            )
        if masks.read(1):
            raise _wrong(folder / MASK, f"goes on after row {rows - 1}")


def _index(rows: int, row_tokens: int) -> bytes:
    lengths = np.full(rows, row_tokens, dtype="<i4")
    offsets = np.arange(rows, dtype="<i8") * (4 * row_tokens)
    documents = np.arange(rows + 1, dtype="<i8")
    header = _HEADER.pack(_MAGIC, _VERSION, _INT32, rows, rows + 1)
    return b"".join([header, lengths.tobytes(), offsets.tobytes(), documents.tobytes()])


def _read_starts(path: Path, rows: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            starts, counts = found["starts"], found["counts"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise _wrong(path, f"not readable: {error}") from error
    if counts.shape != (rows,) or counts.min() < 0 or starts.shape != (counts.sum(),):
        raise _wrong(path, f"does not hold the starts of {rows} rows")
    return starts, counts


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}") from error


def _read(path: Path) -> bytes:
    with _open(path) as file:
        return file.read()


def _wrong(path: Path, message: str) -> ContentError:
    remedy = "build the rows again; they are never edited by hand"
    return ContentError([Finding(id="F003", severity=Severity.ERROR, message=message, remedy=remedy, path=path)])
