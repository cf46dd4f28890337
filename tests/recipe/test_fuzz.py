"""300 damaged recipe files: each is a recipe or a list of findings, never another exception."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openrecipes.errors import ContentError
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import load_recipe, parse_recipe

QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
FRAGMENTS = (
    *(
        "",
        "~",
        "null",
        "'",
        '"',
        "|",
        ">-",
        "- x",
        "[",
        "]",
        "{",
        "{}",
        "[]",
        "[1, [2]]",
        "&a x",
        "*a",
        "!!int 3",
        "<<",
    ),
    *(
        "1e999",
        "-0",
        ".nan",
        "0x10",
        "1_0",
        "yes",
        "2026-13-01",
        "%",
        "@",
        "`",
        "? x",
        ": ",
        " #",
        "\t",
        "\x00",
        "\x85",
    ),
    *("\u2028", "\ufeff", "9" * 5000),
)
VALUES = st.one_of(st.text(max_size=20), st.sampled_from(FRAGMENTS), st.integers().map(str), st.floats().map(repr))


def survives(read) -> None:
    """Call `read`; any exception but a list of findings goes through."""
    findings = []
    try:
        recipe = read().recipe
    except ContentError as error:
        recipe, findings = None, error.findings
    assert isinstance(recipe, Recipe) or findings
    assert all(f.id.startswith("D1") and f.remedy and str(f) and f.to_json() for f in findings)


@QUICK
@given(st.data())
def test_a_field_with_any_value(entry_text, data):
    lines = entry_text.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, colon, _ = lines[at].partition(":")
        value = data.draw(VALUES)
        lines[at] = data.draw(st.sampled_from([f"{key}{colon} {value}", f"{value}{colon}", value, f"  {lines[at]}"]))
    survives(lambda: parse_recipe("\n".join(lines), Path("r.yaml")))


@QUICK
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), st.binary(max_size=8)), min_size=1, max_size=6))
def test_any_bytes_anywhere(tmp_path, entry_text, mutations):
    data = bytearray(entry_text.encode())
    for where, length, new in mutations:
        start = int(where * len(data))
        data[start : start + length] = new
    path = tmp_path / "r.yaml"
    path.write_bytes(data)
    survives(lambda: load_recipe(path))


def test_the_fuzz_test_would_see_another_exception():
    def broken():
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        survives(broken)
