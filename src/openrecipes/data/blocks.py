"""Blocks: fixed stretches of the permutation, one file each, that any worker may make in any order.

Block `b` holds the places `b * size .. (b + 1) * size - 1` of the permutation: of each the conversation's ids
and mask, or why there are none. The file comes into being under its final name by a rename, so it is its own
marker: a block is finished if and only if its file is there.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from openrecipes.data.conversation import Conversation, Rejection, read_conversation
from openrecipes.data.encode import Document
from openrecipes.data.permutation import Permutation
from openrecipes.data.sources.interface import Source, Unreadable
from openrecipes.data.sources.open import open_source
from openrecipes.errors import ContentError, Finding, Severity

_RECORDS_A_CALL = 32  # bounds how much text is in memory at once


class Encoder(Protocol):
    """What a worker needs to turn conversations into ids and masks."""

    def encode(self, conversations: Sequence[Conversation]) -> list[Document | Rejection]:
        """One answer for each conversation, in their order."""
        ...

    def describe(self) -> dict[str, Any]:
        """What decides the ids, and under `engine` what does not."""
        ...

    def special(self, name: str) -> int:
        """The id of a special token."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockJob:
    """Everything that decides what a block holds, and where it goes; it travels to the workers.

    The index of the source need not be there before the first block is asked for.
    """

    source: str
    index: Path
    make_encoder: Callable[[], Encoder]
    eos_token: str
    seed: int
    size: int
    folder: Path

    def path(self, number: int) -> Path:
        """The file of block `number`."""
        return self.folder / f"{number:08d}.npz"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rejected:
    """A record that gave no document: its place in the permutation, its place in the source, and why."""

    place: int
    where: str
    kind: str
    detail: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Described:
    """What a worker's encoder is, and the id of the token that stands between conversations."""

    encoder: dict[str, Any]
    eos_id: int


class BlockMaker:
    """A worker's tools, made once a process: the encoder at once, the source when the first block is asked for."""

    def __init__(self, job: BlockJob) -> None:
        self._job = job
        self._encoder = job.make_encoder()

    @cached_property
    def _source(self) -> Source:
        return open_source(self._job.source, self._job.index)

    @cached_property
    def _order(self) -> Permutation:
        return Permutation(len(self._source), self._job.seed)

    def describe(self) -> Described:
        """What the encoder is."""
        return Described(encoder=self._encoder.describe(), eos_id=self._encoder.special(self._job.eos_token))

    def make(self, number: int) -> None:
        """Write block `number`."""
        start = number * self._job.size
        stop = min(start + self._job.size, len(self._order))
        records = self._order.places(start, stop).tolist()
        results: list[Document | Rejected] = []
        for first in range(0, len(records), _RECORDS_A_CALL):
            results += self._encode(start + first, records[first : first + _RECORDS_A_CALL])
        self._source.require_untouched()  # a block of other bytes would outlive their being put back
        _write(self._job.path(number), results)

    def _encode(self, first: int, records: Sequence[int]) -> list[Document | Rejected]:
        """What the records at the places from `first` on become."""
        read = [
            record if isinstance(record, Unreadable) else read_conversation(record)
            for record in self._source.read(records)
        ]
        encoded = iter(self._encoder.encode([found for found in read if isinstance(found, Conversation)]))
        found = [next(encoded) if isinstance(one, Conversation) else one for one in read]
        return [
            one if isinstance(one, Document) else self._rejected(place, record, one)
            for place, (record, one) in enumerate(zip(records, found, strict=True), first)
        ]

    def _rejected(self, place: int, record: int, why: Rejection | Unreadable) -> Rejected:
        kind = why.kind if isinstance(why, Unreadable) else why.kind.value
        return Rejected(place=place, where=self._source.where(record), kind=kind, detail=why.detail)


def read_block(path: Path) -> Iterator[Document | Rejected]:
    """What a block holds, in the permutation's order.

    Raises:
        ContentError: the file is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as found:
            lengths, ids, mask = found["lengths"], found["ids"], found["loss_mask"]
            rejected = iter(json.loads(found["rejected"].tobytes()))
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        remedy = "remove this file and run the same command again"
        message = f"a finished block is damaged: {error}"
        finding = Finding(id="F009", severity=Severity.ERROR, message=message, remedy=remedy, path=path)
        raise ContentError([finding]) from error
    start = 0
    for length in lengths.tolist():
        if length < 0:
            yield Rejected(**next(rejected))
        else:
            yield Document(ids=ids[start : start + length], loss_mask=mask[start : start + length])
            start += length


def _write(path: Path, results: Sequence[Document | Rejected]) -> None:
    documents = [one for one in results if isinstance(one, Document)]
    rejected = [dataclasses.asdict(one) for one in results if isinstance(one, Rejected)]
    arrays: dict[str, Any] = {
        "lengths": np.array([len(one.ids) if isinstance(one, Document) else -1 for one in results], dtype=np.int64),
        "ids": np.concatenate([np.empty(0, np.int32), *(one.ids for one in documents)], dtype=np.int32),
        "loss_mask": np.concatenate([np.empty(0, np.uint8), *(one.loss_mask for one in documents)], dtype=np.uint8),
        "rejected": np.frombuffer(json.dumps(rejected).encode(), dtype=np.uint8),
    }
    data = io.BytesIO()
    np.savez(data, **arrays)  # a zip archive: its checksums find a damaged block
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            file.write(data.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)  # where the disk is full, half a block is in the way
