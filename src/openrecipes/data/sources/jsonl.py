"""A file of one JSON object a line: one pass finds the lines and the file's hash, then any line is one read.

The index is a file of little-endian int64 pairs (offset, line number), one for each line that is not empty,
so that neither the index nor the source is ever held in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from openrecipes.data.sources.interface import MAX_RECORD_BYTES, Record, Unreadable

_CHUNK = 4 * 2**20
_BOM = "\ufeff"


def index_lines(path: Path, index: Path) -> tuple[str, int]:
    """Write the index of `path`; returns the file's SHA-256 and how many lines it has that are not empty."""
    digest = hashlib.sha256()
    start, line, records, offset, before = 0, 1, 0, 0, b""
    with path.open("rb") as file, index.open("wb") as out:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + offset
            starts = np.concatenate([[start], ends[:-1] + 1]) if len(ends) else np.empty(0, np.int64)
            lines = np.arange(line, line + len(ends))
            filled = ends > starts
            # A line of one byte may be the \r of an empty line with Windows' line ends.
            for place in np.flatnonzero(ends - starts == 1):
                byte = int(starts[place]) - offset
                filled[place] = (chunk[byte : byte + 1] if byte >= 0 else before) != b"\r"
            pairs = np.stack([starts[filled], lines[filled]], axis=1).astype("<i8")
            out.write(pairs.tobytes())
            records += len(pairs)
            offset, before = offset + len(chunk), chunk[-1:]
            if len(ends):
                start, line = int(ends[-1]) + 1, line + len(ends)
        if offset > start:  # the last line has no newline
            out.write(np.array([[start, line]], dtype="<i8").tobytes())
            records += 1
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest(), records


class LineFile:
    """The indexed lines of one file."""

    def __init__(self, path: Path, index: Path) -> None:
        self._path = path
        self._size = path.stat().st_size
        empty = index.stat().st_size == 0
        self._pairs = np.empty((0, 2), "<i8") if empty else np.memmap(index, "<i8", "r").reshape(-1, 2)

    def __len__(self) -> int:
        return len(self._pairs)

    def read(self, places: Sequence[int]) -> list[Record]:
        """The lines at `places`, read in the file's order."""
        with self._path.open("rb") as file:
            found = {place: self._read(file, place) for place in sorted(set(places))}
        return [found[place] for place in places]

    def line(self, place: int) -> int:
        """The line's number, from 1."""
        return int(self._pairs[place, 1])

    def _read(self, file: BinaryIO, place: int) -> Record:
        start = int(self._pairs[place, 0])
        end = int(self._pairs[place + 1, 0]) if place + 1 < len(self._pairs) else self._size
        if end - start > MAX_RECORD_BYTES:
            return Unreadable("too_long", f"{end - start} bytes, at most {MAX_RECORD_BYTES} are read")
        data = os.pread(file.fileno(), end - start, start)
        return parse_record(data, first=start == 0)


def parse_record(data: bytes, *, first: bool = False) -> Record:
    """A line as a JSON object, or why it is none; `first` allows a byte order mark."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Unreadable("invalid_utf8", f"byte {error.start} is 0x{data[error.start]:02x}: {error.reason}")
    try:
        found = json.loads(text.removeprefix(_BOM) if first else text)
    except (ValueError, RecursionError) as error:
        return Unreadable("invalid_json", str(error) or "nested too deep")
    if not isinstance(found, dict):
        return Unreadable("invalid_json", f"found {type(found).__name__}, expected an object")
    return found
