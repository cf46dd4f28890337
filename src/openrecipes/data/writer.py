"""The one ordered writer: blocks in, rows out, in the permutation's order and no further than needed."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from openrecipes.data.blocks import Rejected, read_block
from openrecipes.data.counts import ConversationCounts, RowCounts
from openrecipes.data.formats import RowWriter
from openrecipes.data.packing import Packer
from openrecipes.errors import ContentError, Finding, Severity, UsageError

REJECTIONS = "rejections.jsonl"
_SHOWN = 10


class Progress(Protocol):
    """Told what goes on; the library itself prints nothing."""

    def phase(self, text: str) -> None:
        """A stage began."""
        ...

    def rows(self, done: int, total: int, row_tokens: int) -> None:
        """So many rows are written."""
        ...


class OrderedWriter:
    """Packs documents as they come and writes the rows; says when there are enough, and how many blocks that takes."""

    def __init__(
        self, *, packer: Packer, writer: RowWriter, rows: int, row_tokens: int, max_rejected: int, progress: Progress
    ) -> None:
        self._packer = packer
        self._writer = writer
        self._wanted = rows
        self._row_tokens = row_tokens
        self._max_rejected = max_rejected
        self._progress = progress
        self._rejected: list[Rejected] = []
        self.rows = RowCounts(row_tokens)
        self.conversations = ConversationCounts()

    @property
    def rows_without_targets(self) -> int:
        """How many rows were cut and left out."""
        return self._packer.rows_without_targets

    def blocks_needed(self, block_size: int) -> int | None:
        """How many blocks all rows will take, by the conversations so far; None before the first."""
        tokens = self.conversations.tokens + self.conversations.used
        if not tokens:
            return None
        wanted = (self._wanted + self.rows_without_targets) * self._row_tokens
        return math.ceil(wanted * self.conversations.read / tokens / block_size)

    def write(self, blocks: Iterable[Path]) -> None:
        """Write all rows.

        Raises:
            ContentError: more conversations are rejected than allowed, or a block is damaged.
            UsageError: the blocks end before there are enough rows.
        """
        for path in blocks:
            for found in read_block(path):
                if isinstance(found, Rejected):
                    self._reject(found)
                    continue
                self.conversations.use(len(found.ids))
                for row in self._packer.add(found):
                    self._writer.write(row)
                    self.rows.add(row)
                    if self.rows.rows == self._wanted:
                        self._writer.close()
                        self._progress.rows(self._wanted, self._wanted, self._row_tokens)
                        return
            self._progress.rows(self.rows.rows, self._wanted, self._row_tokens)
        raise UsageError(
            f"the source gives {self.rows.rows} rows of {self._row_tokens} tokens, {self._wanted} were asked for: "
            f"{self.conversations.used} of its {self.conversations.read} conversations were usable, "
            f"{self.rows_without_targets} rows had no target; ask for fewer or shorter rows "
            "(the finished blocks are kept)"
        )

    def write_rejections(self, folder: Path) -> dict[str, Any]:
        """List every rejected conversation in a file of its own; returns the manifest's entry."""
        lines = [json.dumps(dataclasses.asdict(one), ensure_ascii=False) + "\n" for one in self._rejected]
        (folder / REJECTIONS).write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
        first = [f"{one.where}: {one.kind}" for one in self._rejected[:_SHOWN]]
        return {"file": REJECTIONS, "count": len(lines), "first": first, "allowed": self._max_rejected}

    def _reject(self, rejected: Rejected) -> None:
        self._rejected.append(rejected)
        self.conversations.rejected[rejected.kind] += 1
        if len(self._rejected) > self._max_rejected:
            raise ContentError(self._findings())

    def _findings(self) -> list[Finding]:
        count, limit = len(self._rejected), self._max_rejected
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.conversations.rejected.items()))
        summary = (
            f"{count} of the first {self.conversations.read} conversations are unusable ({kinds}), {limit} allowed"
        )
        more = f"mend the source, or raise --max-rejected above {limit}: the finished blocks are kept"
        found = [
            _finding("F010", f"{one.kind}: {one.detail}", "mend or remove this conversation", Path(one.where))
            for one in self._rejected[-_SHOWN:]
        ]
        return [*found, _finding("F011", summary, more)]


def _finding(id: str, message: str, remedy: str, path: Path | None = None) -> Finding:
    return Finding(id=id, severity=Severity.ERROR, message=message, remedy=remedy, path=path)
