"""What a build is asked for, and what of it decides the rows."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from openrecipes.data.encode import EncodeOptions
from openrecipes.data.formats import require_format
from openrecipes.data.permutation import Permutation
from openrecipes.data.pool import WorkerChoice
from openrecipes.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """A build: what `openrecipes data build` takes.

    `workers`, `block_size` and `max_rejected` decide how the rows are made and whether, not what they are.
    """

    source: str
    encode: EncodeOptions
    row_tokens: int
    rows: int
    seed: int
    out: Path
    name: str | None = None
    eos_token: str = "<|endoftext|>"
    eos_supervised: bool = False
    format: str = "parquet"
    max_rejected: int = 0
    workers: WorkerChoice = 1
    block_size: int = 256

    def __post_init__(self) -> None:
        least = {"row_tokens": 2, "rows": 1, "max_rejected": 0, "block_size": 1}
        if self.workers != "ray":
            least["workers"] = 1
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise UsageError(f"{name} is {getattr(self, name)}, expected {bound} or more")
        Permutation(0, self.seed)  # says what is wrong with the seed
        require_format(self.format)

    @property
    def source_name(self) -> str:
        """The name that the rows carry: the one given, or one made of source, shape and seed."""
        if self.name is not None:
            return self.name
        place = self.source.partition("::")[0].partition("@")[0].rstrip("/")
        stem = re.sub(r"\W+", "-", Path(place).stem).strip("-") or "rows"
        return f"{stem}-{self.rows}x{self.row_tokens}-seed{self.seed}"

    @property
    def work(self) -> Path:
        """The folder of the unfinished build, beside the finished one."""
        return self.out.absolute().with_name(f"{self.out.absolute().name}.building")

    def to_json(self) -> dict[str, Any]:
        """The options as they were given, for the manifest."""
        found = dataclasses.asdict(self)
        del found["out"]  # where the rows lie is no property of theirs
        return found
