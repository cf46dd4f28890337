"""Conversations to a rows folder: the same bytes for the same inputs, every time.

    source -> permutation -> turns -> ChatML ids and mask -> rows -> folder

Only as many conversations are read as the rows need, in the order of the seeded permutation.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import openrecipes
from openrecipes.data import chat, permutation
from openrecipes.data.packages import find_package, sha256_of_file
from openrecipes.data.packing import Packed, pack
from openrecipes.data.rows import compact, load_rows, read_manifest, write_rows
from openrecipes.data.source import JOINER, Rejection, Source, read_conversations, turns
from openrecipes.data.tokenizer import QwenTokenizer, Tokenizer, TokenizerChoice, describe_tokenizer
from openrecipes.errors import UsageError

_MAX_TOKENS = 2**28  # lists of Python integers: about 20 GB, more than any rehearsal can use


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Built:
    """Packed rows in tokenizer ids, and how many conversations were left out for which reason."""

    packed: Packed
    rejected: dict[str, int]


def build_rows(
    *,
    source: Source,
    tokenizer: TokenizerChoice,
    row_tokens: int,
    rows: int,
    seed: int,
    out: Path,
    max_vocabulary: int | None = None,
    separator: str = "<|endoftext|>",
) -> dict[str, Any]:
    """Build a rows folder at `out` and return its manifest; an equal one that is there is used again.

    `max_vocabulary` is how many distinct tokens the model that trains on the rows has room for.

    Raises:
        MissingToolError: a package is not installed.
        UsageError: an option is wrong, the source is too small, the tokens are too many, or `out`
            holds rows of other inputs.
        ContentError: the source's file, or the folder that is there, is damaged.
    """
    _require_sizes(row_tokens, rows)
    inputs = _describe(source, tokenizer, row_tokens, rows, seed, separator)
    if out.exists():
        manifest = _existing(out, inputs)
        _require_vocabulary(manifest["vocabulary_size"], max_vocabulary, rows, row_tokens)
        return manifest
    conversations = read_conversations(find_package(source.package).path(source.file))
    built = make_rows(
        conversations,
        QwenTokenizer(tokenizer),
        row_tokens=row_tokens,
        rows=rows,
        seed=seed,
        separator=separator,
    )
    packed = built.packed
    if len(packed.ids) < rows:
        raise UsageError(
            f"{source.package} gives {len(packed.ids)} rows of {row_tokens} tokens, {rows} were asked for; "
            "ask for fewer or shorter rows"
        )
    _require_vocabulary(compact(packed.ids)[1].size, max_vocabulary, rows, row_tokens)
    return write_rows(
        out,
        tokenizer_ids=packed.ids,
        loss_mask=packed.loss_mask,
        manifest={
            "tool": {"name": "openrecipes", "version": openrecipes.__version__},
            "inputs": inputs,
            "conversations": {
                "in_source": len(conversations),
                "read": packed.documents + sum(built.rejected.values()),
                "used": packed.documents,
                "rejected": built.rejected,
            },
            "rows_without_targets": packed.rows_without_targets,
            "supervised_token_ratio": round(float(packed.loss_mask.mean()), 6),
        },
    )


def make_rows(
    conversations: Sequence[Any],
    tokenizer: Tokenizer,
    *,
    row_tokens: int,
    rows: int,
    seed: int,
    separator: str = "<|endoftext|>",
) -> Built:
    """Rows in memory from conversations as `read_conversations` returns them."""
    rejected: Counter[Rejection] = Counter()

    def documents() -> Iterator[chat.Document]:
        for index in permutation.Permutation(len(conversations), seed):
            found = turns(conversations[index], tokenizer.special_tokens)
            if isinstance(found, Rejection):
                rejected[found] += 1
            else:
                yield chat.render(found, tokenizer)

    packed = pack(documents(), separator=chat.special_id(tokenizer, separator), row_tokens=row_tokens, rows=rows)
    return Built(packed=packed, rejected={reason.value: rejected[reason] for reason in Rejection})


def _describe(
    source: Source, tokenizer: TokenizerChoice, row_tokens: int, rows: int, seed: int, separator: str
) -> dict[str, Any]:
    package = find_package(source.package)
    package.require_license(source.license)
    return {
        "source": {
            "package": package.name,
            "version": package.version,
            "license": package.license,
            "file": source.file,
            "sha256": sha256_of_file(package.path(source.file)),
        },
        "tokenizer": describe_tokenizer(tokenizer),
        "chat": {"template": chat.TEMPLATE, "loss_mask": chat.LOSS_MASK, "message_joiner": JOINER},
        "packing": {
            "row_tokens": row_tokens,
            "rows": rows,
            "seed": seed,
            "permutation": permutation.NAME,
            "separator": separator,
            "separator_supervised": False,
        },
    }


def _existing(out: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    recorded = read_manifest(out).get("inputs")
    if recorded != inputs:
        differing = [key for key in inputs if not isinstance(recorded, dict) or recorded.get(key) != inputs[key]]
        raise UsageError(
            f"{out} holds rows of other inputs ({', '.join(differing) or 'more than these'} differ); "
            "choose another folder or remove that one"
        )
    return dict(load_rows(out).manifest)


def _require_sizes(row_tokens: int, rows: int) -> None:
    if row_tokens < 2:
        raise UsageError(
            f"row_tokens is {row_tokens}, expected 2 or more: the first token of a row predicts the second"
        )
    if rows < 1:
        raise UsageError(f"rows is {rows}, expected 1 or more")
    if rows * row_tokens > _MAX_TOKENS:
        raise UsageError(
            f"{rows:,} rows of {row_tokens:,} tokens are {rows * row_tokens:,} tokens, at most {_MAX_TOKENS:,} fit; "
            "ask for fewer or shorter rows"
        )


def _require_vocabulary(found: int, limit: int | None, rows: int, row_tokens: int) -> None:
    if limit is not None and found > limit:
        raise UsageError(
            f"{rows} rows of {row_tokens} tokens hold {found} distinct tokens, the model's vocab_size is {limit}; "
            "ask for fewer or shorter rows, or raise vocab_size"
        )
