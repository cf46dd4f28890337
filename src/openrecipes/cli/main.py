"""The `openrecipes` command: one verb a file, and one place that turns errors into exit codes.

Every verb imports what it needs inside its function, so that `openrecipes --help` stays instant.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from openrecipes import __version__
from openrecipes.cli.check import check
from openrecipes.cli.data import data
from openrecipes.cli.explain import explain
from openrecipes.cli.list import list_recipes
from openrecipes.cli.rehearse import rehearse
from openrecipes.cli.schema import schema
from openrecipes.cli.show import show
from openrecipes.cli.tune import tune
from openrecipes.errors import ContentError, OpenRecipesError

app = typer.Typer(
    help="Verified recipes for training large language models, and the tool that makes them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

for name, verb in {
    "list": list_recipes,
    "show": show,
    "check": check,
    "explain": explain,
    "schema": schema,
    "rehearse": rehearse,
    "tune": tune,
}.items():
    app.command(name)(verb)
app.add_typer(data, name="data")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"openrecipes {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that stand before the verb; the version is printed by its own callback."""


def main() -> None:
    """Run the command line; a known error becomes one message on stderr and its exit code."""
    try:
        app()
    except ContentError as error:
        # Whoever asked for JSON gets the findings of an unreadable file as JSON too.
        if "--json" in sys.argv:
            from openrecipes.cli.json_output import json_text

            typer.echo(json_text(error.findings))
        else:
            typer.echo(f"openrecipes: {error}", err=True)
        sys.exit(error.exit_code)
    except OpenRecipesError as error:
        typer.echo(f"openrecipes: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        # A full disk, a file without permission: the reason and the path are the whole message.
        place = f" ({error.filename})" if error.filename else ""
        typer.echo(f"openrecipes: {error.strerror or error}{place}", err=True)
        sys.exit(4)
