"""Fixed rows on disk: writing them, reading them back, and the hash that names them.

A rows folder holds

    rows.npy         int32 [rows, row_tokens]   compact ids
    loss_mask.npy    uint8 [rows, row_tokens]   1 = this token is a target
    vocabulary.npy   int32 [vocabulary_size]    compact id -> tokenizer id, strictly ascending
    manifest.json    what the rows were made of, and `rows_sha256`

Rows are stored in compact ids, numbered over the tokens that occur, so that a toy model with a few
thousand embeddings can train on text of a 248,077-token tokenizer. The hash is taken over tokenizer
ids, so it does not depend on that numbering:

    rows_sha256 = sha256( b"openrecipes-rows-v1\\n" | row_tokens as little-endian uint32
                          | for each row: its tokenizer ids as little-endian int32, its mask as bytes )
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from openrecipes.errors import ContentError, Finding, RunError, Severity, UsageError

FORMAT_VERSION = 1
_DOMAIN = b"openrecipes-rows-v1\n"
_REBUILD = "remove the folder and build the rows again; a rows folder is never edited by hand"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Fixed rows in memory; the arrays are read-only.

    `ids` int32 [rows, row_tokens] are compact; `vocabulary[ids]` are the tokenizer's. `loss_mask`
    uint8 [rows, row_tokens] is 1 where the token is a target: the model at position t is trained to
    predict token t + 1 where `loss_mask[t + 1]` is 1.
    """

    ids: np.ndarray
    loss_mask: np.ndarray
    vocabulary: np.ndarray
    manifest: Mapping[str, Any]


class RowsHash:
    """The hash of rows, a row at a time, as the module describes it."""

    def __init__(self, row_tokens: int) -> None:
        self._digest = hashlib.sha256(_DOMAIN + row_tokens.to_bytes(4, "little"))

    def add(self, tokenizer_ids: np.ndarray, loss_mask: np.ndarray) -> None:
        """Append a row in tokenizer ids [row_tokens] and its mask."""
        self._digest.update(tokenizer_ids.astype("<i4").tobytes())
        self._digest.update(loss_mask.astype("u1").tobytes())

    def hexdigest(self) -> str:
        """The hash of the rows so far."""
        return self._digest.hexdigest()


def rows_sha256(tokenizer_ids: np.ndarray, loss_mask: np.ndarray) -> str:
    """The hash of rows in tokenizer ids [rows, row_tokens] and their mask."""
    found = RowsHash(tokenizer_ids.shape[1])
    for ids, mask in zip(tokenizer_ids, loss_mask, strict=True):
        found.add(ids, mask)
    return found.hexdigest()


def compact(tokenizer_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the ids that occur from 0 in ascending order: (compact ids of the same shape, vocabulary)."""
    vocabulary, ids = np.unique(tokenizer_ids, return_inverse=True)
    return ids.reshape(tokenizer_ids.shape).astype(np.int32), vocabulary.astype(np.int32)


def write_rows(
    folder: Path, *, tokenizer_ids: np.ndarray, loss_mask: np.ndarray, manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a rows folder, complete or not at all, and return its manifest.

    `manifest` says where the rows come from; format version, sizes and hashes are added here.

    Raises:
        UsageError: `folder` exists or cannot be made.
        RunError: the disk is full.
    """
    if folder.exists():
        raise UsageError(f"cannot write rows to {folder}: it exists; give another folder")
    ids, vocabulary = compact(tokenizer_ids)
    whole = dict(manifest) | {
        "format_version": FORMAT_VERSION,
        "rows": int(ids.shape[0]),
        "row_tokens": int(ids.shape[1]),
        "vocabulary_size": int(vocabulary.size),
        "rows_sha256": rows_sha256(tokenizer_ids, loss_mask),
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise UsageError(f"cannot write rows to {folder}: {error.strerror}; give another folder") from error
    try:
        np.save(unfinished / "rows.npy", ids.astype("<i4"))
        np.save(unfinished / "loss_mask.npy", loss_mask.astype("u1"))
        np.save(unfinished / "vocabulary.npy", vocabulary.astype("<i4"))
        text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
        (unfinished / "manifest.json").write_text(text, encoding="utf-8")
        unfinished.chmod(0o755)  # mkdtemp makes a folder that only its owner may read
        unfinished.rename(folder)
    except OSError as error:
        # NumPy's own error has no errno; it says how much of an array could be written.
        reason = error.strerror or f"the disk is full ({error})"
        raise RunError(f"cannot write rows to {folder}: {reason}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return whole


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a rows folder's manifest.

    Raises:
        UsageError: there is no such folder.
        ContentError: the manifest is missing, damaged or of another format version.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder of fixed rows (rows.npy, loss_mask.npy, manifest.json)")
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ContentError([_finding("F001", path, f"not readable as JSON: {error}")]) from error
    if not isinstance(manifest, dict):
        raise ContentError([_finding("F001", path, f"a manifest is a JSON object, found {type(manifest).__name__}")])
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise ContentError([_finding("F002", path, f"format_version is {version!r}, expected {FORMAT_VERSION}")])
    return manifest


def load_rows(folder: Path) -> Rows:
    """Read a rows folder and verify everything its manifest says about the arrays.

    Raises:
        UsageError: there is no such folder.
        ContentError: with every difference found, the hash among them.
    """
    manifest = read_manifest(folder)
    findings: list[Finding] = []
    ids = _array(folder / "rows.npy", "int32", 2, findings)
    loss_mask = _array(folder / "loss_mask.npy", "uint8", 2, findings)
    vocabulary = _array(folder / "vocabulary.npy", "int32", 1, findings)
    if ids is None or loss_mask is None or vocabulary is None:
        raise ContentError(findings)
    found = {"rows": ids.shape[0], "row_tokens": ids.shape[1], "vocabulary_size": vocabulary.size}
    for key, value in found.items():
        if manifest.get(key) != value:
            message = f"{key} is {manifest.get(key)!r}, the arrays have {value}"
            findings.append(_finding("F004", folder / "manifest.json", message, field=key))
    if loss_mask.shape != ids.shape:
        message = f"shape {loss_mask.shape} differs from rows.npy's {ids.shape}"
        findings.append(_finding("F005", folder / "loss_mask.npy", message))
    if loss_mask.max() > 1:
        findings.append(_finding("F005", folder / "loss_mask.npy", f"holds {loss_mask.max()}, expected 0 and 1"))
    if (np.diff(vocabulary) <= 0).any() or vocabulary[0] < 0:
        findings.append(_finding("F006", folder / "vocabulary.npy", "is not strictly ascending from 0 or more"))
    if ids.min() < 0 or ids.max() >= vocabulary.size:
        message = f"ids run from {ids.min()} to {ids.max()}, the vocabulary has {vocabulary.size} entries"
        findings.append(_finding("F006", folder / "rows.npy", message))
    if not findings and (actual := rows_sha256(vocabulary[ids], loss_mask)) != manifest.get("rows_sha256"):
        message = f"rows_sha256 is {manifest.get('rows_sha256')!r}, the rows hash to {actual}"
        findings.append(_finding("F007", folder / "manifest.json", message, field="rows_sha256"))
    if findings:
        raise ContentError(findings)
    for array in (ids, loss_mask, vocabulary):
        array.setflags(write=False)
    return Rows(ids=ids, loss_mask=loss_mask, vocabulary=vocabulary, manifest=manifest)


def _array(path: Path, dtype: str, dimensions: int, findings: list[Finding]) -> np.ndarray | None:
    try:
        # Mapping the file first compares its length with the header's shape before anything is allocated.
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, OverflowError) as error:
        findings.append(_finding("F003", path, f"not readable as a numpy array: {error}"))
        return None
    if not isinstance(found, np.ndarray):
        found.close()
        findings.append(_finding("F003", path, "is an archive of arrays, expected one .npy array"))
        return None
    if found.dtype != np.dtype(dtype).newbyteorder("<") or found.ndim != dimensions or found.size == 0:
        expected = f"a non-empty {dtype} array of {dimensions} dimension(s)"
        findings.append(_finding("F003", path, f"is {found.dtype} of shape {found.shape}, expected {expected}"))
        return None
    return np.array(found)


def _finding(id: str, path: Path, message: str, *, field: str | None = None) -> Finding:
    return Finding(id=id, severity=Severity.ERROR, message=message, remedy=_REBUILD, path=path, field=field)
