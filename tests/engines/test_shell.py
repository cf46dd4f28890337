import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.engines.shell import MAX_SCRIPT_CHARACTERS, Assignment, parse_script
from openrecipes.engines.words import PartKind

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


def sources(script: str) -> list[list[str]]:
    return [[word.source for word in command.words] for command in parse_script(script).commands]


def values(script: str) -> list[str | None]:
    return [word.value for word in parse_script(script).commands[0].words]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a b c", ["a", "b", "c"]),
        ("a \\\n  b \\\n  c", ["a", "b", "c"]),
        ("a b\\\nc", ["a", "bc"]),
        ("a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]),
        ('a "b \\" \\$C \\\\ \\n"', ["a", 'b " $C \\ \\n']),
        ("a b'c'\"d\"e", ["a", "bcde"]),
        ("a '' \"\"", ["a", "", ""]),
        ('a "  $B  " x', ["a", None, "x"]),
        ('a $"translated"', ["a", "translated"]),
        ("a --k=v --n 1e-5 -3.5", ["a", "--k=v", "--n", "1e-5", "-3.5"]),
        ("a # comment\n", ["a"]),
        ("a > log --after 2>&1 --last", ["a", "--after", "--last"]),
        ("a --é 日本", ["a", "--é", "日本"]),
        ("a b\u00a0c\u3000d e\r", ["a", "b\u00a0c\u3000d", "e\r"]),
        ("a *.py", ["a", None]),
        ("a {1,2}", ["a", None]),
        ("a ~/x", ["a", None]),
        ("a x~y '*' \\*", ["a", "x~y", "*", "*"]),
        ("a $(touch X) `touch X` $((1+2)) ${B:-c} <(d)", ["a", None, None, None, None, None]),
    ],
)
def test_words(script: str, expected: list[str | None]) -> None:
    parsed = parse_script(script)
    assert not parsed.problems
    assert values(script) == expected


def test_each_part_says_what_it_is() -> None:
    (command,) = parse_script('a x$B"${C}" ${D[@]} "${E[*]}" $@ $1 $(f)').commands
    parts = [[(part.kind, part.name, part.quoted) for part in word.parts] for word in command.words]
    assert parts[1] == [
        (PartKind.LITERAL, None, False),
        (PartKind.VARIABLE, "B", False),
        (PartKind.LITERAL, None, True),
        (PartKind.VARIABLE, "C", True),
        (PartKind.LITERAL, None, True),
    ]
    kinds = [[part.kind for part in word.parts if part.kind is not PartKind.LITERAL] for word in command.words[2:]]
    assert kinds == [[PartKind.ARRAY]] * 3 + [[PartKind.OPAQUE]] * 2
    assert [word.may_be_several for word in command.words] == [False, True, True, True, True, True, True]


def test_places_count_characters_from_one() -> None:
    (command,) = parse_script("é 'ü' b \\\n   c").commands
    assert [(word.line, word.column) for word in command.words] == [(1, 1), (1, 3), (1, 7), (2, 4)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a; b && c || d", [["a"], ["b"], ["c"], ["d"]]),
        ("a | b &", [["a"], ["b"]]),
        ("(a); { b; }; ! c", [["a"], ["b"], ["c"]]),
        ("if a; then b; else c; fi", [["a"], ["b"], ["c"]]),
        ("for i in 1 2; do a $i; done", [["a", "$i"]]),
        ("f() { a; }", [["a"]]),
        ("cat <<E | a\n$(touch X)\nE\n", [["cat"], ["a"]]),
        ("a \\\n# --b \\\n--c", [["a"], ["--c"]]),
    ],
)
def test_commands_in_the_order_of_the_text(script: str, expected: list[list[str]]) -> None:
    assert sources(script) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("A=1", [("A", "1", None, True)]),
        ("export A=1 B='x y' C", [("A", "1", True, True), ("B", "x y", True, True), ("C", None, True, True)]),
        ('export "A=x y"', [("A", "x y", True, True)]),
        ("declare -x A=1; readonly B=2", [("A", "1", True, True), ("B", "2", None, True)]),
        ("export -n A; unset B", [("A", None, False, True), ("B", None, False, True)]),
        ("A=", [("A", "", None, True)]),
        ("if x; then A=1; fi", [("A", "1", None, False)]),
        ("x || A=1; x && B=1", [("A", "1", None, False), ("B", "1", None, True)]),
        ("for A in 1; do :; done", [("A", None, None, False)]),
        ("(A=1); f() { B=1; }", [("A", "1", None, False), ("B", "1", None, False)]),
    ],
)
def test_assignments(script: str, expected: list[tuple[str, str | None, bool | None, bool]]) -> None:
    found = [s for s in parse_script(script).statements if isinstance(s, Assignment)]
    assert [(a.name, a.value.value if a.value else None, a.exported, a.certain) for a in found] == expected


def test_assignments_before_a_command_belong_to_it() -> None:
    (command,) = parse_script("A=1 B=2 c d").statements
    assert not isinstance(command, Assignment)
    assert [a.name for a in command.assignments] == ["A", "B"]
    assert [word.source for word in command.words] == ["c", "d"]


def test_variables_read_anywhere_but_not_those_only_assigned() -> None:
    script = 'A=1\nexport B=$([ "$C" -gt 0 ] && echo $D)\nx ${E[@]} ${F:-$G} $((H)) $1 $?\nunset I'
    assert parse_script(script).variables_read == ("C", "D", "E", "F", "G", "H")


@pytest.mark.parametrize(
    ("script", "line", "column"),
    [("a 'b", 1, 3), ("a\nb )", 2, 3), ("if a; then b", 1, 1), ("a ${", 1, 3), ("a \0 b", 1, 3)],
)
def test_what_is_not_shell_syntax_is_a_problem_with_its_place(script: str, line: int, column: int) -> None:
    problem = parse_script(script).problems[0]
    assert (problem.line, problem.column) == (line, column)


HOSTILE = {
    "parentheses": "(" * MAX_SCRIPT_CHARACTERS,
    "substitutions": "$(" * (MAX_SCRIPT_CHARACTERS // 2),
    "nested": '"$(' * 2000 + ')"' * 2000,
    "pipes": "|" * MAX_SCRIPT_CHARACTERS,
    "quotes": "'" * (MAX_SCRIPT_CHARACTERS - 1),
    "lists": "a && " * (MAX_SCRIPT_CHARACTERS // 5),
    "surrogate": "a \ud800 b",
    "crashes the grammar": "{\U00031860",
    "controls": "a \x1b[2J \x00 \u202e b",
}


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_ends_soon_and_without_an_exception(script: str) -> None:
    start = time.process_time()
    assert len(parse_script(script).problems) <= 21
    assert time.process_time() - start < 10


def test_a_script_beyond_the_limit_is_refused_unparsed() -> None:
    (problem,) = parse_script("a|" * 500_000).problems
    assert problem.message == f"the script has 1000000 characters, expected at most {MAX_SCRIPT_CHARACTERS}"
    assert not parse_script("a" * MAX_SCRIPT_CHARACTERS).problems


@given(ANY_TEXT)
def test_a_quoted_text_is_that_text(text: str) -> None:
    assert values(f"a {shlex.quote(text)}") == ["a", text]


@given(ANY_TEXT)
def test_a_double_quoted_text_is_that_text(text: str) -> None:
    escaped = "".join(f"\\{character}" if character in '$`"\\' else character for character in text)
    assert values(f'a "{escaped}"') == ["a", text]


@given(st.text(st.sampled_from(list("ab=$(){}[]\"'`\\;&|<>#!*?~ \n\t@")), max_size=80) | st.text(max_size=80))
def test_no_text_raises(text: str) -> None:
    script = parse_script(text)
    lines = text.count("\n") + 1
    for command in script.commands:
        assert all(1 <= word.line <= lines and word.column >= 1 for word in command.words)
