"""One source out of one or many files: prepared once into an index folder, then opened by every worker.

chat.jsonl                     one file
my-dataset/                    a folder as the hub or `save_to_disk` lays it out
my-dataset/::train/*.parquet   the files of a folder that match a pattern
hf:owner/name@COMMIT           a dataset of the hub, also with ::PATTERN
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from openrecipes.data.packages import sha256_of_file
from openrecipes.data.sources import hub
from openrecipes.data.sources.files import LINES, SourceFiles, describe_files, find_files, stamps
from openrecipes.data.sources.interface import Record
from openrecipes.data.sources.jsonl import LineFile, index_lines
from openrecipes.errors import UsageError

_MARKER = "source.json"


class _Reader(Protocol):
    """One indexed file."""

    def __len__(self) -> int: ...

    def read(self, places: Sequence[int]) -> list[Record]: ...

    def line(self, place: int) -> int: ...


def open_source(text: str, index: Path, progress: Callable[[str], None] = lambda text: None) -> FileSource:
    """The source that `text` names; the folder `index` is made where it is not, and used where it is.

    Raises:
        UsageError: there is no such source, or its files are not those that the index was made of.
        ContentError: a file is damaged.
        MissingToolError, RunError: the hub cannot be asked.
    """
    marker = index / _MARKER
    if marker.exists():
        prepared = json.loads(marker.read_text(encoding="utf-8"))
        if prepared["text"] != text:
            raise UsageError(f"{index} is the index of `{prepared['text']}`, not of `{text}`; remove it to begin anew")
        files = SourceFiles(root=Path(prepared["root"]), names=tuple(prepared["names"]), revision=prepared["revision"])
        return FileSource(files, index, prepared)
    files = resolve(text)
    index.mkdir(parents=True, exist_ok=True)
    before = stamps(files.paths())
    hashes, counts = [], []
    for number, path in enumerate(files.paths()):
        progress(f"indexing {path.name}")
        digest, records = _prepare(path, index, number)
        hashes.append(digest)
        counts.append(records)
    if stamps(files.paths()) != before:
        raise UsageError(f"source {text} changed while it was read; start again when it is complete")
    described = describe_files(files, hashes, counts)
    prepared = {"text": text, "root": str(files.root.resolve()), "names": files.names, "stamps": before} | described
    _mark(index, prepared)  # the index is complete, or there is none
    return FileSource(files, index, prepared)


def describe_source(text: str) -> dict[str, Any]:
    """Names and hashes of the files that `text` names, without indexing them."""
    files = resolve(text)
    listed = [{"name": n, "sha256": sha256_of_file(path)} for n, path in zip(files.names, files.paths(), strict=True)]
    return {"revision": files.revision, "files": listed}


def resolve(text: str) -> SourceFiles:
    """The files that `text` names, fetched from the hub where it names a dataset there."""
    place, _, pattern = text.partition("::")
    if not place.startswith("hf:"):
        return find_files(Path(place), pattern or None)
    name, revision = hub.parse_reference(place)
    found = find_files(hub.download(name, revision, pattern or None), pattern or None)
    return SourceFiles(root=found.root, names=found.names, revision=revision)


class FileSource:
    """The records of all files, numbered through in the order of the files' names."""

    def __init__(self, files: SourceFiles, index: Path, prepared: dict[str, Any]) -> None:
        self._files = files
        self._index = index
        self._prepared = prepared
        self._readers = [_reader(path, index, number) for number, path in enumerate(files.paths())]
        self._ends = np.cumsum([0, *(len(reader) for reader in self._readers)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, places: Sequence[int]) -> list[Record]:
        """The records at these places, in the order asked for."""
        wanted: dict[int, list[int]] = {}
        for place in places:
            file, inside = self._find(place)
            wanted.setdefault(file, []).append(inside)
        found = {
            (file, inside): record
            for file, insides in wanted.items()
            for inside, record in zip(insides, self._readers[file].read(insides), strict=True)
        }
        return [found[self._find(place)] for place in places]

    def where(self, place: int) -> str:
        """File and line (from 1), or file and record (from 0) of a table."""
        file, inside = self._find(place)
        return f"{self._files.names[file]}:{self._readers[file].line(inside)}"

    def describe(self) -> dict[str, Any]:
        """Revision, and name, size, SHA-256 and number of records of every file."""
        return {"revision": self._prepared["revision"], "files": self._prepared["files"]}

    def require_unchanged(self) -> None:
        """Compare the files with those that the index was made of; where only their times differ, note the new ones.

        Raises:
            UsageError: a file is gone or holds other bytes.
        """
        recorded = zip(self._files.names, self._prepared["stamps"], self._prepared["files"], strict=True)
        found = []
        for path, (name, stamp, file) in zip(self._files.paths(), recorded, strict=True):
            if not path.is_file():
                raise UsageError(f"source file {name} is gone; restore it, or remove the unfinished build")
            found += stamps([path])
            # Another time or inode may be a copy put back: then the bytes decide.
            if found[-1] != stamp and (digest := sha256_of_file(path)) != file["sha256"]:
                raise UsageError(
                    f"source file {name} changed since this build was begun: its sha256 was {file['sha256']}, "
                    f"now {digest}; restore it, or remove the unfinished build to begin anew"
                )
        if found != self._prepared["stamps"]:
            self._prepared |= {"stamps": found}
            _mark(self._index, self._prepared)

    def require_untouched(self) -> None:
        """See at once whether any file was touched since it was last compared: nothing read in between is safe then.

        Raises:
            UsageError: one was.
        """
        touched = [
            name
            for name, path, stamp in zip(self._files.names, self._files.paths(), self._prepared["stamps"], strict=True)
            if not path.is_file() or stamps([path]) != [stamp]
        ]
        if touched:
            raise UsageError(
                f"source file {touched[0]} was touched while it was read; leave it alone and run the same command again"
            )

    def _find(self, place: int) -> tuple[int, int]:
        if not 0 <= place < len(self):
            raise IndexError(place)
        file = int(np.searchsorted(self._ends, place, side="right")) - 1
        return file, place - int(self._ends[file])


def _mark(index: Path, prepared: dict[str, Any]) -> None:
    unfinished = (index / _MARKER).with_suffix(".tmp")
    unfinished.write_text(json.dumps(prepared), encoding="utf-8")
    unfinished.rename(index / _MARKER)


def _prepare(path: Path, index: Path, number: int) -> tuple[str, int]:
    if path.suffix in LINES:
        return index_lines(path, _index_file(index, number))
    from openrecipes.data.sources.arrow import spill

    return sha256_of_file(path), spill(path, _index_file(index, number))


def _reader(path: Path, index: Path, number: int) -> _Reader:
    if path.suffix in LINES:
        return LineFile(path, _index_file(index, number))
    from openrecipes.data.sources.arrow import SpilledFile

    return SpilledFile(_index_file(index, number))


def _index_file(index: Path, number: int) -> Path:
    return index / f"{number:05d}.index"
