"""The values of flags: given, left to a default, or open; and numbers computed from several of them."""

from __future__ import annotations

import dataclasses
import math

from openrecipes.engines.flags import Flag, Flags
from openrecipes.engines.interface import WordProblem
from openrecipes.engines.words import Word


@dataclasses.dataclass(frozen=True, kw_only=True)
class Value:
    """A flag's value, or its default, and where it comes from.

    `open` is the reason why it is not known, None where it is. `certain` is False for a default where
    something outside the text could give the flag.
    """

    value: int | str | bool | None = None
    because: str = ""
    at: Word | None = None
    certain: bool = True
    open: str | None = None

    @property
    def number(self) -> int:
        """The value of a whole number that is neither open nor None."""
        return int(self.value or 0)


class FlagValues:
    """The values of one command's flags; `problems` collects those that the trainer refuses."""

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._problems: dict[str, WordProblem] = {}

    @property
    def problems(self) -> tuple[WordProblem, ...]:
        """What was wrong with the values read so far, each flag once."""
        return tuple(self._problems.values())

    def given(self, name: str) -> Flag | None:
        """The flag of this name that counts."""
        return self._flags.last(name)

    def number(self, name: str, default: int | None) -> Value:
        """A flag of one whole number of 0 or more."""
        value = self.text(name, None if default is None else str(default))
        if value.open is not None or value.value is None:
            return value
        text = str(value.value)
        # argparse's int() takes no more than 4,300 digits, and no trainer more than a machine word.
        if text.isascii() and text.isdigit() and len(text) <= 18:
            return dataclasses.replace(value, value=int(text))
        return self._refused(name, f"{name} is `{text:.40}`, expected a whole number", f"write {name} N", value.at)

    def text(self, name: str, default: str | None) -> Value:
        """A flag of one value."""
        flag = self.given(name)
        if flag is None:
            said = "not set" if default is None else f"default {default}"
            return self._default(default, f"{name} left out ({said})")
        if not flag.values:
            return self._refused(name, f"{name} has no value", f"write {name} VALUE", flag.at)
        value = flag.values[0].value
        if value is None:
            return Value(open=f"{name} is `{flag.values[0].source:.40}`, known only outside the text")
        return Value(value=value, because=f"{name} {value:.40}", at=flag.at)

    def switch(self, name: str) -> Value:
        """A flag without a value."""
        flag = self.given(name)
        if flag is None:
            return self._default(False, f"{name} left out")
        return Value(value=True, because=name, at=flag.at)

    def _default(self, value: str | bool | None, because: str) -> Value:
        return Value(value=value, because=because, certain=not self._flags.may_hold_more)

    def _refused(self, name: str, message: str, remedy: str, at: Word | None) -> Value:
        if at is not None:
            self._problems[name] = WordProblem(message=message, remedy=remedy, at=at)
        return Value(open=message)


def product(*factors: Value) -> Value:
    """The product of whole numbers; open where one of them is open or not set."""
    return _first_open(factors) or _combined(math.prod(factor.number for factor in factors), factors, " x ")


def quotient(total: Value, parts: Value) -> Value:
    """total // parts; open where one of them is open or not set, or `parts` is 0."""
    if opened := _first_open((total, parts)):
        return opened
    if parts.number == 0:
        return Value(open=f"{parts.because} is 0")
    return _combined(total.number // parts.number, (total, parts), " / ")


def _first_open(values: tuple[Value, ...]) -> Value | None:
    for value in values:
        if value.open is not None or value.value is None:
            return Value(open=value.open or value.because)
    return None


def _combined(number: int, values: tuple[Value, ...], sign: str) -> Value:
    """A value computed from several: it stands where the first of them that was given stands."""
    return Value(
        value=number,
        because=sign.join(value.because for value in values),
        at=next((value.at for value in values if value.at), None),
        certain=all(value.certain for value in values),
    )
