"""`openrecipes show`: one entry for people, or all of it as JSON."""

from __future__ import annotations

from typing import Annotated

import typer


def show(
    path_or_name: Annotated[str, typer.Argument(help="A recipe file, or the name of a shipped entry.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole recipe as one JSON object.")] = False,
) -> None:
    """Show what a recipe is, what it runs on, and how fast it is."""
    from openrecipes.cli.json_output import json_text
    from openrecipes.errors import ContentError
    from openrecipes.recipe.catalogue import recipe_path
    from openrecipes.recipe.load import load_recipe

    path = recipe_path(path_or_name)
    try:
        recipe = load_recipe(path).recipe
    except ContentError as error:
        if not as_json:
            raise
        typer.echo(json_text(error.findings, path=str(path), recipe=None))
        raise typer.Exit(error.exit_code) from None
    if as_json:
        typer.echo(json_text((), path=str(path), recipe=recipe.model_dump(mode="json", by_alias=True)))
        return

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from openrecipes.recipe.summary import summary

    table = Table.grid(padding=(0, 2))
    for label, text in summary(recipe):
        table.add_row(Text(label, style="bold"), Text(text))
    console = Console()
    console.print(table)
    for text in filter(None, (recipe.notes, recipe.run)):
        console.print(Text("\n" + text.rstrip()), soft_wrap=True)
