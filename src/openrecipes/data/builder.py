"""Conversations to fixed rows: the same bytes for the same options, whoever makes them and however often killed.

    source -> index -> permutation -> blocks (any worker, any order) -> one ordered writer -> rows

Everything unfinished lies in `OUT.building`; `OUT` comes into being complete, by one rename. What is there of
an unfinished build is used by the next run of the same command: the index of the source and every finished block.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import openrecipes
from openrecipes.data import permutation
from openrecipes.data.blocks import BlockJob, BlockMaker, Described
from openrecipes.data.encode import ConversationEncoder, EncodeOptions
from openrecipes.data.formats import open_writer
from openrecipes.data.manifest import MANIFEST, ids_decided_by, read_manifest, same_rows, write_manifest
from openrecipes.data.options import BuildOptions
from openrecipes.data.packages import sha256_of_file
from openrecipes.data.packing import Packer
from openrecipes.data.pool import Workers, blocks_in_order, one_thread_each, open_workers
from openrecipes.data.sources.open import FileSource, describe_source, open_source
from openrecipes.data.writer import OrderedWriter, Progress
from openrecipes.errors import RunError, UsageError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def build(options: BuildOptions, progress: Progress) -> dict[str, Any]:
    """Build the rows at `options.out` and return their manifest; equal rows that are there are used again.

    Raises:
        UsageError: an option is wrong, the source is too small or changed, `out` or the unfinished build
            there is of other options.
        ContentError: a file is damaged, or more conversations are rejected than allowed.
        MissingToolError: a package is not installed.
        RunError: the disk is full, or a worker died. The same command goes on.
    """
    one_thread_each()
    work = options.work.resolve()
    job = BlockJob(
        source=options.source,
        index=work / "index",
        make_encoder=partial(ConversationEncoder, _anywhere(options.encode)),
        eos_token=options.eos_token,
        seed=options.seed,
        size=options.block_size,
        folder=work / "blocks",
    )
    if options.out.exists():
        manifest = _finished(options, job, progress)
    else:
        try:
            manifest = _build(options, job, work, progress)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise RunError(
                f"no room left for {options.work} ({error.strerror}); make room and run the same command again: "
                "it goes on after the finished blocks"
            ) from error
    shutil.rmtree(work, ignore_errors=True)
    return manifest


def _build(options: BuildOptions, job: BlockJob, work: Path, progress: Progress) -> dict[str, Any]:
    with open_workers(options.workers, job) as workers:
        described = workers.describe()
        with _work_folder(work):
            source = open_source(options.source, job.index, progress.phase)
            source.require_unchanged()
            _require_same_blocks(work, _blocks_identity(options, described, source))
            _clear(job.folder, "*.tmp")  # left behind by a worker that was killed
            unfinished = work / "rows"
            _clear(unfinished, "*")  # rows are quickly written again from the blocks
            progress.phase(f"{len(source)} conversations, workers: {options.workers}, blocks of {job.size}")
            writer = _write_rows(options, job, described, workers, -(-len(source) // job.size), unfinished, progress)
            source.require_unchanged()
            manifest = _manifest(options, described, source, writer, unfinished)
            write_manifest(unfinished, manifest)
            unfinished.rename(options.out)
            return manifest


def _write_rows(
    options: BuildOptions,
    job: BlockJob,
    described: Described,
    workers: Workers,
    blocks: int,
    folder: Path,
    progress: Progress,
) -> OrderedWriter:
    rows = open_writer(options.format, folder, row_tokens=options.row_tokens, source_name=options.source_name)
    packer = Packer(
        eos=described.eos_id, eos_supervised=options.eos_supervised, row_tokens=options.row_tokens, clear_first=True
    )
    writer = OrderedWriter(
        packer=packer,
        writer=rows,
        rows=options.rows,
        row_tokens=options.row_tokens,
        max_rejected=options.max_rejected,
        progress=progress,
    )
    try:
        writer.write(blocks_in_order(job, blocks, workers, needed=partial(writer.blocks_needed, job.size)))
    finally:
        rows.abandon()
    return writer


def _manifest(
    options: BuildOptions, described: Described, source: FileSource, writer: OrderedWriter, folder: Path
) -> dict[str, Any]:
    rejections = writer.write_rejections(folder)
    return {
        "name": options.source_name,
        "tool": {"name": "openrecipes", "version": openrecipes.__version__},
        "options": options.to_json(),
        "source": source.describe(),
        "encoder": described.encoder,
        "packing": {
            "permutation": permutation.NAME,
            "eos_token": options.eos_token,
            "eos_id": described.eos_id,
            "eos_supervised": options.eos_supervised,
            "first_token_of_a_row_supervised": False,
            "rows_without_targets": writer.rows_without_targets,
        },
        **writer.rows.to_json(),
        "conversations": writer.conversations.to_json(len(source)),
        "rejections": rejections,
        "files": {path.name: sha256_of_file(path) for path in sorted(folder.iterdir())},
    }


def _finished(options: BuildOptions, job: BlockJob, progress: Progress) -> dict[str, Any]:
    """The manifest of rows that are there already, if they are the ones asked for."""
    if not (options.out / MANIFEST).is_file():
        raise UsageError(f"{options.out} exists and holds no rows of a build; choose another folder")
    manifest = read_manifest(options.out)
    progress.phase(f"{options.out} is there; comparing it with what is asked for")
    if differing := same_rows(manifest, options, BlockMaker(job).describe().encoder, describe_source(options.source)):
        raise UsageError(
            f"{options.out} holds rows of other options ({', '.join(differing)} differ); "
            "choose another folder or remove that one"
        )
    return manifest


def _blocks_identity(options: BuildOptions, described: Described, source: FileSource) -> dict[str, Any]:
    """What decides the blocks; an unfinished build may go on with other rows, but not with other blocks."""
    return {
        "tool version": openrecipes.__version__,
        "source": source.describe(),
        "encoder": ids_decided_by(described.encoder),
        "seed": options.seed,
        "block size": options.block_size,
        "permutation": permutation.NAME,
    }


def _require_same_blocks(work: Path, identity: dict[str, Any]) -> None:
    path = work / "identity.json"
    if not path.exists():
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(identity), encoding="utf-8")
        unfinished.rename(path)
        return
    recorded = json.loads(path.read_text(encoding="utf-8"))
    if differing := [name for name in identity if recorded.get(name) != identity[name]]:
        raise UsageError(
            f"{work} is an unfinished build of another {', another '.join(differing)}; "
            "finish it with its own command, or remove it to begin anew"
        )


def _anywhere(options: EncodeOptions) -> EncodeOptions:
    """The options for a worker whose working directory is another one."""
    return dataclasses.replace(options, tokenizer=str(Path(options.tokenizer).absolute()))


def _clear(folder: Path, pattern: str) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.glob(pattern):
        path.unlink(missing_ok=True)


@contextmanager
def _work_folder(work: Path) -> Iterator[None]:
    """The folder of the unfinished build, held by this process only."""
    work.mkdir(parents=True, exist_ok=True)
    lock = os.open(work / "lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process is building in {work}; wait for it or end it") from None
        yield
    finally:
        os.close(lock)
