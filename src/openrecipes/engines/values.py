"""What a script itself decides: variables it assigned, arrays it filled, the environment of its commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from openrecipes.engines.shell import Assignment, Command, Script
from openrecipes.engines.words import Part, PartKind, Word

_BLANKS = " \t\n"
# These run other text in the same shell, which may assign anything.
_RUN_OTHER_TEXT = {"source", ".", "eval"}
# These assign to the variables that they are given by name.
_ASSIGN_BY_NAME = {"read", "mapfile", "readarray", "printf", "getopts", "let"}
# Set by the shell or by every login, so that a command may read them without asking for anything.
_ALWAYS_SET = {"HOME", "PATH", "PWD", "USER", "HOSTNAME", "UID", "EUID", "SHELL", "IFS", "RANDOM", "SECONDS", "LINENO"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettledCommand:
    """A command after the variables that the script settles were put in.

    `environment` holds what the script exports to it: the text, None where it is exported without a value.
    `others_may_export` is True where text that is not in the script ran before (`source FILE`).
    """

    words: tuple[Word, ...]
    environment: dict[str, Word | None]
    others_may_export: bool
    command: Command


def settle(script: Script) -> tuple[SettledCommand, ...]:
    """Put what the script assigned into the words of its commands, in the order of the text.

    A variable stays one where its value is not certain: it is assigned under a condition, in a loop or in a
    function anywhere in the script, or `source` ran before, whose file may assign anything.
    """
    scope = _Scope(unsettled=frozenset(a.name for a in _assignments(script) if not a.certain))
    settled = []
    for statement in script.statements:
        if isinstance(statement, Assignment):
            scope.assign(statement)
            continue
        words = tuple(scope.expand(statement.words))
        settled.append(
            SettledCommand(
                words=words,
                environment=scope.environment(statement.assignments),
                others_may_export=scope.ran_other_text,
                command=statement,
            )
        )
        if words and words[0].value in _RUN_OTHER_TEXT:
            scope.forget()
        elif words and words[0].value in _ASSIGN_BY_NAME:
            scope.forget_names(word.text for word in words[1:])
        elif not words:
            for assignment in statement.assignments:
                scope.assign(assignment)
    return tuple(settled)


def outside_variables(script: Script) -> tuple[str, ...]:
    """The variables that the script reads and never assigns, in the order of their first use."""
    own = {assignment.name for assignment in _assignments(script)}
    return tuple(name for name in script.variables_read if name not in own and name not in _ALWAYS_SET)


def _assignments(script: Script) -> Iterator[Assignment]:
    return (statement for statement in script.statements if isinstance(statement, Assignment))


class _Scope:
    """The variables of the shell at one point of the script; a name that is absent is not settled."""

    def __init__(self, *, unsettled: frozenset[str]) -> None:
        self.unsettled = unsettled
        self.texts: dict[str, str] = {}
        self.arrays: dict[str, tuple[Word, ...]] = {}
        self.exported: dict[str, Word | None] = {}
        self.last: dict[str, Word] = {}
        self.ran_other_text = False

    def forget(self) -> None:
        self.texts.clear()
        self.arrays.clear()
        self.ran_other_text = True

    def forget_names(self, names: Iterable[str]) -> None:
        for name in names:
            self.texts.pop(name, None)
            self.arrays.pop(name, None)

    def assign(self, statement: Assignment) -> None:
        name = statement.name
        settled = name not in self.unsettled and not statement.append
        given = statement.value is not None or statement.elements is not None
        if given or statement.unset:
            self.forget_names([name])
        if statement.value is not None:
            value = self._in_assignment(statement.value)
            self.last[name] = value
            if settled and value.value is not None:
                self.texts[name] = value.value
            if name in self.exported:
                self.exported[name] = value
        elif statement.elements is not None and settled:
            self.arrays[name] = tuple(self.expand(statement.elements))
        if statement.exported is False:
            self.exported.pop(name, None)
        elif statement.exported:
            self.exported[name] = self.last.get(name)

    def environment(self, before_command: Sequence[Assignment]) -> dict[str, Word | None]:
        own = {a.name: self._in_assignment(a.value) for a in before_command if a.value is not None}
        return {**self.exported, **own}

    def expand(self, words: Sequence[Word]) -> Iterator[Word]:
        """The words a shell would make of these, as far as the script settles them."""
        for word in words:
            only = word.parts[0] if len(word.parts) == 1 else None
            if only and only.kind is PartKind.ARRAY and only.name in self.arrays:
                yield from self.arrays[only.name]
                continue
            if only and only.kind is PartKind.VARIABLE and not only.quoted and only.name in self.texts:
                for field in self.texts[only.name].split():
                    kind = PartKind.PATTERN if any(c in field for c in "*?[") else PartKind.LITERAL
                    yield dataclasses.replace(word, parts=(Part(kind=kind, text=field),))
                continue
            yield self._put_in(word, splits=True)

    def _in_assignment(self, word: Word) -> Word:
        """The right side of an assignment: a shell neither splits it nor looks for files."""
        found = self._put_in(word, splits=False)
        parts = tuple(
            dataclasses.replace(part, kind=PartKind.LITERAL)
            if part.kind is PartKind.PATTERN and not part.text.startswith("~")
            else part
            for part in found.parts
        )
        return dataclasses.replace(found, parts=parts)

    def _put_in(self, word: Word, *, splits: bool) -> Word:
        if not any(part.kind is PartKind.VARIABLE and part.name in self.texts for part in word.parts):
            return word
        parts = []
        for part in word.parts:
            text = self.texts.get(part.name or "") if part.kind is PartKind.VARIABLE else None
            # Blanks and patterns in an unquoted value would make several words of it: left as it is.
            if text is None or (splits and not part.quoted and any(c in text for c in _BLANKS + "*?[")):
                parts.append(part)
            else:
                parts.append(Part(kind=PartKind.LITERAL, text=text, quoted=part.quoted))
        return dataclasses.replace(word, parts=tuple(parts))
