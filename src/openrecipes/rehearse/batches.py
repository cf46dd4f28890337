"""Which rows a rank trains on, in which micro-batch of which step."""

from __future__ import annotations

import numpy as np

from openrecipes.errors import UsageError

_SHUFFLE_SEED = 20261201


def row_schedule(
    *, rows: int, steps: int, global_batch: int, row_order: str = "natural", shuffled: bool = False
) -> np.ndarray:
    """Row numbers [steps, global_batch]: the rows in order, each used once.

    `row_order` is `natural`, or `reversed` to take the rows of each global batch backwards. `shuffled`
    permutes the rows among the steps.

    Raises:
        UsageError: there are too few rows, or the order is unknown.
    """
    needed = steps * global_batch
    if rows < needed:
        raise UsageError(f"{steps} steps of {global_batch} rows need {needed} rows, but the rows folder holds {rows}")
    numbers = np.arange(needed)
    if shuffled:
        numbers = np.random.default_rng(_SHUFFLE_SEED).permutation(numbers)
    schedule = numbers.reshape(steps, global_batch)
    if row_order == "reversed":
        return schedule[:, ::-1]
    if row_order == "natural":
        return schedule
    raise UsageError(f"row_order is {row_order!r}, expected natural or reversed")


def microbatches(step_rows: np.ndarray, *, dp: int, dp_rank: int, rows_per_microbatch: int) -> np.ndarray:
    """Row numbers [micro-batches, rows_per_microbatch] of one data-parallel rank: its block of the global batch."""
    block = np.split(step_rows, dp)[dp_rank]
    return block.reshape(-1, rows_per_microbatch)


def targets(ids: np.ndarray, loss_mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and their mask, both of the shape [rows, row_tokens] of `ids`.

    Position t predicts token t + 1 and counts where `loss_mask[t + 1]` is 1. The last position of a row
    has nothing to predict and never counts.
    """
    labels = np.roll(ids, -1, axis=1)
    counted = np.roll(loss_mask, -1, axis=1)
    counted[:, -1] = 0
    return labels, counted
