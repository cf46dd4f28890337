"""An entry and its evidence are written whole, found again, and replaced whole."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from openrecipes.check.run import check_entry
from openrecipes.publish import entry as publish
from openrecipes.publish.entry import Attachment, publish_entry
from openrecipes.recipe.checkable import Level
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import find_recipes, load_recipe

FIXTURE = Path(__file__).parents[1] / "fixtures/levels/verified"
CREATED = "2026-12-01T04:23:00Z"


@pytest.fixture
def recipe() -> Recipe:
    return load_recipe(FIXTURE / "recipe.yaml").recipe


@pytest.fixture
def attachments() -> list[Attachment]:
    manifest = json.loads((FIXTURE / "evidence/evidence.json").read_text())
    return [
        Attachment(
            source=FIXTURE / "evidence" / file["path"],
            kind=file["kind"],
            arm=file.get("arm"),
            run=file.get("run", 0),
        )
        for file in manifest["files"]
    ]


def put(recipe: Recipe, attachments: list[Attachment], folder: Path) -> Path:
    return publish_entry(recipe, attachments, folder=folder, name="toy", producer="a test", created=CREATED)


def test_what_is_published_is_read_back_and_stands_at_its_level(recipe, attachments, tmp_path):
    path = put(recipe, attachments, tmp_path / "new" / "folder")
    found = load_recipe(path).recipe
    assert found.model_copy(update={"evidence": None}) == recipe.model_copy(update={"evidence": None})
    report = check_entry(path)
    assert report.level is Level.VERIFIED
    assert [finding for finding in report.findings if finding.severity == "error"] == []
    manifest = json.loads((path.parent / "toy.evidence" / "evidence.json").read_text())
    assert {(file["producer"], file["created"]) for file in manifest["files"]} == {("a test", CREATED)}
    assert sorted(p.name for p in path.parent.iterdir()) == ["toy.evidence", "toy.yaml"]


def test_a_second_entry_of_that_name_replaces_the_first(recipe, attachments, tmp_path):
    put(recipe, attachments, tmp_path)
    stale = tmp_path / "toy.evidence" / "stale.txt"
    stale.write_text("from an earlier run")
    path = put(recipe.model_copy(update={"notes": "The second one.\n"}), attachments, tmp_path)
    assert load_recipe(path).recipe.notes == "The second one.\n"
    assert not stale.exists()
    assert check_entry(path).level is Level.VERIFIED


def test_a_missing_file_of_evidence_leaves_the_earlier_entry_whole(recipe, attachments, tmp_path):
    path = put(recipe, attachments, tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    gone = Attachment(source=tmp_path / "nowhere" / "run.log", kind="log", arm="candidate")
    with pytest.raises(FileNotFoundError):
        put(recipe, [*attachments, gone], tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    assert check_entry(path).level is Level.VERIFIED


def test_a_disk_that_is_full_in_the_middle_leaves_nothing(recipe, attachments, tmp_path, monkeypatch):
    copied = []
    copy = shutil.copyfile

    def copyfile(source: Path, target: Path) -> None:
        copied.append(source)
        if len(copied) == 4:
            raise OSError(28, "No space left on device")
        copy(source, target)

    monkeypatch.setattr(publish.shutil, "copyfile", copyfile)
    with pytest.raises(OSError, match="No space left"):
        put(recipe, attachments, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("owner", "step"), [(publish, "write_evidence"), (publish, "dump_recipe"), (Path, "rename")])
def test_a_kill_leaves_the_earlier_entry_and_nothing_that_is_taken_for_one(recipe, attachments, tmp_path, owner, step):
    path = put(recipe, attachments, tmp_path)
    child = os.fork()
    if not child:
        setattr(owner, step, lambda *_: os._exit(9))
        put(recipe, attachments, tmp_path)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert find_recipes([tmp_path]) == [path]
    assert check_entry(path).level is Level.VERIFIED
    put(recipe, attachments, tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["toy.evidence", "toy.yaml"]


def test_evidence_of_an_arm_has_a_folder_for_each_run():
    names = [
        Attachment(source=Path("a/run.log"), kind="log", arm="reference", run=1).name,
        Attachment(source=Path("a/config.json"), kind="model_config").name,
    ]
    assert names == ["reference-1/run.log", "model_config.json"]
