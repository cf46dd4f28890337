"""slime rollout over rows that are tokens already: `--rollout-function-path pretokenized_sft_rollout.generate_rollout`.

It reads the rows of `openrecipes data build` (`--prompt-data DIR/rows.parquet --input-key messages
--metadata-key metadata --n-samples-per-prompt 1`) in the order of the file. Nothing is rendered, tokenized or
shuffled; a row that is not what the recipe promises stops the run with its number.

A row's metadata holds `input_ids` and `loss_mask`, equally long; `loss_mask[t]` is 1 where token t is a target.
slime trains on the end of a row, from its first target: `response_length` counts from there, and `loss_mask` is
that long. The interface is slime's (`slime/rollout/base_types.py`, `slime/utils/types.py` of THUDM/slime, read
2026-12-01). This module needs slime and nothing of OpenRecipes, so that it can be put on any worker's PYTHONPATH.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slime.rollout.base_types import RolloutFnTrainOutput  # type: ignore[import-not-found]
from slime.utils.types import Sample  # type: ignore[import-not-found]


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> RolloutFnTrainOutput:
    """The samples of one step, in the data source's order, and the step's token counts.

    Raises:
        ValueError: the options do not fit such rows, or a row is not what the recipe promises.
    """
    if evaluation:
        raise ValueError("rows of tokens hold no evaluation set; leave --eval-interval out")
    if args.n_samples_per_prompt != 1:
        raise ValueError(f"--n-samples-per-prompt is {args.n_samples_per_prompt}, expected 1: a row is trained on once")
    if getattr(args, "rollout_shuffle", False):
        raise ValueError("--rollout-shuffle would change the order that the recipe names; leave it out")
    groups = data_source.get_samples(args.rollout_batch_size)
    samples = [sample for group in groups for sample in group]
    for sample in samples:
        _fill(sample, vocab_size=getattr(args, "vocab_size", None))
    lengths = {len(sample.tokens) for sample in samples}
    if len(lengths) > 1:
        raise ValueError(f"rows of step {rollout_id} have {sorted(lengths)} tokens, expected one length")
    tokens = sum(len(sample.tokens) for sample in samples)
    supervised = sum(sum(sample.loss_mask) for sample in samples)
    metrics = {
        "rollout/rows": len(samples),
        "rollout/tokens": tokens,
        "rollout/supervised_tokens": supervised,
        "rollout/supervised_token_ratio": supervised / tokens if tokens else 0.0,
    }
    return RolloutFnTrainOutput(samples=groups, metrics=metrics)


def _fill(sample: Sample, *, vocab_size: int | None) -> None:
    """Turn a row's metadata into what slime trains on."""
    where = f"row {_number(sample)}"
    ids, mask = _numbers(sample.metadata, "input_ids", where), _numbers(sample.metadata, "loss_mask", where)
    if len(ids) != len(mask):
        raise ValueError(f"{where} has {len(ids)} tokens and {len(mask)} mask values")
    if not set(mask) <= {0, 1}:
        raise ValueError(f"{where} has mask values other than 0 and 1")
    if vocab_size and not 0 <= min(ids) <= max(ids) < vocab_size:
        raise ValueError(f"{where} has ids from {min(ids)} to {max(ids)}, the vocabulary has {vocab_size} entries")
    if mask[0]:
        raise ValueError(f"{where} has its first token as a target, which nothing predicts")
    if 1 not in mask:
        raise ValueError(f"{where} has no target")
    first_target = mask.index(1)
    sample.tokens = ids
    sample.response_length = len(ids) - first_target
    sample.loss_mask = mask[first_target:]
    sample.reward = 0  # slime averages rewards, and None has no mean
    sample.status = Sample.Status.COMPLETED
    sample.prompt = ""  # the text is not needed, and a row travels to its rank
    sample.metadata = {key: sample.metadata[key] for key in ("source_name", "row") if key in sample.metadata}


def _number(sample: Sample) -> object:
    found = sample.metadata.get("row") if isinstance(sample.metadata, Mapping) else None
    return sample.index if found is None else found


def _numbers(metadata: Any, key: str, where: str) -> list[int]:
    found = metadata.get(key) if isinstance(metadata, Mapping) else None
    if not isinstance(found, Sequence) or isinstance(found, str) or not found:
        raise ValueError(f"{where} has no `{key}` in its metadata; give --metadata-key metadata and a file of rows")
    return list(map(int, found))
