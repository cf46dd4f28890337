"""Everything a manifest says about its rows, computed again from the rows and compared."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openrecipes.data.builder import build
from openrecipes.data.counts import RowCounts
from openrecipes.data.encode import EncodeOptions
from openrecipes.data.formats import reader
from openrecipes.data.manifest import MANIFEST, layout_of, read_manifest
from openrecipes.data.options import BuildOptions
from openrecipes.data.packages import sha256_of_file
from openrecipes.data.packing import Row
from openrecipes.data.writer import REJECTIONS, Progress
from openrecipes.errors import ContentError, Finding, Severity

_REMEDY = "build the rows again; a folder of rows is never edited by hand"
_SHOWN = 20


def verify(folder: Path, progress: Progress) -> list[Finding]:
    """Every difference between the rows and their manifest, none where all of it holds.

    Raises:
        UsageError: there are no rows at `folder`.
        ContentError: the manifest cannot be read.
    """
    manifest = read_manifest(folder)
    path = folder / MANIFEST
    rows, row_tokens, name = layout_of(folder, manifest)
    findings = [*_files(folder, manifest), *_conversations(folder, manifest)]
    counts = RowCounts(row_tokens)
    try:
        for row in reader(name)(folder, row_tokens):
            if len(findings) < _SHOWN:
                findings += [_finding("F013", folder, text, f"row {counts.rows}") for text in _faults(row, manifest)]
            counts.add(row)
            if counts.rows % 256 == 0:
                progress.rows(counts.rows, rows, row_tokens)
    except ContentError as error:
        return [*findings, *error.findings]
    for key, found in counts.to_json().items():
        if manifest.get(key) != found:
            findings.append(_finding("F014", path, f"{key} is {manifest.get(key)!r}, the rows give {found!r}", key))
    return findings


def rebuild(folder: Path, progress: Progress) -> list[Finding]:
    """Build the rows anew, by the manifest's own options, in a folder that is thrown away, and compare.

    Raises:
        UsageError: the source or the tokenizer is no longer where the options say.
        ContentError: the manifest does not hold a build's options.
    """
    manifest = read_manifest(folder)
    layout_of(folder, manifest)
    with tempfile.TemporaryDirectory(prefix="openrecipes-") as temporary:
        try:
            given = manifest["options"] | {"encode": EncodeOptions(**manifest["options"]["encode"])}
            given["workers"] = 1 if given["workers"] == "ray" else given["workers"]  # the rows are the same
            options = BuildOptions(**given, out=Path(temporary) / "rows")
        except (KeyError, TypeError) as error:
            raise ContentError([_finding("F012", folder / MANIFEST, f"the options are incomplete: {error}")]) from error
        made = build(options, progress)
    return [
        _finding("F017", folder / MANIFEST, f"{key} is {manifest.get(key)!r}, built anew it is {made[key]!r}", key)
        for key in ("rows_sha256", "doc_starts_sha256", "conversations", "source", "packing")
        if manifest.get(key) != json.loads(json.dumps(made[key]))
    ]


def _files(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    recorded: dict[str, str] = manifest.get("files") or {}
    there = {path.name for path in folder.iterdir()} - {MANIFEST}
    for name in sorted(recorded.keys() - there):
        yield _finding("F015", folder / name, "is in the manifest and not in the folder")
    for name in sorted(there - recorded.keys()):
        yield _finding("F015", folder / name, "is in the folder and not in the manifest")
    for name in sorted(there & recorded.keys()):
        if (found := sha256_of_file(folder / name)) != recorded[name]:
            yield _finding("F016", folder / name, f"sha256 is {found}, the manifest says {recorded[name]}")


def _conversations(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    path = folder / MANIFEST
    counts = manifest.get("conversations") or {}
    rejected = counts.get("rejected") or {}
    if counts.get("read") != counts.get("used", 0) + sum(rejected.values()):
        message = f"read {counts.get('read')} != used {counts.get('used')} + rejected {sum(rejected.values())}"
        yield _finding("F014", path, message, "conversations.read")
    if (used := sum(_get(manifest, "conversations", "tokens", "counts") or [])) != counts.get("used"):
        yield _finding(
            "F014", path, f"the histogram counts {used}, used is {counts.get('used')}", "conversations.tokens"
        )
    try:
        lines = (folder / REJECTIONS).read_text(encoding="utf-8").splitlines()
        listed = Counter(json.loads(line)["kind"] for line in lines)
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield _finding("F014", folder / REJECTIONS, f"not readable as lines of JSON: {error}")
        return
    if dict(listed) != rejected:
        message = f"lists {dict(sorted(listed.items()))}, the manifest counts {rejected}"
        yield _finding("F014", folder / REJECTIONS, message, "conversations.rejected")


def _faults(row: Row, manifest: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a row whatever its hash says."""
    packing = manifest.get("packing") or {}
    size = len(row.ids)
    if row.loss_mask.max() > 1:
        yield f"the mask holds {row.loss_mask.max()}, expected 0 and 1"
    if row.loss_mask[0]:
        yield "the first token is a target, which nothing predicts"
    if not row.loss_mask[1:].any():
        yield "no token is a target"
    limit = _get(manifest, "encoder", "vocab_size")
    if row.ids.min() < 0 or (isinstance(limit, int) and row.ids.max() >= limit):
        yield f"ids run from {row.ids.min()} to {row.ids.max()}, the vocabulary has {limit} entries"
    starts = row.doc_starts.tolist()
    if starts != sorted(set(starts)) or (starts and not 0 <= starts[0] <= starts[-1] < size):
        yield f"document starts {starts} do not ascend within 0 .. {size - 1}"
        return
    eos = packing.get("eos_id")
    for start in starts:
        if start and row.ids[start - 1] != eos:
            yield f"token {start - 1} is {row.ids[start - 1]}, expected the EOS {eos} before a document"
        if start > 1 and row.loss_mask[start - 1] != packing.get("eos_supervised"):
            yield f"the EOS at {start - 1} has mask {row.loss_mask[start - 1]}, eos_supervised is otherwise"


def _get(manifest: Mapping[str, Any], *keys: str) -> Any:
    found: Any = manifest
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _finding(id: str, path: Path, message: str, field: str | None = None) -> Finding:
    return Finding(id=id, severity=Severity.ERROR, message=message, remedy=_REMEDY, path=path, field=field)
