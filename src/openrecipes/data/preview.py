"""A dry run: the first block of a build, made in a folder that is thrown away, and what it lets one expect."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from openrecipes.data.blocks import BlockJob, BlockMaker, Rejected, read_block
from openrecipes.data.encode import ConversationEncoder
from openrecipes.data.options import BuildOptions
from openrecipes.data.pool import one_thread_each
from openrecipes.data.sources.open import open_source
from openrecipes.data.writer import Progress
from openrecipes.errors import UsageError


def preview(options: BuildOptions, progress: Progress) -> dict[str, Any]:
    """What a build would read, reject and need, estimated from its first block; nothing is left behind.

    The index of the source is made as in a build, so a large source takes as long as its files take to read.
    """
    one_thread_each()
    with tempfile.TemporaryDirectory(prefix="openrecipes-") as temporary:
        folder = Path(temporary)
        job = BlockJob(
            source=options.source,
            index=folder / "index",
            make_encoder=partial(ConversationEncoder, options.encode),
            eos_token=options.eos_token,
            seed=options.seed,
            size=options.block_size,
            folder=folder,
        )
        maker = BlockMaker(job)
        described = maker.describe()
        source = open_source(options.source, job.index, progress.phase)
        if not len(source):
            raise UsageError(f"source {options.source} holds no conversations")
        started = time.process_time()
        maker.make(0)
        cpu_seconds = time.process_time() - started
        found = list(read_block(job.path(0)))
    rejected = Counter(one.kind for one in found if isinstance(one, Rejected))
    lengths = [len(one.ids) for one in found if not isinstance(one, Rejected)]
    targets = sum(int(one.loss_mask.sum()) for one in found if not isinstance(one, Rejected))
    tokens = sum(lengths) + len(lengths)
    wanted = options.rows * options.row_tokens
    return {
        "name": options.source_name,
        "options": options.to_json(),
        "source": {"conversations": len(source), **source.describe()},
        "encoder": described.encoder,
        "eos_id": described.eos_id,
        "sample": {
            "conversations": len(found),
            "rejected": dict(sorted(rejected.items())),
            "tokens": tokens,
            "longest": max(lengths, default=0),
            "supervised_token_ratio": round(targets / tokens, 4) if tokens else None,
            "cpu_seconds": round(cpu_seconds, 3),
        },
        "estimate": None
        if not tokens
        else {
            "tokens": wanted,
            "conversations": -(-wanted * len(found) // tokens),
            "enough_in_source": wanted * len(found) / tokens <= len(source),
            "cpu_seconds_for_ids_and_masks": round(wanted * cpu_seconds / tokens, 1),
        },
    }
