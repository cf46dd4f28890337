import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.engines.rehearsal_command import RehearsalCommand, parse_command, render_command
from openrecipes.engines.shell import parse_script
from openrecipes.engines.values import settle
from openrecipes.errors import UsageError
from openrecipes.recipe.parallel import Layout

SIZES = st.integers(1, 64)
LAYOUTS = st.builds(
    Layout, tp=SIZES, pp=SIZES, vpp=SIZES, cp=SIZES, ep=SIZES, etp=SIZES, rows_per_microbatch=SIZES, sp=st.booleans()
)
PATHS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40).filter(
    lambda path: not path.startswith("-")
)


def parse(text: str) -> tuple[RehearsalCommand | None, list[str]]:
    command, problems = parse_command(settle(parse_script(text))[0].words)
    return command, [problem.message for problem in problems]


@given(PATHS, LAYOUTS, SIZES, SIZES, st.none() | PATHS)
def test_a_rendered_command_is_read_back(path: str, layout: Layout, ranks: int, steps: int, out: str | None) -> None:
    expected = RehearsalCommand(workload=path, layout=layout, ranks=ranks, steps=steps, out=out)
    assert parse(render_command(path, layout=layout, ranks=ranks, steps=steps, out=out)) == (expected, [])


def test_the_workload_may_stand_anywhere() -> None:
    command, _ = parse("openrecipes rehearse --layout tp=2 --ranks=4 w.yaml --steps 20")
    assert command == RehearsalCommand(workload="w.yaml", layout=Layout(tp=2, etp=2, sp=True), ranks=4, steps=20)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--layout tp=2 --ranks 4 --steps 20", "no single workload file is named, found none"),
        ("a b --layout tp=2 --ranks 4 --steps 20", "no single workload file is named, found `a`, `b`"),
        ("a --layout tp=0 --ranks 4 --steps 20", "`tp=0` not understood"),
        ("a --layout tp=2 --ranks four --steps 20", "--ranks is `four`"),
        ("a --layout tp=2 --ranks 0 --steps 20", "--ranks is `0`"),
        ("a --layout tp=2 --ranks 4", "--steps is missing"),
        ("a --layout tp=2 --ranks 4 --steps", "--steps has no value"),
        ("a --layout tp=2 --ranks $N --steps 20", "--ranks is known only outside the text"),
        ("a --layout tp=2 --ranks 4 --steps 20 --speed 3", "`--speed` is not an option"),
        ("$W --layout tp=2 --ranks 4 --steps 20", "no single workload file"),
    ],
)
def test_everything_wrong_is_said(options: str, expected: str) -> None:
    command, messages = parse(f"openrecipes rehearse {options}")
    assert command is None
    assert any(expected in message for message in messages), messages


def test_several_faults_come_together() -> None:
    assert len(parse("openrecipes rehearse --layout x --ranks -1")[1]) == 4


@pytest.mark.parametrize("path", ["-w.yaml", ""])
def test_a_path_that_would_be_read_as_a_flag_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="would be read as a flag"):
        render_command(path, layout=Layout(), ranks=1, steps=1)
