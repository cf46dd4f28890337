import pytest

from openrecipes.engines.shell import parse_script
from openrecipes.engines.values import SettledCommand, outside_variables, settle


def last(script: str) -> SettledCommand:
    return settle(parse_script(script))[-1]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('A=1; x $A ${A} "$A" y$A', ["x", "1", "1", "1", "y1"]),
        ("A='1 2'; x $A \"$A\"", ["x", "1", "2", "1 2"]),
        ("A=1; B=$A-2; x $B", ["x", "1-2"]),
        ("A=(--tp 2 'b c'); x ${A[@]}", ["x", "--tp", "2", "b c"]),
        ('A=*.py; x $A "$A"', ["x", None, "*.py"]),
        ("x $A", ["x", None]),
        ("A=1; A+=2; x $A", ["x", None]),
        ("A=1; unset A; x $A", ["x", None]),
        ("A=1; read A; x $A", ["x", None]),
        ("A=1; source f; x $A", ["x", None]),
        ("A=1; if y; then A=2; fi; x $A", ["x", None]),
        ("A=1; f() { A=2; }; f; x $A", ["x", None]),
        ("A=1; for A in 2; do x $A; done", ["x", None]),
        ("A=1; x $(echo $A)", ["x", None]),
        ("A=1 x $A", ["x", None]),
    ],
)
def test_only_what_the_script_settles_is_put_in(script: str, expected: list[str | None]) -> None:
    assert [word.value for word in last(script).words] == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("export A=1; x", {"A": "1"}),
        ("A=1; export A; x", {"A": "1"}),
        ("export A; A=2; x", {"A": "2"}),
        ("A=1; x", {}),
        ("A=1 x", {"A": "1"}),
        ("export A=1; A=2 x", {"A": "2"}),
        ("export A=1; export -n A; x", {}),
        ("export A=1; unset A; x", {}),
        ("x; export A=1", {}),
        ("export A=$(b); x", {"A": "$(b)"}),
    ],
)
def test_the_environment_of_a_command(script: str, expected: dict[str, str]) -> None:
    command = last(script)
    assert {name: word.text if word else None for name, word in command.environment.items()} == expected


def test_text_from_elsewhere_may_export_anything() -> None:
    assert last("source f; x").others_may_export
    assert not last("x").others_may_export


def test_outside_variables_are_read_and_never_set() -> None:
    assert outside_variables(parse_script("A=1; for B in 1; do x $A $B $C $HOME; done")) == ("C",)
