"""Documents to rows: concatenate with a separator between them, cut every `row_tokens`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from openrecipes.data.chat import Document


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """Rows cut from a stream: `ids` int32 and `loss_mask` uint8, both [rows, row_tokens].

    `documents` were begun, `rows_without_targets` were cut and skipped, and the stream's rest, less
    than one row, is left over. There are fewer rows than asked for where the documents ran out.
    """

    ids: np.ndarray
    loss_mask: np.ndarray
    documents: int
    rows_without_targets: int


def pack(documents: Iterable[Document], *, separator: int, row_tokens: int, rows: int) -> Packed:
    """Cut `rows` rows from the documents in their order, reading no more of them than needed.

    The separator stands between documents and is no target. A row none of whose tokens from the second
    on is a target is skipped: the first token of a row is predicted by nothing.
    """
    kept_ids: list[list[int]] = []
    kept_masks: list[list[int]] = []
    ids: list[int] = []
    mask: list[int] = []
    begun = skipped = 0
    for document in documents:
        if begun:
            ids.append(separator)
            mask.append(0)
        begun += 1
        ids += document.ids
        mask += document.loss_mask
        cut = 0
        while len(ids) - cut >= row_tokens and len(kept_ids) < rows:
            row, row_mask = ids[cut : cut + row_tokens], mask[cut : cut + row_tokens]
            cut += row_tokens
            if any(row_mask[1:]):
                kept_ids.append(row)
                kept_masks.append(row_mask)
            else:
                skipped += 1
        ids, mask = ids[cut:], mask[cut:]
        if len(kept_ids) == rows:
            break
    shape = (len(kept_ids), row_tokens)
    return Packed(
        ids=np.array(kept_ids, dtype=np.int32).reshape(shape),
        loss_mask=np.array(kept_masks, dtype=np.uint8).reshape(shape),
        documents=begun,
        rows_without_targets=skipped,
    )
