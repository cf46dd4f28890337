"""Write an entry and its evidence into a folder, whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from openrecipes.recipe.evidence import MANIFEST_NAME, Arm, Kind, NewFile, write_evidence
from openrecipes.recipe.fields import EvidenceReference, Recipe
from openrecipes.recipe.writer import dump_recipe


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file of evidence: where it is now, and what it is (docs/design.md, Evidence)."""

    source: Path
    kind: Kind
    arm: Arm | None = None
    run: int = 0

    @property
    def name(self) -> str:
        """Path inside the evidence folder, such as `reference-1/steps.jsonl`."""
        return f"{self.arm}-{self.run}/{self.source.name}" if self.arm else f"{self.kind}{self.source.suffix}"


def publish_entry(
    recipe: Recipe, attachments: Sequence[Attachment], *, folder: Path, name: str, producer: str, created: str
) -> Path:
    """Write `<folder>/<name>.yaml` and `<folder>/<name>.evidence/`; return the entry's path.

    `producer` and `created` (ISO 8601, UTC) go into the manifest. An earlier entry of that name is
    replaced, once all of the new one stands beside it, by renames alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    evidence, entry = folder / f"{name}.evidence", folder / f"{name}.yaml"
    with _scratch(folder / f".{name}.unfinished") as scratch:
        unfinished = scratch / "evidence"
        for attachment in attachments:
            target = unfinished / attachment.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(attachment.source, target)
        files = [NewFile(kind=a.kind, path=a.name, arm=a.arm, run=a.run) for a in attachments]
        digest = write_evidence(unfinished, files, producer, created)
        recipe = recipe.model_copy(
            update={"evidence": EvidenceReference(manifest=f"{evidence.name}/{MANIFEST_NAME}", sha256=digest)}
        )
        text = scratch / "entry"
        text.write_text(dump_recipe(recipe), encoding="utf-8")
        if evidence.exists():
            evidence.rename(scratch / "replaced")
        unfinished.rename(evidence)
        text.replace(entry)
    return entry


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """An empty folder that is gone afterwards. Its name is fixed, so that what a kill left there goes too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
