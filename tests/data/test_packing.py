from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.data.chat import Document
from openrecipes.data.packing import Packer, pack

SEPARATOR = 99
DOCUMENTS = st.lists(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 1)), min_size=1, max_size=12).map(
        lambda pairs: Document(ids=[id for id, _ in pairs], loss_mask=[target for _, target in pairs])
    ),
    max_size=12,
)


@given(DOCUMENTS, st.integers(2, 7))
def test_rows_are_consecutive_cuts_of_the_stream(documents, row_tokens):
    ids: list[int] = []
    mask: list[int] = []
    for number, document in enumerate(documents):
        ids += ([SEPARATOR] if number else []) + document.ids
        mask += ([0] if number else []) + document.loss_mask
    cuts = range(0, len(ids) - row_tokens + 1, row_tokens)
    kept = [cut for cut in cuts if any(mask[cut + 1 : cut + row_tokens])]

    packed = pack(documents, separator=SEPARATOR, row_tokens=row_tokens, rows=10**6)
    assert packed.ids.tolist() == [ids[cut : cut + row_tokens] for cut in kept]
    assert packed.loss_mask.tolist() == [mask[cut : cut + row_tokens] for cut in kept]
    assert packed.rows_without_targets == len(cuts) - len(kept)
    assert packed.documents == len(documents)
    assert (packed.ids.dtype, packed.loss_mask.dtype) == (np.int32, np.uint8)


@given(DOCUMENTS, st.integers(2, 7), st.integers(1, 5))
def test_fewer_rows_are_a_prefix_of_more(documents, row_tokens, rows):
    everything = pack(documents, separator=SEPARATOR, row_tokens=row_tokens, rows=10**6)
    some = pack(documents, separator=SEPARATOR, row_tokens=row_tokens, rows=rows)
    np.testing.assert_array_equal(some.ids, everything.ids[:rows])


def test_no_more_documents_are_read_than_needed():
    read = []

    def documents():
        for number in range(100):
            read.append(number)
            yield Document(ids=[number] * 10, loss_mask=[1] * 10)

    packed = pack(documents(), separator=SEPARATOR, row_tokens=4, rows=3)
    assert packed.ids.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 99, 1]]
    assert read == [0, 1]


def test_a_target_in_the_first_place_only_trains_nothing():
    documents = [Document(ids=[1, 2], loss_mask=[1, 0]), Document(ids=[5, 6], loss_mask=[0, 1])]
    packed = pack(documents, separator=SEPARATOR, row_tokens=2, rows=9)
    assert packed.ids.tolist() == []
    assert packed.rows_without_targets == 2


@given(DOCUMENTS, st.integers(2, 7), st.booleans(), st.booleans())
def test_a_stream_of_rows_carries_eos_starts_and_first_tokens(documents, row_tokens, supervised, clear_first):
    stream: list[tuple[int, int, bool]] = []  # id, target, begins a document
    for number, document in enumerate(documents):
        if number:
            stream.append((SEPARATOR, int(supervised), False))
        pairs = zip(document.ids, document.loss_mask, strict=True)
        stream += [(id, target, place == 0) for place, (id, target) in enumerate(pairs)]
    cuts = [stream[cut : cut + row_tokens] for cut in range(0, len(stream) - row_tokens + 1, row_tokens)]
    kept = [cut for cut in cuts if any(target for _, target, _ in cut[1:])]

    packer = Packer(eos=SEPARATOR, eos_supervised=supervised, row_tokens=row_tokens, clear_first=clear_first)
    rows = [row for document in documents for row in packer.add(document)]
    assert [row.ids.tolist() for row in rows] == [[id for id, _, _ in cut] for cut in kept]
    expected = [[0 if clear_first else cut[0][1]] + [target for _, target, _ in cut[1:]] for cut in kept]
    assert [row.loss_mask.tolist() for row in rows] == expected
    starts = [[place for place, (_, _, begins) in enumerate(cut) if begins] for cut in kept]
    assert [row.doc_starts.tolist() for row in rows] == starts
    assert packer.rows_without_targets == len(cuts) - len(kept)
