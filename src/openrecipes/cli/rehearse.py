"""`openrecipes rehearse`: does this layout really run, and what does it compute?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def rehearse(
    workload: Annotated[Path, typer.Argument(help="Workload file, such as examples/tiny-qwen3.5-moe.workload.yaml.")],
    layout: Annotated[str, typer.Option("--layout", help="Layout text, such as tp=2,pp=2,ep=2,etp=1.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the run's files; must not exist or be empty.")],
    ranks: Annotated[
        int | None, typer.Option("--ranks", min=1, max=64, help="CPU processes; the workload's when left out.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Steps; the workload's when left out.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the job; run and write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the step records as one JSON object.")] = False,
) -> None:
    """Train the workload's model under one layout on real Megatron-Core, on CPU processes."""
    from rich.console import Console

    from openrecipes.cli.progress import ProgressDisplay
    from openrecipes.tune.rehearsal import job
    from openrecipes.tune.rehearsal import rehearse as run_rehearsal
    from openrecipes.tune.report import job_json, steps_json, steps_table

    planned = job(workload, layout, out, ranks=ranks, steps=steps)
    if dry_run:
        typer.echo(job_json(planned))
        return
    with ProgressDisplay(Console(stderr=True)) as display:
        rehearsed = run_rehearsal(workload, planned, display)
    if as_json:
        typer.echo(steps_json(rehearsed))
    else:
        Console().print(steps_table(rehearsed))
