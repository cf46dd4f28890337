"""Write an entry and its evidence into a folder, whole or not at all."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Sequence
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
    replaced; until the last rename nothing of it has changed but its evidence.
    """
    folder.mkdir(parents=True, exist_ok=True)
    evidence, entry = folder / f"{name}.evidence", folder / f"{name}.yaml"
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as scratch:
        unfinished = Path(scratch) / "evidence"
        for attachment in attachments:
            target = unfinished / attachment.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(attachment.source, target)
        files = [NewFile(kind=a.kind, path=a.name, arm=a.arm, run=a.run) for a in attachments]
        digest = write_evidence(unfinished, files, producer, created)
        recipe = recipe.model_copy(
            update={"evidence": EvidenceReference(manifest=f"{evidence.name}/{MANIFEST_NAME}", sha256=digest)}
        )
        text = Path(scratch) / entry.name
        text.write_text(dump_recipe(recipe), encoding="utf-8")
        if evidence.exists():
            shutil.rmtree(evidence)
        unfinished.rename(evidence)
        text.replace(entry)
    return entry
