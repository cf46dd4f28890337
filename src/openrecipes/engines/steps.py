"""The step record: what one optimizer step left behind, whichever trainer ran it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from openrecipes.errors import ContentError, Finding, Severity


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One line of `steps.jsonl`.

    `step` counts from 0. `loss` is the mean over supervised tokens, in nats. `grad_norm` is the norm
    before clipping. `step_time_s` is wall time between consecutive step ends. `tokens` counts every
    token of the global batch, supervised or not. A non-finite loss or norm is kept as it is.
    """

    step: int
    loss: float
    grad_norm: float
    step_time_s: float
    tokens: int
    supervised_tokens: int | None = None
    peak_memory_gib: float | None = None
    rank: int | None = None

    def to_json(self) -> str:
        """The record as one line of JSON, without the optional fields that are unknown."""
        known = {k: v for k, v in dataclasses.asdict(self).items() if v is not None}
        return json.dumps(known)


_INTEGERS = {"step", "tokens", "supervised_tokens", "rank"}
_REQUIRED = {"step", "loss", "grad_norm", "step_time_s", "tokens"}
_KNOWN = {field.name for field in dataclasses.fields(StepRecord)}


def parse_step(text: str) -> StepRecord:
    """Read one JSON step record.

    Raises:
        ValueError: saying what is wrong with the text.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("a step record is a JSON object")
    if missing := sorted(_REQUIRED - found.keys()):
        raise ValueError(f"the step record lacks {', '.join(missing)}")
    if unknown := sorted(found.keys() - _KNOWN):
        raise ValueError(f"the step record has unknown keys: {', '.join(unknown)}")
    for key, value in found.items():
        kind = int if key in _INTEGERS else (int, float)
        if isinstance(value, bool) or not isinstance(value, kind):
            raise ValueError(f"{key} is {value!r}, expected a number")
        if key in _INTEGERS and not 0 <= value < 2**63:
            raise ValueError(f"{key} is {value!r}, expected a whole number of 0 or more")
        if key not in _INTEGERS:
            found[key] = _to_float(key, value)
    if not (math.isfinite(found["step_time_s"]) and found["step_time_s"] > 0):
        raise ValueError(f"step_time_s is {found['step_time_s']}, expected a positive number of seconds")
    return StepRecord(**found)


def _to_float(key: str, value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{key} is too large for a floating-point number") from None


def read_steps(path: Path, lines: Iterable[str]) -> list[StepRecord]:
    """Read the lines of a `steps.jsonl`; `path` only names the place of an error.

    Raises:
        ContentError: with one finding per line that is no step record.
    """
    records, findings = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(parse_step(line))
        except ValueError as error:
            findings.append(
                Finding(
                    id="M001",
                    severity=Severity.ERROR,
                    message=str(error),
                    remedy="each line of steps.jsonl is one JSON object as docs/design.md describes",
                    path=path,
                    line=number,
                )
            )
    if findings:
        raise ContentError(findings)
    return records


def format_steps(records: Sequence[StepRecord]) -> str:
    """The text of a `steps.jsonl` that holds these records."""
    return "".join(record.to_json() + "\n" for record in records)
