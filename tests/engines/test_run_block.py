"""A word is placed in the file only where the file's text confirms it."""

from collections.abc import Callable

import pytest

from openrecipes.engines.checks import launcher
from openrecipes.recipe.checkable import Case


@pytest.mark.parametrize(
    ("block", "placed"),
    [
        ("run: |\n  python3 -m --num-rollout 1\n", "--num-rollout"),
        ("run: |2-\n  python3 -m --num-rollout 1\n", "--num-rollout"),
        ("run: |\n\n      python3 -m --num-rollout 1\n", "--num-rollout"),
        ("run: 'python3 -m --num-rollout 1'\n", None),
        ("run: >\n  python3 -m\n  --num-rollout 1\n", None),
    ],
)
def test_place_in_the_file(block: str, placed: str | None, change: Callable[..., Case]) -> None:
    case = change()
    text = case.path.read_text(encoding="utf-8")
    start, end = text.index("run: |\n"), text.index("notes:")
    case = change(text=text[:start] + block + text[end:])
    (finding,) = launcher.run(case).findings
    lines = case.path.read_text(encoding="utf-8").split("\n")
    assert finding.line
    assert finding.column
    found = lines[finding.line - 1][finding.column - 1 :]
    assert found.startswith(placed or block.removeprefix("run: ")[0])


def test_a_file_that_is_gone_leaves_the_field(change: Callable[..., Case]) -> None:
    case = change(("python3 train_async.py", "python3 -m --async"))
    case.path.unlink()
    (finding,) = launcher.run(case).findings
    assert (finding.line, finding.field) == (case.places["run"].line, "run")
