"""The published schema: equal to the code, valid, and a judge of the published recipes."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from openrecipes.recipe.catalogue import shipped_folder, shipped_recipes
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import load_recipe, parse_recipe
from openrecipes.recipe.schema import fields, recipe_schema, resolve, schema_text
from openrecipes.recipe.wording import expectation

PUBLISHED = shipped_folder("schema") / "recipe.schema.yaml"


def plain(recipe: Recipe) -> dict:
    return json.loads(recipe.model_dump_json(by_alias=True))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(yaml.safe_load(PUBLISHED.read_text(encoding="utf-8")))


def test_the_file_in_git_is_the_generated_text():
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(), "run: openrecipes schema > schema/recipe.schema.yaml"


def test_it_is_a_2020_12_schema(validator):
    schema = validator.schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"]


@pytest.mark.parametrize(("name", "path"), list(shipped_recipes().items()))
def test_every_shipped_recipe_is_valid(validator, name, path):
    validator.validate(plain(load_recipe(path).recipe))


def test_the_entry_as_its_author_published_it_is_valid(validator, entry_text):
    (change,) = parse_recipe(entry_text, Path("r.yaml")).recipe.changes
    published = entry_text.replace(f"  {change.to} \\\n", f"  {change.from_} \\\n").partition("\nchanges:\n")[0] + "\n"
    recipe = parse_recipe(published, Path("r.yaml")).recipe
    assert "python3 -m --async \\\n" in recipe.run
    assert recipe.changes == ()
    validator.validate(plain(recipe))


@pytest.mark.parametrize(
    ("group", "field", "value"),
    [
        ("gpu", "count", 0),
        ("gpu", "count", "48"),
        ("gpu", "colour", "red"),
        ("result", "measured", "18.10.2026"),
        ("result", "window", [5]),
        ("result", "window", [5, 6, 7]),
        ("result", "mfu", 2),
        ("dataset", "rows_sha256", "abc"),
        ("author", "url", "ftp://example.org"),
        ("env", "A", 1),
    ],
)
def test_a_broken_recipe_is_invalid(validator, entry_text, group, field, value):
    tree = plain(parse_recipe(entry_text, Path("r.yaml")).recipe)
    tree[group][field] = value
    assert not validator.is_valid(tree)


def test_a_missing_field_is_invalid(validator, entry_text):
    tree = plain(parse_recipe(entry_text, Path("r.yaml")).recipe)
    del tree["layout"]["tp"]
    assert not validator.is_valid(tree)


@pytest.mark.parametrize(("name", "field"), list(fields()))
def test_every_field_is_documented(name, field):
    assert resolve(field)["description"].endswith("."), name
    assert expectation(field)


def test_examples_are_valid_values(validator):
    """An example that its own field refuses would teach the wrong thing."""
    checked = 0
    for _, field in fields():
        judge = validator.evolve(schema={**field, "$defs": recipe_schema()["$defs"]})
        for example in field.get("examples", ()):
            judge.validate(example)
            checked += 1
    assert checked > 80


def test_the_top_level_fields_change_only_on_purpose():
    assert " ".join(recipe_schema()["properties"]) == (
        "schema_version model gpu author status stack workload dataset layout result correctness env patches run "
        "notes evidence changes"
    )
