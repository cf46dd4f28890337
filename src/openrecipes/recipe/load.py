"""Recipe files: found, read and typed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from openrecipes.errors import ContentError, Finding, UsageError
from openrecipes.recipe.checkable import Place
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.reader import Document, parse_document, read_document
from openrecipes.recipe.scalars import to_value
from openrecipes.recipe.schema import Schema, recipe_schema
from openrecipes.recipe.wording import to_finding

Model = TypeVar("Model", bound=BaseModel)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadedRecipe:
    """A recipe, its file, and where each dotted field stands in it."""

    path: Path
    recipe: Recipe
    places: Mapping[str, Place]


def load_recipe(path: Path) -> LoadedRecipe:
    """Read one recipe file.

    Raises:
        UsageError: `path` is missing, a directory, or cannot be opened.
        ContentError: with everything that is wrong with the file.
    """
    return _typed(read_document(path))


def parse_recipe(text: str, path: Path) -> LoadedRecipe:
    """Read a recipe from its text; `path` only names the place of a finding.

    Raises:
        ContentError: with everything that is wrong with the text.
    """
    return _typed(parse_document(text, path))


def _typed(document: Document) -> LoadedRecipe:
    recipe, places = typed(document, Recipe, recipe_schema())
    return LoadedRecipe(path=document.path, recipe=recipe, places=places)


def typed(document: Document, model: type[Model], schema: Schema) -> tuple[Model, dict[str, Place]]:
    """The document as a typed model, and where each dotted field stands; `schema` is the model's JSON Schema.

    Raises:
        ContentError: with everything that is wrong with the document.
    """
    places: dict[str, Place] = {}
    value = to_value(document.root, schema, "", places)
    findings = list(document.findings)
    try:
        found = model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        findings += [to_finding(detail, schema, document.path, places) for detail in error.errors(include_url=False)]
    else:
        if not findings:
            return found, places
    raise ContentError(sorted(findings, key=_position))


def _position(finding: Finding) -> tuple[int, int, str]:
    return finding.line or 0, finding.column or 0, finding.id


def find_recipes(paths: Iterable[Path]) -> list[Path]:
    """The recipe files that `paths` name: each file itself, each directory searched for `*.yaml`, sorted.

    Raises:
        UsageError: naming every path that is missing and every directory without a recipe in it.
    """
    found: dict[Path, None] = {}
    wrong: list[str] = []
    for path in paths:
        below = sorted(file for file in path.rglob("*.yaml") if file.is_file()) if path.is_dir() else [path]
        if not path.exists():
            wrong.append(f"{path}: no such file or directory")
        elif not below:
            wrong.append(f"{path}: no *.yaml file in this directory")
        found.update(dict.fromkeys(below))
    if wrong:
        raise UsageError("; ".join(wrong))
    return list(found)
