"""slime's training command: which commands are one, whether they can start, and what they say.

Defaults and forced values were read on 2026-12-01 in slime at commit 624b824a
(https://github.com/THUDM/slime/blob/624b824a/slime/utils/arguments.py) and in the Megatron-LM that it pins
(https://github.com/NVIDIA/Megatron-LM/blob/1dcf0daf/megatron/training/arguments.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from openrecipes.engines.flags import read_flags
from openrecipes.engines.interface import Reading, WordProblem
from openrecipes.engines.launcher import Launch, Target, python_launch
from openrecipes.engines.slime_fields import SWITCHES, SlimeFields
from openrecipes.engines.words import Word
from openrecipes.errors import Severity

if TYPE_CHECKING:
    from openrecipes.recipe.fields import Recipe

ENTRY_POINTS = ("train.py", "train_async.py")
# Any of these flags marks a command as slime's, whatever file or module it names.
_MARKS = ("--actor-num-nodes", "--actor-num-gpus-per-node", "--rollout-batch-size", "--num-rollout")
_REMEDY = "write `python3 train_async.py` (or train.py) and the same flags: the entry points of stock slime"


class Slime:
    """THUDM/slime: Megatron-Core training under Ray."""

    name = "slime"
    command = "python3 train_async.py --actor-num-nodes N ..."

    def recognises(self, words: Sequence[Word]) -> bool:
        """Whether this starts Python with an entry point of slime, or with flags that only slime has."""
        launch = python_launch(words)
        if launch is None:
            return False
        if launch.target is Target.FILE and PurePosixPath(launch.at.text).name in ENTRY_POINTS:
            return True
        return any(word.text.partition("=")[0] in _MARKS for word in words)

    def launch_problems(self, words: Sequence[Word]) -> tuple[WordProblem, ...]:
        """Whether Python is told what to run, and whether stock slime has it."""
        launch = python_launch(words)
        problem = None if launch is None else _problem(launch)
        return () if problem is None else (problem,)

    def read(self, words: Sequence[Word], recipe: Recipe) -> Reading:
        """The fields that slime's flags, defaults and forced values decide."""
        return SlimeFields(read_flags(words, SWITCHES), recipe).read()


def _problem(launch: Launch) -> WordProblem | None:
    at, name = launch.at, launch.at.value
    if launch.target is Target.NOTHING:
        message = f"launcher missing: Python is told no file and no module, found `{at.source:.60}`"
        return WordProblem(message=message, remedy=_REMEDY, at=at)
    if launch.target is Target.MODULE and at.text.startswith("-"):
        message = f"launcher module missing: `-m` is followed by the flag `{at.source}`, expected the name of a module"
        return WordProblem(message=message, remedy=_REMEDY, at=at)
    if name is None:
        message = f"what starts is only known outside the text: `{at.source}`"
        return WordProblem(message=message, remedy=_REMEDY, at=at, severity=Severity.NOTE)
    if launch.target is Target.MODULE and not all(part.isidentifier() for part in name.split(".")):
        return WordProblem(message=f"`{name}` is not the name of a module", remedy=_REMEDY, at=at)
    if launch.target is Target.FILE and PurePosixPath(name).name in ENTRY_POINTS:
        return None
    if launch.target is Target.FILE and (not name or name.endswith("/")):
        return WordProblem(message=f"`{at.source}` does not name a file", remedy=_REMEDY, at=at)
    what = "inline code" if launch.target is Target.CODE else f"`{name}`"
    message = f"{what} is not an entry point of stock slime ({', '.join(ENTRY_POINTS)})"
    remedy = "say in stack.framework which slime has it, or name one of those"
    return WordProblem(message=message, remedy=remedy, at=at, severity=Severity.NOTE)
