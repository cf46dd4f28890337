"""What was counted while rows were made, and the histograms that the report draws."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import numpy as np

from openrecipes.data.packing import Row
from openrecipes.data.rows import RowsHash

# Upper edges of the histograms: conversations by their tokens in powers of two, rows by supervised share in twentieths.
_TOKEN_EDGES = [0, *(2**power for power in range(3, 24))]
_SHARES = 20


class RowCounts:
    """Everything that the rows themselves say: counts and hashes. A build fills it in, a verification again."""

    def __init__(self, row_tokens: int) -> None:
        self._row_tokens = row_tokens
        self._rows_hash = RowsHash(row_tokens)
        self._starts_hash = hashlib.sha256()
        self._shares = np.zeros(_SHARES, dtype=np.int64)
        self.rows = 0
        self.supervised_tokens = 0

    def add(self, row: Row) -> None:
        """Count a row."""
        supervised = int(row.loss_mask.sum())
        self.rows += 1
        self.supervised_tokens += supervised
        self._shares[min(supervised * _SHARES // self._row_tokens, _SHARES - 1)] += 1
        self._rows_hash.add(row.ids, row.loss_mask)
        self._starts_hash.update(len(row.doc_starts).to_bytes(4, "little"))
        self._starts_hash.update(row.doc_starts.astype("<i4").tobytes())

    def to_json(self) -> dict[str, Any]:
        """The manifest's entries."""
        tokens = self.rows * self._row_tokens
        return {
            "rows": self.rows,
            "row_tokens": self._row_tokens,
            "tokens": tokens,
            "supervised_tokens": self.supervised_tokens,
            "supervised_token_ratio": round(self.supervised_tokens / tokens, 6) if tokens else None,
            "row_supervised_ratio": {
                "edges": [number / _SHARES for number in range(_SHARES + 1)],
                "counts": self._shares.tolist(),
            },
            "rows_sha256": self._rows_hash.hexdigest(),
            "doc_starts_sha256": self._starts_hash.hexdigest(),
        }


class ConversationCounts:
    """What became of the conversations that were read, in the permutation's order."""

    def __init__(self) -> None:
        self.used = 0
        self.tokens = 0
        self.rejected: Counter[str] = Counter()
        self._lengths = np.zeros(len(_TOKEN_EDGES), dtype=np.int64)

    @property
    def read(self) -> int:
        """How many places of the permutation were looked at."""
        return self.used + self.rejected.total()

    def use(self, tokens: int) -> None:
        """Count a conversation that became a document of `tokens` tokens."""
        self.used += 1
        self.tokens += tokens
        self._lengths[np.searchsorted(_TOKEN_EDGES, tokens, side="right") - 1] += 1

    def to_json(self, in_source: int) -> dict[str, Any]:
        """The manifest's entry `conversations`."""
        return {
            "in_source": in_source,
            "read": self.read,
            "used": self.used,
            "rejected": dict(sorted(self.rejected.items())),
            "tokens": {"edges": [*_TOKEN_EDGES, None], "counts": self._lengths.tolist()},
        }
