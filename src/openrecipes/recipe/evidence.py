"""The files that support an entry, listed and pinned by a manifest.

The entry holds the manifest's SHA-256 and the manifest those of its files, so that nothing in the
evidence can change unnoticed. docs/design.md, section Evidence, has the format.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ValidationError

from openrecipes.errors import ContentError, Finding, Severity
from openrecipes.recipe.fields import EvidenceReference
from openrecipes.recipe.fields.kinds import Count, Fields, Sha256, Text
from openrecipes.recipe.wording import dotted, shown
from openrecipes.recipe.writing import write_whole

FORMAT_VERSION = 1
MANIFEST_NAME = "evidence.json"

Kind = Literal[
    "log",
    "steps",
    "resolved_arguments",
    "gradients",
    "environment",
    "data_manifest",
    "model_config",
    "component_results",
    "journal",
    "plot",
]
Arm = Literal["candidate", "reference", "repeat"]


def _utc_time(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() != datetime.timedelta(0):
        raise ValueError("not a UTC time such as 2026-12-01T04:23:00Z")
    return text


class EvidenceFile(Fields):
    """One line of the manifest."""

    kind: Kind
    """What the file holds."""

    path: Text
    """Path relative to the manifest, with `/`, below its folder."""

    sha256: Sha256
    """SHA-256 of the file's bytes."""

    producer: Text
    """Program and version that made the file."""

    created: Annotated[Text, AfterValidator(_utc_time)]
    """When it was made, in UTC."""

    arm: Arm | None = None
    """Which arm of a comparison it comes from; left out where it belongs to none."""

    run: Count = 0
    """Which run of the arm, counted from 0."""


class _Manifest(Fields):
    format_version: Literal[1]
    files: tuple[EvidenceFile, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewFile:
    """A file that is about to be listed; `path` is relative to the manifest's folder."""

    kind: Kind
    path: str
    arm: Arm | None = None
    run: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """The files of a manifest that is itself as the entry recorded it."""

    manifest: Path
    files: tuple[EvidenceFile, ...]

    @property
    def folder(self) -> Path:
        """The folder that the files' paths are relative to."""
        return self.manifest.parent

    def find(self, kind: Kind, arm: Arm | None = None) -> list[EvidenceFile]:
        """The files of a kind, of one arm where `arm` is given, ordered by run as the manifest lists them."""
        found = [file for file in self.files if file.kind == kind and arm in (None, file.arm)]
        return sorted(found, key=lambda file: file.run)

    def read(self, file: EvidenceFile) -> bytes:
        """The bytes of a listed file.

        Raises:
            ContentError: the file is missing, stands outside the folder, or is not as it was recorded.
        """
        path = self.folder / file.path
        data = _read_below(path, self.folder, id="D206", at=self.manifest)
        found = hashlib.sha256(data).hexdigest()
        if found != file.sha256:
            message = f"altered: its SHA-256 is {found}, the manifest has {file.sha256}"
            raise ContentError([_finding("D207", path, message, "restore the recorded file, or record the entry anew")])
        return data


def load_evidence(recipe_path: Path, reference: EvidenceReference) -> Evidence:
    """Read the manifest that the entry at `recipe_path` refers to; the files themselves are read on demand.

    Raises:
        ContentError: with everything that is wrong with the manifest.
    """
    folder = recipe_path.parent
    path = folder / reference.manifest
    if problem := _unsafe(reference.manifest):
        message = f"the manifest's path {shown(reference.manifest)} {problem}"
        remedy = "expected a relative path below the entry's folder"
        raise ContentError([_finding("D201", recipe_path, message, remedy, "evidence.manifest")])
    data = _read_below(path, folder, id="D201", at=recipe_path)
    findings = []
    found = hashlib.sha256(data).hexdigest()
    if found != reference.sha256:
        message = f"altered: its SHA-256 is {found}, the entry {recipe_path} has {reference.sha256}"
        findings.append(_finding("D202", path, message, "restore the recorded manifest, or record the entry anew"))
    files, wrong = _parse(data, path)
    if findings or wrong:
        raise ContentError([*findings, *wrong])
    return Evidence(manifest=path, files=files)


def write_evidence(folder: Path, files: Iterable[NewFile], producer: str, created: str) -> str:
    """Write the manifest `evidence.json` of files that stand in `folder`, and return its SHA-256.

    `producer` is program and version, `created` the UTC time as `2026-12-01T04:23:00Z`.

    Raises:
        ContentError: a file is missing, outside the folder or named twice.
        UsageError: the manifest cannot be written.
    """
    manifest = folder / MANIFEST_NAME
    listed, findings = [], []
    for file in files:
        try:
            if problem := _unsafe(file.path):
                raise ContentError(
                    [_finding("D204", manifest, f"{file.path} {problem}", "name a file below the folder")]
                )
            data = _read_below(folder / file.path, folder, id="D206", at=manifest)
        except ContentError as error:
            findings += error.findings
            continue
        entry = {"kind": file.kind}
        if file.arm is not None:
            entry |= {"arm": file.arm, "run": file.run}
        entry |= {
            "path": file.path,
            "sha256": hashlib.sha256(data).hexdigest(),
            "producer": producer,
            "created": created,
        }
        listed.append(entry)
    text = json.dumps({"format_version": FORMAT_VERSION, "files": listed}, indent=2) + "\n"
    findings += _parse(text.encode(), manifest)[1]
    if findings:
        raise ContentError(findings)
    write_whole(manifest, text.encode())
    return hashlib.sha256(text.encode()).hexdigest()


def _parse(data: bytes, path: Path) -> tuple[tuple[EvidenceFile, ...], list[Finding]]:
    """The files a manifest lists, and everything that is wrong with it."""
    remedy = "docs/design.md, section Evidence, has the format"
    try:
        content = json.loads(data, object_pairs_hook=_unique)
    except RecursionError:
        return (), [_finding("D203", path, "nested too deeply", remedy)]
    except ValueError as error:
        return (), [_finding("D203", path, f"not JSON: {error}", remedy)]
    try:
        files = _Manifest.model_validate(content).files
    except ValidationError as error:
        return (), [
            _finding(
                "D203", path, f"{detail['msg'].lower()}, found {shown(detail['input'])}", remedy, dotted(detail["loc"])
            )
            for detail in error.errors(include_url=False)
        ]
    findings = []
    seen: dict[str, int] = {}
    for i, file in enumerate(files):
        field = f"files[{i}].path"
        if problem := _unsafe(file.path):
            remedy = "expected a relative path below the manifest's folder"
            findings.append(_finding("D204", path, f"{shown(file.path)} {problem}", remedy, field))
        elif file.path in seen:
            message = f"`{file.path}` is already files[{seen[file.path]}]"
            findings.append(_finding("D205", path, message, "list each file once", field))
        seen.setdefault(file.path, i)
    return files, findings


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key `{twice}` stands twice in one object")
    return dict(pairs)


def _unsafe(path: str) -> str | None:
    """Why a path may not be in a manifest; None where it may. One file has one such path."""
    pure = PurePosixPath(path)
    if pure.is_absolute():
        return "is absolute"
    if ".." in pure.parts:
        return "leaves its folder"
    if "\\" in path or ":" in path or not path.isprintable() or str(pure) != path or path == ".":
        return "is not in the plain form `folder/file`"
    return None


def _read_below(path: Path, folder: Path, *, id: str, at: Path) -> bytes:
    """The bytes of a regular file whose real place is below `folder`; `at` is the file that names it."""
    remedy = f"named by {at}; put the file back or take its entry out"
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ContentError([_finding("D204", path, f"a link to a place outside {folder}", remedy)])
        if not path.exists():
            raise ContentError([_finding(id, path, "no such file", remedy)])
        if not path.is_file():
            raise ContentError([_finding(id, path, "not a regular file", remedy)])
        return path.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links
        raise ContentError([_finding(id, path, f"cannot be read ({error})", remedy)]) from None


def _finding(id: str, path: Path, message: str, remedy: str, field: str | None = None) -> Finding:
    return Finding(id=id, severity=Severity.ERROR, message=message, remedy=remedy, path=path, field=field)
