"""`openrecipes data`: conversations to fixed rows, verified, shown and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

data = typer.Typer(help="Build fixed-length SFT rows, byte-reproducible, and check them.", no_args_is_help=True)

_FOLDER = typer.Argument(help="Folder that `openrecipes data build` wrote.")
_JSON = typer.Option("--json", help="Print the result as one JSON object.")


@data.command()
def build(
    source: Annotated[
        str,
        typer.Option(
            "--source",
            help="A .jsonl, .parquet or .arrow file, a folder of them, or hf:OWNER/NAME@COMMIT; "
            "::PATTERN behind a folder or dataset chooses files.",
        ),
    ],
    tokenizer: Annotated[
        Path, typer.Option("--tokenizer", help="Checkpoint folder with tokenizer.json and the chat template.")
    ],
    row_tokens: Annotated[int, typer.Option("--row-tokens", help="Tokens of a row, such as 8192.")],
    rows: Annotated[int, typer.Option("--rows", help="How many rows, such as 6400.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to make; an interrupted build goes on in OUT.building.")],
    loss_mask: Annotated[
        str, typer.Option("--loss-mask", help="qwen3_5 or qwen3, as slime defines them, or assistant.")
    ] = "qwen3_5",
    seed: Annotated[int, typer.Option("--seed", help="Selects the permutation of the conversations.")] = 42,
    workers: Annotated[
        str, typer.Option("--workers", help="Worker processes, or `ray` for the CPUs of a Ray cluster.")
    ] = "1",
    eos_token: Annotated[
        str, typer.Option("--eos-token", help="Special token between conversations.")
    ] = "<|endoftext|>",
    eos_supervised: Annotated[
        bool, typer.Option("--eos-supervised/--no-eos-supervised", help="Whether that token is a target.")
    ] = False,
    control_tokens: Annotated[
        str,
        typer.Option("--control-tokens", help="Control-token text in a message: refuse the conversation, or escape."),
    ] = "refuse",
    max_rejected: Annotated[
        int, typer.Option("--max-rejected", help="Fail when more conversations than this are unusable.")
    ] = 0,
    expect_tokenizer_sha256: Annotated[
        str | None, typer.Option("--expect-tokenizer-sha256", help="Fail unless tokenizer.json has this SHA-256.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="auto, hf or fastokens; auto takes fastokens where its ids agree.")
    ] = "auto",
    format: Annotated[str, typer.Option("--format", help="parquet, as slime reads it, or megatron.")] = "parquet",
    name: Annotated[str | None, typer.Option("--name", help="Name the rows carry; made of source and shape.")] = None,
    block_size: Annotated[
        int, typer.Option("--block-size", help="Conversations of a block, the piece that is never made twice.")
    ] = 256,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Make the first block only, print what to expect, keep nothing.")
    ] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Build rows. The same options give the same rows with any workers, and after any interruption."""
    from rich.console import Console

    from openrecipes.cli.data_output import RowsProgress, preview_lines, summary_lines
    from openrecipes.errors import UsageError

    _require_packages()
    from openrecipes.data.builder import build as run_build
    from openrecipes.data.encode import EncodeOptions
    from openrecipes.data.options import BuildOptions
    from openrecipes.data.preview import preview

    if workers != "ray" and not workers.isdecimal():
        raise UsageError(f"--workers is `{workers}`, expected a whole number or `ray`")
    options = BuildOptions(
        source=source,
        encode=EncodeOptions(
            tokenizer=str(tokenizer),
            expect_tokenizer_sha256=expect_tokenizer_sha256,
            loss_mask=loss_mask,
            control_tokens=control_tokens,
            engine=engine,
        ),
        row_tokens=row_tokens,
        rows=rows,
        seed=seed,
        out=out,
        name=name,
        eos_token=eos_token,
        eos_supervised=eos_supervised,
        format=format,
        max_rejected=max_rejected,
        workers="ray" if workers == "ray" else int(workers),
        block_size=block_size,
    )
    console = Console(stderr=True)
    try:
        with RowsProgress(console) as progress:
            found = preview(options, progress) if dry_run else run_build(options, progress)
    except KeyboardInterrupt:
        console.print(f"interrupted; the same command goes on after the finished blocks in {options.work}")
        raise typer.Exit(130) from None
    _print(found, as_json, preview_lines if dry_run else summary_lines, "preview" if dry_run else "manifest")


@data.command()
def verify(
    folder: Annotated[Path, _FOLDER],
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Also build the rows anew from source and tokenizer, and compare.")
    ] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Compute everything the manifest says from the rows again. Exit code 1 when something differs."""
    from rich.console import Console

    from openrecipes.cli.data_output import RowsProgress
    from openrecipes.cli.json_output import json_text

    _require_packages()
    from openrecipes.data.manifest import read_manifest
    from openrecipes.data.verify import rebuild as run_rebuild
    from openrecipes.data.verify import verify as run_verify

    with RowsProgress(Console(stderr=True)) as progress:
        findings = run_verify(folder, progress)
        if rebuild:
            findings += run_rebuild(folder, progress)
    manifest = read_manifest(folder)
    if as_json:
        typer.echo(json_text(findings, rows=manifest.get("rows"), rows_sha256=manifest.get("rows_sha256")))
    else:
        for finding in findings:
            typer.echo(str(finding))
        if not findings:
            typer.echo(f"ok: {manifest['rows']} rows, rows_sha256 {manifest['rows_sha256']}")
    if findings:
        raise typer.Exit(1)


@data.command()
def show(
    folder: Annotated[Path, _FOLDER],
    row: Annotated[int, typer.Option("--row", help="Number of the row, from 0.")] = 0,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", help="Checkpoint folder; the one the rows were built with.")
    ] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Print a row as text, its targets in colour and each conversation's start marked."""
    import dataclasses

    from rich.console import Console
    from rich.text import Text

    from openrecipes.cli.json_output import json_text

    _require_packages()
    from openrecipes.data.show import decoder, pieces, read_row

    found = list(pieces(read_row(folder, row), decoder(folder, tokenizer)))
    if as_json:
        typer.echo(json_text([], row=row, pieces=[dataclasses.asdict(piece) for piece in found]))
        return
    text = Text()
    for piece in found:
        if piece.begins:
            text.append(f"\n── conversation at token {piece.first_token} ──\n", style="dim")
        text.append(piece.text, style="bold green" if piece.target else "")
    Console().print(text, soft_wrap=True)


@data.command()
def report(
    folder: Annotated[Path, _FOLDER],
    out: Annotated[Path, typer.Option("--out", help="Page to write, such as report.html.")],
) -> None:
    """Write a page with histograms of lengths, supervised shares and rejections."""
    _require_packages()
    from openrecipes.data.manifest import read_manifest
    from openrecipes.data.report import write_report

    write_report(read_manifest(folder), out)
    typer.echo(str(out))


def _print(found: dict[str, Any], as_json: bool, lines: Any, key: str) -> None:
    if as_json:
        from openrecipes.cli.json_output import json_text

        typer.echo(json_text([], **{key: found}))
        return
    for line in lines(found):
        typer.echo(line)


def _require_packages() -> None:
    """Say once and early what is missing, rather than at the first module that needs it."""
    from importlib.util import find_spec

    from openrecipes.errors import MissingToolError

    missing = [name for name in ("pyarrow", "tokenizers", "jinja2") if find_spec(name) is None]
    if missing:
        raise MissingToolError(f"{', '.join(missing)} not installed; install with `pip install openrecipes[data]`")
