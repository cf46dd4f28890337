"""The rules a recipe file and its evidence must keep before any check looks at them.

Each finding of the reader, the typed fields and the evidence carries one of these ids, and
`openrecipes explain D105` prints the text.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule's title and the reason it exists."""

    title: str
    reason: str


RULES = {
    "D101": Rule(
        "a recipe is at most 1 MiB",
        "An entry is some ten kilobytes. A larger file is something else, and is refused without being read.",
    ),
    "D102": Rule(
        "a recipe is UTF-8 text",
        "Binary files, other encodings and byte order marks are refused, so that every tool sees the same characters.",
    ),
    "D103": Rule("a recipe is well-formed YAML", "The place is where the YAML parser could go no further."),
    "D104": Rule(
        "a recipe is one mapping of fields",
        "One file is one recipe: not empty, not a list, not several documents.",
    ),
    "D105": Rule(
        "a key stands once in its mapping",
        "Most YAML readers keep the last of two equal keys in silence, so a reader of the text and a program "
        "would see different recipes.",
    ),
    "D106": Rule(
        "nesting and aliases stay small",
        "A few lines of nested aliases can expand to gigabytes. Depth and expanded size are bounded instead.",
    ),
    "D107": Rule(
        "no tags, merge keys or compound keys",
        "They let a text mean something else than it shows. The fields alone decide what kind of value is read.",
    ),
    "D108": Rule(
        "every field is known", "An unknown key is nearly always a misspelt one, and would be without effect."
    ),
    "D109": Rule(
        "every field is there",
        "What is unknown is written as null with its reason, so that a gap is seen to be meant.",
    ),
    "D110": Rule(
        "a field holds its kind of value",
        "Text keeps its characters as written. A number is plain digits and never quoted; true and false are the "
        "only flags.",
    ),
    "D111": Rule("a value is within its range", "The value has the right kind and cannot be meant."),
    "D201": Rule(
        "the evidence manifest can be read",
        "The manifest is a regular file below the entry's folder, so that entry and evidence move together.",
    ),
    "D202": Rule(
        "the evidence manifest is unaltered",
        "The entry carries the manifest's SHA-256 and the manifest those of its files: one hash pins everything.",
    ),
    "D203": Rule("the evidence manifest is well-formed", "docs/design.md, section Evidence, has the format."),
    "D204": Rule(
        "evidence stays below its manifest",
        "A path with `..`, a leading `/` or a link out of the folder would make any file of this machine evidence.",
    ),
    "D205": Rule("a file stands once in the manifest", "Two entries for one path could name two hashes for it."),
    "D206": Rule("every evidence file is there", "The manifest names a file that is not below its folder."),
    "D207": Rule(
        "every evidence file is unaltered",
        "What is recomputed from evidence counts only if the bytes are those that were recorded.",
    ),
    "V000": Rule(
        "the claimed status is no higher than the level",
        "`status` is what the author claims, the level what the evidence supports. Both are shown, and a claim "
        "above the level is a warning.",
    ),
}
