"""Parquet and Arrow files: rewritten once in small batches, so that any record is one short read.

A Parquet row group holds thousands of conversations and must be decoded whole; a permutation would decode
each of them again for every record. One pass writes the columns that a conversation can stand in to an
uncompressed Arrow file of `_BATCH` records a batch, beside it the number of records up to each batch's end.
Batches are read, not mapped: mapped pages would count as this process's memory until the whole file does.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from openrecipes.data.sources.interface import MAX_RECORD_BYTES, Record, Unreadable
from openrecipes.errors import ContentError, Finding, Severity

# The columns that a conversation can stand in; the others are left in the file.
COLUMNS = ("messages", "conversations", "prompt", "completion", "system", "tools")
_BATCH = 32
_RECORDS_A_READ = 1024


def spill(path: Path, index: Path) -> int:
    """Rewrite the conversation columns of `path` to `index` and return the number of records.

    Raises:
        ContentError: the file is damaged, or has no column that a conversation can stand in.
    """
    ends: list[int] = [0]
    try:
        schema, batches = (_parquet if path.suffix == ".parquet" else _arrow)(path)
        with index.open("wb") as out:
            with pa.ipc.new_file(out, schema) as writer:
                for whole in batches:
                    for start in range(0, len(whole), _BATCH):
                        part = whole.slice(start, _BATCH)
                        writer.write_batch(part)
                        ends.append(ends[-1] + len(part))
            out.flush()
            os.fsync(out.fileno())
    except pa.ArrowException as error:
        raise _wrong(path, f"is damaged or incomplete: {error}", "fetch or write the file again") from error
    except OSError as error:
        if error.errno is not None:  # a full disk, a missing permission: not the file's fault
            raise
        raise _wrong(path, f"is damaged or incomplete: {error}", "fetch or write the file again") from error
    np.save(_ends_file(index), np.array(ends, dtype="<i8"))
    return ends[-1]


class SpilledFile:
    """The records of one rewritten file."""

    def __init__(self, index: Path) -> None:
        self._file = pa.ipc.open_file(pa.OSFile(str(index), "rb"))
        self._ends = np.load(_ends_file(index))

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, places: Sequence[int]) -> list[Record]:
        """The records at `places`; each batch that holds some of them is read once."""
        wanted: defaultdict[int, list[int]] = defaultdict(list)
        batches = np.searchsorted(self._ends, np.asarray(places, dtype=np.int64), side="right") - 1
        for place, batch in zip(places, batches.tolist(), strict=True):
            wanted[batch].append(place)
        found: dict[int, Record] = {}
        for number in sorted(wanted):
            batch = self._file.get_batch(number)
            for place in wanted[number]:
                found[place] = _record(batch.slice(place - int(self._ends[number]), 1))
        return [found[place] for place in places]

    def line(self, place: int) -> int:
        """The record's number in the file, from 0 as table tools count."""
        return place


def _record(row: pa.RecordBatch) -> Record:
    if row.nbytes > MAX_RECORD_BYTES:
        return Unreadable("too_long", f"{row.nbytes} bytes, at most {MAX_RECORD_BYTES} are read")
    try:
        return _without_nulls(row.to_pylist()[0])
    except UnicodeDecodeError as error:
        return Unreadable("invalid_utf8", str(error))


def _without_nulls(found: Any) -> Any:
    """A record without the fields that are null: a struct has every field that any record of the file has."""
    if isinstance(found, dict):
        return {key: _without_nulls(value) for key, value in found.items() if value is not None}
    return [_without_nulls(value) for value in found] if isinstance(found, list) else found


def _parquet(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    # A buffered file is read page by page, so that a row group of a gigabyte is never in memory at once.
    file = pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False, page_checksum_verification=True)
    names = _columns(path, file.schema_arrow.names)
    batches = file.iter_batches(batch_size=_RECORDS_A_READ, columns=names, use_threads=False)
    return pa.schema([file.schema_arrow.field(name) for name in names]), batches


def _arrow(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """A file of either Arrow layout: `save_to_disk` writes the one without a footer."""
    file = pa.OSFile(str(path), "rb")
    if file.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(pa.OSFile(str(path), "rb"))
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        reader = pa.ipc.open_stream(pa.OSFile(str(path), "rb"))
        batches = iter(reader)
    names = _columns(path, reader.schema.names)
    return pa.schema([reader.schema.field(name) for name in names]), (batch.select(names) for batch in batches)


def _columns(path: Path, names: Sequence[str]) -> list[str]:
    if found := [name for name in names if name in COLUMNS]:
        return found
    message = f"has the columns {', '.join(names)}, none of which is one of {', '.join(COLUMNS)}"
    raise _wrong(path, message, "rename the column of the conversations")


def _ends_file(index: Path) -> Path:
    return index.with_suffix(".npy")


def _wrong(path: Path, message: str, remedy: str) -> ContentError:
    return ContentError([Finding(id="F008", severity=Severity.ERROR, message=message, remedy=remedy, path=path)])
