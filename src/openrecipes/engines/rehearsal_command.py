"""The rehearsal's command, `openrecipes rehearse WORKLOAD --layout TEXT --ranks N --steps N [--out DIR]`."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from openrecipes.engines.flags import Flags, read_flags
from openrecipes.engines.interface import Reading, Setting, WordProblem
from openrecipes.engines.words import Word
from openrecipes.errors import UsageError
from openrecipes.recipe.parallel import Layout

if TYPE_CHECKING:
    from openrecipes.recipe.fields import Recipe

_COMMAND = "openrecipes rehearse WORKLOAD --layout TEXT --ranks N --steps N [--out DIR]"
_FLAGS = ("--layout", "--ranks", "--steps", "--out")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RehearsalCommand:
    """The command's parts; `ranks` counts processes, `steps` optimizer steps."""

    workload: str
    layout: Layout
    ranks: int
    steps: int
    out: str | None = None


def render_command(workload: str, *, layout: Layout, ranks: int, steps: int, out: str | None = None) -> str:
    """The command as one line of shell, without a line end; `parse_command` reads it back.

    Raises:
        UsageError: the workload or the folder begins with a dash, so that it would be read as a flag.
    """
    for path in (workload, out or "."):
        if path.startswith("-") or not path:
            raise UsageError(f"`{path}` would be read as a flag; write `./{path}`")
    words = ["openrecipes", "rehearse", workload, "--layout", str(layout), "--ranks", str(ranks), "--steps", str(steps)]
    return shlex.join([*words, "--out", out] if out is not None else words)


def parse_command(words: Sequence[Word]) -> tuple[RehearsalCommand | None, tuple[WordProblem, ...]]:
    """Read the words of a rehearsal command: the command, or None and everything that is wrong with it."""
    flags = read_flags(words[2:])
    problems = [_problem(word, "not understood") for word in flags.may_hold_more]
    unknown = (flag.at for flag in flags.flags if flag.name not in _FLAGS)
    problems += [_problem(word, "is not an option of this command") for word in unknown]
    # Every option takes one value, so what else stands after it, or before all of them, is the workload.
    named = {id(word) for flag in flags.flags for word in (flag.at, *flag.values[:1])}
    paths = [word for word in words[2:] if id(word) not in named and word not in flags.may_hold_more]
    if len(paths) != 1:
        found = ", ".join(f"`{word.source:.40}`" for word in paths) or "none"
        problems.append(_problem(words[0], f"no single workload file is named, found {found}"))
    workload = paths[0].value if paths else None
    if paths and workload is None:
        problems.append(_problem(paths[0], "is known only outside the text"))
    layout = _layout(flags, words, problems)
    ranks, steps = (_number(name, flags, words, problems) for name in ("--ranks", "--steps"))
    out = _text("--out", flags, words, problems) if flags.last("--out") else None
    if problems or workload is None or layout is None or ranks is None or steps is None:
        return None, tuple(problems)
    return RehearsalCommand(workload=workload, layout=layout, ranks=ranks, steps=steps, out=out), ()


def _layout(flags: Flags, words: Sequence[Word], problems: list[WordProblem]) -> Layout | None:
    text = _text("--layout", flags, words, problems)
    if text is None:
        return None
    try:
        return Layout.parse(text)
    except UsageError as error:
        flag = flags.last("--layout")
        problems.append(_problem(flag.at if flag else words[0], str(error)))
        return None


def _number(name: str, flags: Flags, words: Sequence[Word], problems: list[WordProblem]) -> int | None:
    text = _text(name, flags, words, problems)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0:
        return int(text)
    flag = flags.last(name)
    problems.append(_problem(flag.at if flag else words[0], f"{name} is `{text:.40}`, expected a whole number above 0"))
    return None


def _text(name: str, flags: Flags, words: Sequence[Word], problems: list[WordProblem]) -> str | None:
    flag = flags.last(name)
    if flag is None:
        problems.append(_problem(words[0], f"{name} is missing"))
    elif not flag.values:
        problems.append(_problem(flag.at, f"{name} has no value"))
    elif flag.values[0].value is None:
        problems.append(_problem(flag.values[0], f"{name} is known only outside the text"))
    else:
        return flag.values[0].value
    return None


def _problem(at: Word, message: str) -> WordProblem:
    message = message if message.startswith(("--", "layout", "no ")) else f"`{at.source:.60}` {message}"
    return WordProblem(message=message, remedy=f"expected {_COMMAND}", at=at)


class Rehearsal:
    """Megatron-Core on CPU processes, started by this tool itself."""

    name = "rehearsal"
    command = _COMMAND

    def recognises(self, words: Sequence[Word]) -> bool:
        """Whether the words are `openrecipes rehearse ...`."""
        program = [word.value for word in words[:2]]
        return len(program) == 2 and PurePosixPath(program[0] or "").name == "openrecipes" and program[1] == "rehearse"

    def launch_problems(self, words: Sequence[Word]) -> tuple[WordProblem, ...]:
        """None: the program is this tool, and `read` says what its options lack."""
        return ()

    def read(self, words: Sequence[Word], recipe: Recipe) -> Reading:
        """The fields that the command decides; a rehearsal is FP32 on the CPUs of one machine."""
        command, problems = parse_command(words)
        if command is None:
            return Reading(problems=problems)
        layout, stated = command.layout, recipe.layout
        flags = read_flags(words[2:])

        def setting(field: str, stated: object, found: object, name: str) -> Setting:
            flag = flags.last(name)
            because = f"{flag.name} {flag.values[0].text}" if flag else name
            return Setting(field=field, stated=stated, found=found, because=because, at=flag.at if flag else None)

        sizes = ("tp", "pp", "vpp", "cp", "ep", "etp", "rows_per_microbatch")
        return Reading(
            settings=(
                setting("gpu.type", recipe.gpu.type, "cpu", "a rehearsal runs on CPU processes"),
                setting("gpu.count", recipe.gpu.count, command.ranks, "--ranks"),
                setting("gpu.per_node", recipe.gpu.per_node, command.ranks, "--ranks"),
                *(setting(f"layout.{key}", getattr(stated, key), getattr(layout, key), "--layout") for key in sizes),
                setting("layout.sequence_parallel", stated.sequence_parallel, layout.sp, "--layout"),
                setting("workload.precision", recipe.workload.precision, "fp32", "a rehearsal computes in FP32"),
                setting("result.steps_per_run", recipe.result.steps_per_run, command.steps, "--steps"),
            )
        )
