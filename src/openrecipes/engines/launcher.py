"""What a command starts: Python with a file, a module or code, whatever stands in front of it.

Python's own options: https://docs.python.org/3.12/using/cmdline.html (read 2026-12-01).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import Enum
from pathlib import PurePosixPath

from openrecipes.engines.words import Word

_WITH_VALUE = {"-W", "-X", "--check-hash-based-pycs"}


class Target(str, Enum):
    """How Python is told what to run."""

    FILE = "file"
    MODULE = "module"
    CODE = "code"
    NOTHING = "nothing"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Launch:
    """`python3 FILE ARGUMENTS` and its like. `at` is the word to point at: the target, or what stands for it."""

    target: Target
    at: Word
    arguments: tuple[Word, ...]


def python_launch(words: Sequence[Word]) -> Launch | None:
    """What a command makes Python run; None for a command that does not start Python.

    `ray job submit ... -- COMMAND` is looked through, since it starts COMMAND on the cluster.
    """
    words = _inside_ray_job(words)
    if not words or not _is_python(words[0].value):
        return None
    rest = list(words)
    at = rest.pop(0)
    while rest:
        at = rest.pop(0)
        text = at.value if at.value is not None else at.text
        if text in ("-m", "-c"):
            target = Target.MODULE if text == "-m" else Target.CODE
            return (
                Launch(target=target, at=rest[0] if rest else at, arguments=tuple(rest[1:])) if rest else _nothing(at)
            )
        if text.startswith("--") and text not in _WITH_VALUE:
            break
        if text.startswith("-") and text != "-":
            # The value of -W and -X may be part of the word (-Xdev) or the next one.
            if text in _WITH_VALUE and rest:
                rest.pop(0)
            continue
        return Launch(target=Target.FILE, at=at, arguments=tuple(rest))
    return _nothing(at)


def _nothing(at: Word) -> Launch:
    return Launch(target=Target.NOTHING, at=at, arguments=())


def _inside_ray_job(words: Sequence[Word]) -> Sequence[Word]:
    if [word.value for word in words[:3]] == ["ray", "job", "submit"]:
        for i, word in enumerate(words):
            if word.value == "--":
                return words[i + 1 :]
    return words


def _is_python(program: str | None) -> bool:
    name = PurePosixPath(program or "").name
    return name.startswith("python") and not name.removeprefix("python").strip("0123456789.")
