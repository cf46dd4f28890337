"""`openrecipes list`: the shipped entries, or those in given files and folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def list_recipes(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Recipe files or folders; the shipped entries where none is given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List recipes with model, GPUs, layout and speed. A file that is no recipe is reported beside the others."""
    from openrecipes.cli.json_output import json_text
    from openrecipes.errors import ContentError
    from openrecipes.recipe.catalogue import shipped_recipes
    from openrecipes.recipe.load import find_recipes, load_recipe

    named = {str(path): path for path in find_recipes(paths)} if paths else shipped_recipes()
    entries, findings = {}, []
    for name, path in named.items():
        try:
            entries[name] = load_recipe(path).recipe
        except ContentError as error:
            findings += error.findings
    if as_json:
        rows = [
            {
                "name": name,
                "model": recipe.model,
                "gpu": recipe.gpu.type,
                "gpus": recipe.gpu.count,
                "layout": recipe.layout.label,
                "tokens_per_s_per_gpu": recipe.result.tokens_per_s_per_gpu,
                "status": recipe.status,
            }
            for name, recipe in entries.items()
        ]
        typer.echo(json_text(findings, recipes=rows))
        raise typer.Exit(1 if findings else 0)

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    wraps = ("name", "model", "layout") if paths else ("model", "layout")  # a shipped name must stay whole
    for heading in ("name", "model", "GPU", "tokens/s/GPU", "layout", "claimed"):
        right = heading == "tokens/s/GPU"
        table.add_column(heading, no_wrap=heading not in wraps, overflow="fold", justify="right" if right else "left")
    for name, recipe in entries.items():
        short = name.rpartition("/")[2]
        if paths or sum(other.endswith(f"/{short}") for other in named) > 1:
            short = name
        gpus = f"{recipe.gpu.count} x {recipe.gpu.type}"
        speed = f"{recipe.result.tokens_per_s_per_gpu:,.2f}"
        table.add_row(*(Text(t) for t in (short, recipe.model, gpus, speed, recipe.layout.label, recipe.status)))
    Console().print(table)
    if findings:
        raise ContentError(findings)
