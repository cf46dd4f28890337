"""`openrecipes schema`: the JSON Schema of the recipe format."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON Schema (2020-12) of a recipe, as YAML."""
    from openrecipes.recipe.schema import schema_text

    typer.echo(schema_text(), nl=False)
