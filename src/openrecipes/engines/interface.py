"""What every engine says about a command, in the terms of a recipe's fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from openrecipes.engines.words import Word
from openrecipes.errors import Severity

if TYPE_CHECKING:
    from openrecipes.recipe.fields import Recipe


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordProblem:
    """Something wrong with one word of a command."""

    message: str
    remedy: str
    at: Word
    severity: Severity = Severity.ERROR


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One field as the entry states it and as the command gives it.

    `because` says where the command's value comes from: a flag as written, or the trainer's default.
    `at` is the word it stands at, None where no word does. `certain` is False where the value is a
    default and something outside the text could still give the flag.
    """

    field: str
    stated: object
    found: object
    because: str
    at: Word | None = None
    certain: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """What a command says: the settled fields, the fields it leaves open (with the reason), and its faults."""

    settings: tuple[Setting, ...] = ()
    open: tuple[tuple[str, str], ...] = ()
    problems: tuple[WordProblem, ...] = ()


class Engine(Protocol):
    """A trainer, as far as its command goes."""

    name: str
    """First word of `stack.framework`."""

    command: str
    """What its training command looks like, for messages."""

    def recognises(self, words: Sequence[Word]) -> bool:
        """Whether these words start a training run of this engine."""
        ...

    def launch_problems(self, words: Sequence[Word]) -> tuple[WordProblem, ...]:
        """Why these words cannot start anything, whatever their flags say."""
        ...

    def read(self, words: Sequence[Word], recipe: Recipe) -> Reading:
        """The fields that the command decides, beside what `recipe` states."""
        ...
