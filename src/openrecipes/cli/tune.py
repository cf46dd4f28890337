"""`openrecipes tune`: find the fastest layout that still trains right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def tune(
    workload: Annotated[Path, typer.Argument(help="Workload file, such as examples/tiny-qwen3.5-moe.workload.yaml.")],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for journal, arms and entry; an interrupted tune goes on from it.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the trials in their order and why; run and write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Try every legal layout on real Megatron-Core, keep what trains right, publish the fastest.

    Exit code 0 when an entry was written, 1 when no trial passed.
    """
    from rich.console import Console
    from rich.text import Text

    from openrecipes.cli.progress import ProgressDisplay
    from openrecipes.tune.report import proposal_json, proposal_tables, to_json, to_tables
    from openrecipes.tune.tuner import plan
    from openrecipes.tune.tuner import tune as run_tune

    console = Console()
    if dry_run:
        proposal = plan(workload)
        if as_json:
            typer.echo(proposal_json(proposal))
        else:
            for part in proposal_tables(proposal):
                console.print(part)
        return
    progress = Console(stderr=True)
    try:
        with ProgressDisplay(progress) as display:
            tuned = run_tune(workload, out, display)
    except KeyboardInterrupt:
        progress.print(Text(f"interrupted; the same command goes on after the finished arms in {out}"), soft_wrap=True)
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(to_json(tuned))
    else:
        for part in to_tables(tuned):
            console.print(part)
    if tuned.entry is None:
        raise typer.Exit(1)
