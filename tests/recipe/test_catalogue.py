"""Names of shipped entries, and the wheel that carries them."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from openrecipes.errors import MissingToolError, UsageError
from openrecipes.recipe.catalogue import catalogue_root, recipe_path, shipped_folder, shipped_recipes
from openrecipes.recipe.load import load_recipe

ROOT = Path(__file__).parents[2]
NAME = "qwen3.5-397b-a17b/b200/attune-48gpu-tp2-pp6-ep8"
LIST_AND_SHOW = """
import openrecipes.recipe.catalogue as catalogue
from openrecipes.cli.list import list_recipes
from openrecipes.cli.show import show
print(catalogue.catalogue_root())
show("attune-48gpu-tp2-pp6-ep8", as_json=False)
import typer
try:
    list_recipes(None, as_json=True)
except typer.Exit:
    pass
print(catalogue.shipped_folder("schema"), catalogue.shipped_folder("patches"))
"""


def test_the_checkout_is_its_own_catalogue():
    assert catalogue_root() == ROOT / "recipes"
    assert NAME in shipped_recipes()


@pytest.mark.parametrize("name", [NAME, "attune-48gpu-tp2-pp6-ep8"])
def test_an_entry_is_found_by_its_name(name):
    assert recipe_path(name) == ROOT / "recipes" / f"{NAME}.yaml"


def test_a_path_is_taken_as_it_is(entry_path):
    assert recipe_path(str(entry_path)) == entry_path
    assert recipe_path("missing.yaml") == Path("missing.yaml")


def test_an_unknown_name_is_answered_with_the_meant_one():
    with pytest.raises(UsageError, match="did you mean `attune-48gpu-tp2-pp6-ep8`"):
        recipe_path("attune-48gpu-tp2-pp6-ep9")
    with pytest.raises(UsageError, match="openrecipes list"):
        recipe_path("???")


def test_a_folder_that_is_not_shipped_is_missing():
    with pytest.raises(MissingToolError, match="nothing"):
        shipped_folder("nothing")


@pytest.mark.parametrize("path", list(shipped_recipes().values()), ids=lambda p: p.stem)
def test_every_shipped_entry_loads_and_says_what_was_changed(path):
    recipe = load_recipe(path).recipe
    for change in recipe.changes:
        assert change.to is None or change.to in getattr(recipe, change.field)


def test_an_installed_wheel_lists_and_shows_the_shipped_recipe(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    packages = sysconfig.get_paths(vars={"base": str(home), "platbase": str(home)})["purelib"]
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # the dependencies come from this environment; its .pth files, and so the editable checkout, do not
    dependencies = {"PYTHONPATH": f"{packages}:{sysconfig.get_paths()['purelib']}", "COLUMNS": "200"}
    shown = subprocess.run(
        [python, "-c", LIST_AND_SHOW], env=dependencies, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert str(home) in shown.split("\n")[0]
    assert "Qwen3.5-397B-A17B" in shown
    assert "python3 train_async.py" in shown
    assert f'"name": "{NAME}"' in shown
    assert str(ROOT) not in shown
