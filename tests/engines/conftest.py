"""The published entry as a text to change, and the case that the checks look at."""

from collections.abc import Callable
from pathlib import Path

import pytest

from openrecipes.recipe.checkable import Case
from openrecipes.recipe.load import load_recipe

ENTRY = Path(__file__).parents[2] / "recipes/qwen3.5-397b-a17b/b200/attune-48gpu-tp2-pp6-ep8.yaml"


@pytest.fixture
def change(tmp_path: Path) -> Callable[..., Case]:
    """`change((old, new), ...)` writes the published entry with these texts replaced, and reads it as a case."""

    def make(*replacements: tuple[str, str], text: str | None = None) -> Case:
        text = ENTRY.read_text(encoding="utf-8") if text is None else text
        for old, new in replacements:
            assert old in text, f"the entry has no `{old}`"
            text = text.replace(old, new)
        path = tmp_path / "recipes" / "entry.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        loaded = load_recipe(path)
        return Case(path=path, recipe=loaded.recipe, places=loaded.places)

    return make


@pytest.fixture
def run_with(change: Callable[..., Case]) -> Callable[[str], Case]:
    """`run_with(script)` is the published entry with another script."""

    def make(script: str) -> Case:
        case = change()
        return Case(
            path=case.path, recipe=case.recipe.model_copy(update={"run": script, "env": {}}), places=case.places
        )

    return make
