"""The files behind a source: found by what the user wrote, and recognised when they change."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openrecipes.errors import UsageError

LINES = (".jsonl", ".ndjson")
TABLES = (".parquet", ".arrow")
_SPLIT_WORDS = {"train", "test", "validation", "valid", "val", "dev", "eval"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """The data files below `root` in the order of their names, and the revision they were fetched at."""

    root: Path
    names: tuple[str, ...]
    revision: str | None = None

    def paths(self) -> list[Path]:
        """Where the files lie."""
        return [self.root / name for name in self.names]


def find_files(path: Path, pattern: str | None) -> SourceFiles:
    """The data files that a file or folder stands for.

    A folder is a dataset as the Hugging Face hub lays it out (`data/train-00000-of-00006.parquet`, `*.jsonl`)
    or as `save_to_disk` writes it (`data-00000-of-00002.arrow`).

    Raises:
        UsageError: there is none, their kinds are mixed, or they are of several splits.
    """
    if path.is_file():
        if path.suffix not in LINES + TABLES:
            raise UsageError(f"{path} is no source: expected a file ending in {', '.join(LINES + TABLES)}, or a folder")
        return SourceFiles(root=path.parent, names=(path.name,))
    if not path.is_dir():
        raise UsageError(f"source {path} does not exist")
    found = sorted(file.relative_to(path) for file in path.glob(pattern or "**/*") if file.is_file())
    names = [file.as_posix() for file in found if file.suffix in LINES + TABLES and not _is_hidden(file)]
    if not names:
        raise UsageError(f"{path} holds no {', '.join(LINES + TABLES)} file" + (f" named {pattern}" if pattern else ""))
    example = f"choose some with a pattern, such as `{path}::{Path(names[0]).parent / ('*' + Path(names[0]).suffix)}`"
    if len(kinds := sorted({Path(name).suffix for name in names})) > 1:
        raise UsageError(f"{path} holds files of several kinds ({', '.join(kinds)}); {example}")
    splits = sorted({word for name in names for word in _SPLIT_WORDS & set(re.split(r"[-_./]", name))})
    if pattern is None and len(splits) > 1:
        raise UsageError(f"{path} holds several splits ({', '.join(splits)}); {example}")
    return SourceFiles(root=path, names=tuple(names))


def stamps(paths: Sequence[Path]) -> list[list[int]]:
    """What changes when a file does: size, times of last change, inode. Equal stamps spare the hashing."""
    found = [path.stat() for path in paths]
    return [[stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino] for stat in found]


def describe_files(files: SourceFiles, hashes: Sequence[str], records: Sequence[int]) -> dict[str, Any]:
    """The files as the manifest lists them."""
    listed = [
        {"name": name, "bytes": path.stat().st_size, "sha256": digest, "records": count}
        for name, path, digest, count in zip(files.names, files.paths(), hashes, records, strict=True)
    ]
    return {"revision": files.revision, "files": listed}


def _is_hidden(file: Path) -> bool:
    """Dot files, and the caches that `datasets` leaves beside the data."""
    return file.name.startswith("cache-") or any(part.startswith(".") for part in file.parts)
