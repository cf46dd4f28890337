"""A fact: a number with the place and the date it was read, or null with the reason.

Each YAML file of this package names its sources once and refers to them by key, so that a hundred
values from one page need its address once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import resources
from typing import Any

import yaml


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fact:
    """A sourced number, or None with the reason it is unknown.

    `source` is a URL and `date` (ISO) the day it was read; both are None exactly when `value` is.
    """

    value: float | None
    source: str | None = None
    date: str | None = None
    note: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        sourced = self.source is not None and self.date is not None
        if (self.value is not None) != sourced or (self.value is None) != (self.reason is not None):
            raise ValueError(f"a fact needs a value, a source and a date, or null and a reason: {self}")

    def __str__(self) -> str:
        """The value with where and when it was read, or the reason it is unknown."""
        if self.value is None:
            return f"unknown: {self.reason}"
        note = f"; {self.note}" if self.note else ""
        return f"{self.value:.10g} (read {self.date} at {self.source}{note})"


def read_fact(entry: Mapping[str, Any], sources: Mapping[str, Mapping[str, str]]) -> Fact:
    """Turn `{value, source: KEY, note?}` or `{value: null, reason}` into a fact.

    Raises:
        ValueError: when the value is no positive number or the source is not listed.
    """
    value, key = entry["value"], entry.get("source")
    if value is None:
        return Fact(value=None, reason=entry.get("reason"))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{value!r} is not a positive number")
    if not isinstance(key, str) or key not in sources:
        raise ValueError(f"source {key!r} is not one of {', '.join(sources)}")
    return Fact(value=value, source=sources[key]["url"], date=sources[key]["date"], note=entry.get("note"))


def read_yaml(name: str) -> dict[str, Any]:
    """The YAML file `name` of this package, such as `gpus.yaml`."""
    text = resources.files("openrecipes.facts").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=yaml.CSafeLoader)
