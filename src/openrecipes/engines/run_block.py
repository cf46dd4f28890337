"""The `run` block of an entry: its script, its training commands, and where a word stands in the file."""

from __future__ import annotations

import dataclasses
import functools

from openrecipes.engines.interface import Engine, WordProblem
from openrecipes.engines.registry import engine_of
from openrecipes.engines.shell import Script, parse_script
from openrecipes.engines.values import SettledCommand, settle
from openrecipes.errors import Finding
from openrecipes.recipe.checkable import Case


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunBlock:
    """A parsed `run` block. `engine` is None where the entry names none whose commands are read."""

    script: Script
    commands: tuple[SettledCommand, ...]
    engine: Engine | None

    @functools.cached_property
    def training(self) -> tuple[SettledCommand, ...]:
        """The commands that start a training run."""
        engine = self.engine
        return () if engine is None else tuple(c for c in self.commands if engine.recognises(c.words))

    @property
    def only(self) -> SettledCommand | None:
        """The training command where there is exactly one and the whole script could be read."""
        return self.training[0] if len(self.training) == 1 and not self.script.problems else None


def read_run_block(case: Case) -> RunBlock:
    """Parse an entry's `run` text; nothing in it is run."""
    return _parsed(case.recipe.run, engine_of(case.recipe))


@functools.lru_cache(maxsize=1)  # several checks in a row look at the script of one entry
def _parsed(run: str, engine: Engine | None) -> RunBlock:
    script = parse_script(run)
    return RunBlock(script=script, commands=() if script.problems else settle(script), engine=engine)


def word_finding(case: Case, id: str, problem: WordProblem) -> Finding:
    """The finding of a word's problem, at the word's place in the file."""
    return at_place(
        case,
        case.finding(id, "run", problem.message, problem.remedy, severity=problem.severity),
        line=problem.at.line,
        column=problem.at.column,
    )


def at_place(case: Case, finding: Finding, *, line: int, column: int) -> Finding:
    """Move a finding about `run` to where this line and column of the script stand in the file.

    In a literal block (`run: |`) the script's lines are lines of the file, indented. In any other style
    they are not, and the finding stays at the field.
    """
    place = case.places.get("run")
    if place is None or place.line is None:
        return finding
    written = _file_line(case, place.line + line)
    script = case.recipe.run.split("\n")
    text = script[line - 1] if line <= len(script) else ""
    indent = len(written) - len(text)
    if not text or not written.endswith(text) or written[:indent].strip(" "):
        return finding
    return dataclasses.replace(finding, line=place.line + line, column=column + indent)


def _file_line(case: Case, number: int) -> str:
    """A line of the entry's file, counted from 1; empty where the file cannot be read any more."""
    try:
        lines = case.path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return ""
    return lines[number - 1] if number <= len(lines) else ""
