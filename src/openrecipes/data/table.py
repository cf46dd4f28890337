"""Rows as a Parquet file that slime reads with `--input-key messages --metadata-key metadata`.

    messages   list<struct<role: string, content: string>>   always one empty user message: slime wants a list
    metadata   struct<
        input_ids:   list<int32>    the row's tokens
        loss_mask:   list<int8>     1 = the token is a target
        doc_starts:  list<int32>    where in the row a conversation begins
        source_name: string         the build's name
        row:         int64          the row's number, from 0
    >

Row groups are small, so that a reader fetches any 64 rows without decoding the rest. The file's bytes
depend on the pyarrow version (it writes itself into the footer); `rows_sha256` does not.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from openrecipes.data.packing import Row
from openrecipes.errors import ContentError, Finding, Severity

FILE = "rows.parquet"
ROW_GROUP = 64
_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
_METADATA = pa.struct(
    [
        ("input_ids", pa.list_(pa.int32())),
        ("loss_mask", pa.list_(pa.int8())),
        ("doc_starts", pa.list_(pa.int32())),
        ("source_name", pa.string()),
        ("row", pa.int64()),
    ]
)
SCHEMA = pa.schema([("messages", pa.list_(_MESSAGE)), ("metadata", _METADATA)])


class ParquetRows:
    """Writes rows in their order; the file is complete after `close`."""

    def __init__(self, folder: Path, *, row_tokens: int, source_name: str) -> None:
        self._row_tokens = row_tokens
        self._source_name = source_name
        self._written = 0
        self._waiting: list[Row] = []
        self._file = (folder / FILE).open("wb")
        # zstd at its default level; token ids hardly repeat, so a dictionary only costs time.
        self._writer = pq.ParquetWriter(self._file, SCHEMA, compression="zstd", use_dictionary=False)

    def write(self, row: Row) -> None:
        """Append a row."""
        self._waiting.append(row)
        if len(self._waiting) == ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what waits and make the file durable."""
        self._flush()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Let go of the file as it is, after `close` or without it."""
        self._writer.is_open = False  # else it would write a footer when it is collected
        with contextlib.suppress(OSError):
            self._file.close()

    def _flush(self) -> None:
        count = len(self._waiting)
        if not count:
            return
        offsets = np.arange(count + 1, dtype=np.int32) * self._row_tokens
        ids = np.concatenate([row.ids for row in self._waiting])
        mask = np.concatenate([row.loss_mask for row in self._waiting]).astype(np.int8)
        starts = np.concatenate([row.doc_starts for row in self._waiting])
        start_offsets = np.cumsum([0, *(len(row.doc_starts) for row in self._waiting)], dtype=np.int32)
        columns = [
            pa.ListArray.from_arrays(offsets, pa.array(ids, pa.int32())),
            pa.ListArray.from_arrays(offsets, pa.array(mask, pa.int8())),
            pa.ListArray.from_arrays(start_offsets, pa.array(starts, pa.int32())),
            pa.array([self._source_name] * count, pa.string()),
            pa.array(np.arange(self._written, self._written + count), pa.int64()),
        ]
        metadata = pa.StructArray.from_arrays(columns, fields=list(_METADATA))
        messages = pa.array([[{"role": "user", "content": ""}]] * count, SCHEMA.field("messages").type)
        self._writer.write_table(pa.Table.from_arrays([messages, metadata], schema=SCHEMA), row_group_size=count)
        self._written += count
        self._waiting.clear()


def read_rows(folder: Path, row_tokens: int) -> Iterator[Row]:
    """Read the rows back in their order, a row group at a time, checking shape and numbering.

    Raises:
        ContentError: the file is missing, damaged or of another shape.
    """
    path = folder / FILE
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise _wrong(path, f"has the columns {file.schema_arrow.names} of other types than a table of rows")
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=["metadata"]).combine_chunks()
                metadata = table.column("metadata").combine_chunks()
                for row in _rows(metadata, number, row_tokens, path):
                    yield row
                    number += 1
    except (OSError, pa.ArrowException) as error:
        raise _wrong(path, f"not readable as Parquet: {error}") from error


def _rows(metadata: pa.StructArray, first: int, row_tokens: int, path: Path) -> Iterator[Row]:
    numbers = metadata.field("row").to_numpy(zero_copy_only=False)
    lists = [metadata.field(name) for name in ("input_ids", "loss_mask", "doc_starts")]
    for place in range(len(metadata)):
        ids, mask, starts = (found[place].values for found in lists)
        if numbers[place] != first + place:
            raise _wrong(path, f"row {first + place} calls itself row {numbers[place]}")
        if ids is None or mask is None or starts is None or len(ids) != row_tokens or len(mask) != row_tokens:
            raise _wrong(path, f"row {first + place} does not hold {row_tokens} ids and as many mask values")
        arrays = [values.to_numpy(zero_copy_only=False) for values in (ids, mask, starts)]
        if any(array.dtype.kind != "i" for array in arrays):  # pyarrow gives floats where a value is null
            raise _wrong(path, f"row {first + place} holds nulls")
        yield Row(ids=arrays[0], loss_mask=arrays[1].astype(np.uint8), doc_starts=arrays[2])


def _wrong(path: Path, message: str) -> ContentError:
    remedy = "build the rows again; they are never edited by hand"
    return ContentError([Finding(id="F003", severity=Severity.ERROR, message=message, remedy=remedy, path=path)])
