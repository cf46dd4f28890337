"""The `openrecipes` command: one verb a file, and one place that turns errors into exit codes.

Every verb imports what it needs inside its function, so that `openrecipes --help` stays instant.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Annotated, NoReturn

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
from openrecipes.errors import ContentError, OpenRecipesError, printable

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNUSABLE_PATH = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
}

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
    _settle_output()
    try:
        try:
            app()
        except ContentError as error:
            if "--json" not in sys.argv:
                raise
            # Whoever asked for JSON gets the findings of an unreadable file as JSON too.
            from openrecipes.cli.json_output import json_text

            typer.echo(json_text(error.findings))
            sys.exit(error.exit_code)
    except OpenRecipesError as error:
        _stop(str(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter's own last flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        if error.errno in _UNUSABLE_PATH:
            _stop(f"{error.strerror}{place}; give another path", 2)
        remedy = "; make room, and start the same command again" if error.errno in _NO_ROOM else ""
        _stop(f"{error.strerror or error}{place}{remedy}", 4)


def _settle_output() -> None:
    """Let no character and no width of the terminal be one that cannot be printed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where the shell closed it
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get("COLUMNS") == "0":  # some terminals say so, and rich would print nothing at all
        del os.environ["COLUMNS"]


def _stop(message: str, exit_code: int) -> NoReturn:
    typer.echo(f"openrecipes: {printable(message)}", err=True)
    sys.exit(exit_code)
