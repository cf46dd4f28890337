"""A change made to one layout of a text, carried over to another layout of the same text."""

from __future__ import annotations

from difflib import SequenceMatcher


def merge_lines(text: str, before: str, after: str) -> str | None:
    """`text` with the change from `before` to `after`, where `before` is `text` in another layout.

    A YAML writer lays some lines out anew although their values are the same: a wrapped value, spaces in
    a flow list. The change is therefore taken line by line, and lines outside it stay as `text` has them,
    line ends included. None where the change touches a line that `text` lays out differently.
    """
    if before == text:
        return after
    lines = text.split("\n")
    end = "\r" if lines[0].endswith("\r") else ""
    old, new = before.split("\n"), after.split("\n")
    place = _same_lines(old, [line.removesuffix("\r") for line in lines])
    merged: list[str] = []
    copied = 0
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        touched = range(i1, i2) if i2 > i1 else range(i1 - 1, i1)
        if any(i not in place for i in touched):
            return None
        first = place[i1] if i2 > i1 else place[i1 - 1] + 1
        if i2 > i1 and place[i2 - 1] - first != i2 - 1 - i1:
            return None
        merged += lines[copied:first]
        merged += [line + end for line in new[j1:j2]]
        copied = first + (i2 - i1)
    return "\n".join(merged + lines[copied:])


def _same_lines(old: list[str], lines: list[str]) -> dict[int, int]:
    """For each line of `old` that `lines` has too, its index there; in order."""
    blocks = SequenceMatcher(None, old, lines, autojunk=False).get_matching_blocks()
    return {a + i: b + i for a, b, size in blocks for i in range(size)}
