"""The manifest of built rows: written last, read first, and compared before rows are used again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openrecipes.data.formats import FORMATS
from openrecipes.data.options import BuildOptions
from openrecipes.errors import ContentError, Finding, Severity, UsageError

MANIFEST = "manifest.json"
KIND = "openrecipes fixed rows"
FORMAT_VERSION = 1
# Options that decide how rows are made and whether, not what they are.
_HOW = ("workers", "block_size", "max_rejected")


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest durably; no time and no place is in it, so that equal builds have equal manifests."""
    whole = {"kind": KIND, "format_version": FORMAT_VERSION, **content}
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(whole, file, indent=2, ensure_ascii=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder of rows.

    Raises:
        UsageError: there is no such folder, or no manifest in it.
        ContentError: the manifest is damaged, or of another kind or version.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(f"{folder} is not a folder of built rows: it has no {MANIFEST}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _wrong(path, f"not readable as JSON: {error}") from error
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise _wrong(path, f"is not a manifest of {KIND}")
    if found.get("format_version") != FORMAT_VERSION:
        raise _wrong(path, f"format_version is {found.get('format_version')!r}, expected {FORMAT_VERSION}")
    return found


def layout_of(folder: Path, manifest: Mapping[str, Any]) -> tuple[int, int, str]:
    """Rows, tokens of a row, and format: what reading the rows takes.

    Raises:
        ContentError: the manifest does not say.
    """
    options = manifest.get("options")
    rows, row_tokens = manifest.get("rows"), manifest.get("row_tokens")
    name = options.get("format") if isinstance(options, dict) else None
    if not isinstance(rows, int) or not isinstance(row_tokens, int) or row_tokens < 2 or name not in FORMATS:
        raise _wrong(folder / MANIFEST, f"rows is {rows!r}, row_tokens {row_tokens!r} and format {name!r}")
    return rows, row_tokens, name


def ids_decided_by(encoder: Mapping[str, Any]) -> dict[str, Any]:
    """What of an encoder's description decides the ids: all but the engine, whose ids are checked to be equal."""
    return {key: value for key, value in encoder.items() if key != "engine"}


def same_rows(
    manifest: Mapping[str, Any], options: BuildOptions, encoder: Mapping[str, Any], source: Mapping[str, Any]
) -> list[str]:
    """What differs between the rows of a manifest and those that a build would make."""
    asked = json.loads(json.dumps(options.to_json()))
    recorded = dict(manifest.get("options", {}))
    # Paths and the engine may differ where the content is the same, which the hashes below say.
    ignored = {*_HOW, "source", "encode"}
    differing = [key for key in asked if key not in ignored and recorded.get(key) != asked[key]]
    if ids_decided_by(manifest.get("encoder", {})) != json.loads(json.dumps(ids_decided_by(encoder))):
        differing.append("tokenizer, template or loss mask")
    if _hashes(manifest.get("source", {})) != _hashes(source):
        differing.append("source")
    return differing


def _hashes(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(file["name"], file["sha256"]) for file in source.get("files", [])]


def _wrong(path: Path, message: str) -> ContentError:
    remedy = "build the rows again; a manifest is never edited by hand"
    return ContentError([Finding(id="F001", severity=Severity.ERROR, message=message, remedy=remedy, path=path)])
