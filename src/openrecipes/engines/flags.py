"""The flags of a command line, read as Python's argparse reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from openrecipes.engines.words import Word, split_first


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flag:
    """`--name VALUE...` or `--name=VALUE`; `at` is the word that holds the name."""

    name: str
    values: tuple[Word, ...]
    at: Word

    @property
    def text(self) -> str:
        """The flag as written, with the values that follow it."""
        return " ".join([self.at.source, *(value.source for value in self.values if value.start != self.at.start)])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags:
    """All flags in the order of the text. `may_hold_more` are words that could become any flag, as `${ARGS[@]}`."""

    flags: tuple[Flag, ...]
    may_hold_more: tuple[Word, ...]

    def last(self, name: str) -> Flag | None:
        """The flag of this name that counts: argparse keeps the last one and says nothing."""
        return next((flag for flag in reversed(self.flags) if flag.name == name), None)

    def repeated(self) -> list[tuple[Flag, Flag]]:
        """Each flag that overrides an earlier one of the same name with other values: (earlier, later)."""
        seen: dict[str, Flag] = {}
        found = []
        for flag in self.flags:
            earlier = seen.get(flag.name)
            if earlier and [word.text for word in earlier.values] != [word.text for word in flag.values]:
                found.append((earlier, flag))
            seen[flag.name] = flag
        return found


def read_flags(words: Sequence[Word], switches: Collection[str] = ()) -> Flags:
    """Split words into flags and their values; `switches` are the flags that take no value.

    A word that a shell may turn into several is a value where it follows a flag that takes one, and
    otherwise could hold any flag at all. An array always could.
    """
    flags: list[Flag] = []
    may_hold_more: list[Word] = []
    for word in words:
        name, value = split_first(word, "=")
        if name.startswith("--") and len(name) > 2:
            flags.append(Flag(name=name, values=(value,) if value else (), at=word))
        elif word.may_be_several and not _is_value(word, flags, switches):
            may_hold_more.append(word)
        elif flags:
            flags[-1] = dataclasses.replace(flags[-1], values=(*flags[-1].values, word))
    return Flags(flags=tuple(flags), may_hold_more=tuple(may_hold_more))


def _is_value(word: Word, flags: Sequence[Flag], switches: Collection[str]) -> bool:
    if not flags or word.is_array:
        return False
    return not flags[-1].values and flags[-1].name not in switches
