"""Finding an entry by name whatever its case, and what to suggest when there is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def find(name: str, table: Mapping[str, T]) -> T | None:
    """The entry of `table` whose key is `name` but for case, or None."""
    wanted = name.casefold()
    return next((entry for key, entry in table.items() if key.casefold() == wanted), None)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`did you mean X?` for the closest of `names`, or the list of all of them when none is close."""
    by_case = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name.casefold(), by_case, n=1)
    return f"did you mean `{by_case[close[0]]}`?" if close else f"known are {', '.join(by_case.values())}"
