"""The JSON Schema of the recipe format, generated from the typed fields.

Editors complete and check recipes with it, the reader learns from it what kind of value a field
holds, and `openrecipes explain` prints from it. `schema/recipe.schema.yaml` is a copy in git.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from openrecipes.recipe.fields import Recipe

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID = "urn:openrecipes:recipe:1"
"""A name instead of an address, since the schema travels with the tool and is published nowhere yet."""

Schema = Mapping[str, Any]


@functools.cache
def recipe_schema() -> Schema:
    """The schema as plain data, shared by all callers; read it, do not write to it."""
    generated = Recipe.model_json_schema(by_alias=True)
    _drop_generated_titles(generated)
    return {"$schema": DIALECT, "$id": ID, **generated}


def _drop_generated_titles(schema: dict[str, Any]) -> None:
    """Pydantic titles each field by its own name, which says nothing new."""
    for group in (schema, *schema["$defs"].values()):
        group.pop("title", None)
        for field in group["properties"].values():
            field.pop("title", None)


def schema_text() -> str:
    """The schema as YAML: the text of `schema/recipe.schema.yaml`."""
    head = "# Generated from the typed fields by `openrecipes schema`; do not edit.\n"
    body = yaml.safe_dump(dict(recipe_schema()), sort_keys=False, allow_unicode=True, width=110)
    return head + body


def inlined(model: type[BaseModel]) -> Schema:
    """The JSON Schema of any model with every reference replaced by what it refers to."""
    whole = model.model_json_schema(by_alias=True)
    groups = whole.pop("$defs", {})

    def follow(part: Any) -> Any:
        if isinstance(part, list):
            return [follow(item) for item in part]
        if not isinstance(part, dict):
            return part
        group = groups[part["$ref"].rpartition("/")[2]] if "$ref" in part else {}
        return {key: follow(value) for key, value in {**group, **part}.items() if key != "$ref"}

    return follow(whole)


def resolve(schema: Schema) -> Schema:
    """The schema with its reference followed; the words beside the reference win."""
    if "$ref" not in schema:
        return schema
    target = recipe_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def alternatives(schema: Schema) -> list[Schema]:
    """The schemas of which a value must meet one; a field that may be null has two."""
    return [resolve(option) for option in schema["anyOf"]] if "anyOf" in schema else [resolve(schema)]


def properties(schema: Schema) -> dict[str, Schema]:
    """The fields of the mapping that this field may hold, by name; empty where it holds none."""
    return {name: field for option in alternatives(schema) for name, field in option.get("properties", {}).items()}


def item(schema: Schema, index: int) -> Schema:
    """The schema of the value at `index` of the list this field may hold."""
    for option in alternatives(schema):
        if index < len(option.get("prefixItems", ())):
            return option["prefixItems"][index]
        if isinstance(option.get("items"), Mapping):
            return option["items"]
    return {}


def value_at(schema: Schema, key: str) -> Schema:
    """The schema of the value at `key` of the mapping this field may hold: a named field, or any in `env`."""
    if key in (named := properties(schema)):
        return named[key]
    open_ended = (option.get("additionalProperties") for option in alternatives(schema))
    return next((found for found in open_ended if isinstance(found, Mapping)), {})


def fields(schema: Schema | None = None, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """Every field below `schema` as (dotted name, schema); list items are `correctness.component_tests[]`."""
    for name, field in properties(schema or recipe_schema()).items():
        dotted = prefix + name
        yield dotted, field
        yield from fields(field, dotted + ".")
        if below := item(field, 0):
            yield from fields(below, dotted + "[].")


def closest(word: str, known: list[str]) -> list[str]:
    """The known words that `word` was most likely meant to be, best first; possibly none."""
    return difflib.get_close_matches(word, known, n=3, cutoff=0.5)
