"""The journal of a tune: every arm that finished, also the failed ones, one JSON line each.

An arm's files live in a folder of their own. While it runs the folder's name ends in `.partial`; when it has
ended the folder is renamed and one line is appended here, with the SHA-256 of each of its files. A tune
that was killed therefore finds its finished arms in the journal, throws away the partial one, and repeats
nothing but an arm whose files are no longer what they were: a damaged file must not judge a layout.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from openrecipes.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArmRecord:
    """One finished arm.

    `arm` is its folder's name, such as `reference-0` or `tp2-pp2-ep2`. `cause` says why a failed
    arm failed. Rates are tokens per second of all ranks together; None where nothing was measured.
    `files` are the names and SHA-256 of what the run left.
    """

    arm: str
    layout: str
    ok: bool
    cause: str | None
    predicted_tokens_per_s: float | None
    wall_s: float
    files: dict[str, str] = dataclasses.field(default_factory=dict, compare=False, repr=False)


_RECORD = TypeAdapter(ArmRecord)


def require_tune_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than a tune, which replaces and removes folders in it.

    Raises:
        UsageError: naming what is there.
    """
    if not folder.is_dir() or (folder / "journal.jsonl").exists():
        return
    # A tune that was killed before its journal began left these.
    others = sorted({path.name for path in folder.iterdir() if not path.name.startswith(".")} - {"lock", "rows"})
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise UsageError(
            f"{folder} holds {', '.join(others[:3])}{more} and no journal of a tune; "
            "give a new or empty folder, or that of an interrupted tune"
        )


class Journal:
    """The append-only file `journal.jsonl` in `folder`; use it as a context manager.

    The first line holds the identity of the tune: the workload, the model, the rows and the
    versions. A folder that holds another tune's journal, or in which a tune is running, is refused.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.arms: dict[str, ArmRecord] = {}
        self._identity = dict(identity)
        self._path = folder / "journal.jsonl"

    def __enter__(self) -> Journal:
        """Lock the folder, read what is there and clear away what did not finish.

        Raises:
            UsageError: a tune is running in the folder, or its journal is another tune's or none.
        """
        self._lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open()
        except BlockingIOError:
            self._lock.close()
            raise UsageError(f"another tune is running in {self.folder}; wait for it, or give another --out") from None
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        """Let go of the lock; everything is on disk already."""
        self._lock.close()

    def _open(self) -> None:
        identity, self.arms = self._read()
        if identity is None:
            self._write_line({"format_version": 1, "identity": self._identity})
            return  # nothing here is a tune's, so nothing is cleared away
        if identity != self._identity:
            keys = sorted({*identity, *self._identity})
            different = ", ".join(key for key in keys if identity.get(key) != self._identity.get(key))
            raise UsageError(
                f"{self._path} belongs to another tune (different: {different}); "
                "give another --out, or remove that folder"
            )
        for partial in self.folder.glob("*.partial"):
            shutil.rmtree(partial)

    def begin(self, arm: str) -> Path:
        """An empty folder for a new arm's files."""
        leftover = self.folder / arm  # from a kill between the rename and the journal line
        if leftover.exists():
            shutil.rmtree(leftover)
        partial = self.folder / f"{arm}.partial"
        partial.mkdir()
        return partial

    def finish(self, record: ArmRecord) -> None:
        """Keep the arm: its folder takes its final name, then its line is written to disk."""
        folder = self.folder / record.arm
        (self.folder / f"{record.arm}.partial").rename(folder)
        kept = dataclasses.replace(record, files={path.name: _sha256(path) for path in sorted(folder.iterdir())})
        self._write_line(dataclasses.asdict(kept))
        self.arms[record.arm] = kept

    def _read(self) -> tuple[dict[str, Any] | None, dict[str, ArmRecord]]:
        """The identity and the arms; a last line cut short by a kill is taken off the file."""
        if not self._path.exists():
            return None, {}
        whole = self._path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        lines = kept.decode("utf-8", errors="replace").splitlines()
        identity: dict[str, Any] | None = None
        records: list[ArmRecord] = []
        try:
            if lines:
                identity = dict(json.loads(lines[0])["identity"])
            records.extend(_RECORD.validate_json(line, strict=True) for line in lines[1:])
        except (ValueError, KeyError, TypeError):
            damaged = 1 if identity is None else len(records) + 2
            raise UsageError(
                f"{self._path} is not a journal of openrecipes tune (line {damaged} is not understood); "
                "give another --out"
            ) from None
        if kept != whole:
            os.truncate(self._path, len(kept))
        return identity, {record.arm: record for record in records if self._is_as_it_was(record)}

    def _is_as_it_was(self, record: ArmRecord) -> bool:
        folder = self.folder / record.arm
        try:
            return folder.is_dir() and all(_sha256(folder / name) == sha256 for name, sha256 in record.files.items())
        except OSError:
            return False

    def _write_line(self, content: Mapping[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(content) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
