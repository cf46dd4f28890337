"""`openrecipes check`: every number, flag and claim of an entry, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def check(
    paths: Annotated[list[Path], typer.Argument(help="Recipe files, or folders that are searched for *.yaml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Count warnings as errors.")] = False,
    usd_per_gpu_hour: Annotated[
        float | None, typer.Option("--usd-per-gpu-hour", help="Price that overrides every recorded one.")
    ] = None,
) -> None:
    """Check recipes: arithmetic, command, evidence and claims. Exit code 1 when there is an error."""
    import math

    from openrecipes.check.registry import CHECKS
    from openrecipes.check.report import is_ok, to_json, to_text
    from openrecipes.check.run import check_entry
    from openrecipes.errors import UsageError
    from openrecipes.recipe.load import find_recipes

    if usd_per_gpu_hour is not None and not (math.isfinite(usd_per_gpu_hour) and usd_per_gpu_hour > 0):
        raise UsageError(f"--usd-per-gpu-hour is {usd_per_gpu_hour}, expected a positive number of US dollars")
    reports = [check_entry(path, usd_per_gpu_hour=usd_per_gpu_hour) for path in find_recipes(paths)]
    ok = is_ok(reports, strict=strict)
    if as_json:
        from openrecipes.cli.json_output import json_text

        findings = [finding for report in reports for finding in report.findings]
        typer.echo(json_text(findings, ok=ok, entries=to_json(reports, CHECKS)))
    else:
        from rich.console import Console

        console = Console()
        for line in to_text(reports, CHECKS):
            console.print(line, soft_wrap=True)
    if not ok:
        raise typer.Exit(1)
