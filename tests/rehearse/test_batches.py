import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.errors import UsageError
from openrecipes.rehearse.batches import microbatches, row_schedule, targets


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5), st.sampled_from(["natural", "reversed"]), st.booleans())
def test_every_row_is_used_once_whatever_the_layout(dp, rows_per_microbatch, count, row_order, shuffled):
    steps, global_batch = 3, dp * rows_per_microbatch * count
    schedule = row_schedule(
        rows=steps * global_batch + 1, steps=steps, global_batch=global_batch, row_order=row_order, shuffled=shuffled
    )
    used = [
        microbatches(step, dp=dp, dp_rank=rank, rows_per_microbatch=rows_per_microbatch)
        for step in schedule
        for rank in range(dp)
    ]
    assert all(part.shape == (count, rows_per_microbatch) for part in used)
    assert sorted(np.concatenate(used).ravel()) == list(range(steps * global_batch))


def test_reversed_order_keeps_the_rows_of_a_step_and_shuffling_does_not():
    natural, backwards, shuffled = (
        row_schedule(rows=32, steps=4, global_batch=8, **how)
        for how in ({}, {"row_order": "reversed"}, {"shuffled": True})
    )
    assert (np.sort(backwards) == natural).all()
    assert not (backwards == natural).any()
    assert (np.sort(shuffled) != natural).any(axis=1).all()


def test_too_few_rows_and_an_unknown_order_are_refused():
    with pytest.raises(UsageError, match="20 steps of 8 rows need 160 rows, but the rows folder holds 159"):
        row_schedule(rows=159, steps=20, global_batch=8)
    with pytest.raises(UsageError, match="row_order is 'random', expected natural or reversed"):
        row_schedule(rows=8, steps=1, global_batch=8, row_order="random")


def test_a_position_predicts_the_next_token_and_the_last_one_nothing():
    labels, counted = targets(np.array([[5, 6, 7]]), np.array([[1, 0, 1]], dtype=np.uint8))
    assert labels[0, :2].tolist() == [6, 7]
    assert counted.tolist() == [[0, 1, 0]]
