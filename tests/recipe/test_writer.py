"""Writing: what goes out comes back, and what is not edited does not move."""

import copy
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openrecipes.errors import ContentError, UsageError
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import load_recipe, parse_recipe
from openrecipes.recipe.schema import alternatives, fields
from openrecipes.recipe.writer import dump_recipe, edit_recipe, write_recipe

LEAVES = {
    name: schema
    for name, schema in fields()
    if not any("properties" in option or option.get("type") == "array" for option in alternatives(schema))
    and "[]" not in name
    and not name.startswith("evidence.")
}
FRAGMENTS = (
    *(
        "3.10",
        "12e4567",
        "0123",
        "1e-5",
        "yes",
        "null",
        "~",
        "2026-10-18",
        "0o17",
        "a: b",
        "a #b",
        "- a",
        "'",
        '"',
        "<<",
    ),
    *(
        "=",
        " lead",
        "trail ",
        "two\nlines\n",
        "\n lead",
        "tab\there",
        "\r\n",
        "\x85",
        "\u2028",
        "\ufeff",
        "é",
        "🙂",
        "|",
    ),
    *("%a", "@a", "`a", "{a", "[a", "&a", "*a", "!a", "?", "-", ":", ",", "# a", "---", "... a", "x" * 300),
)
TRICKY = st.sampled_from(FRAGMENTS)
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
TEXT = st.one_of(TRICKY, st.text(min_size=1, max_size=30))


def values(schema) -> st.SearchStrategy:
    return st.one_of([_value(option) for option in alternatives(schema)])


def _value(schema) -> st.SearchStrategy:
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    match schema["type"]:
        case "string":
            match schema.get("format"):
                case "date":
                    return st.dates().map(str)
                case "uri":
                    return st.just("https://example.org/a#b")
                case "sha256":
                    return st.text("0123456789abcdef", min_size=64, max_size=64)
            return TEXT
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum"))
            return st.floats(low, schema["maximum"], exclude_min="minimum" not in schema)
        case "boolean":
            return st.booleans()
        case "object":
            return st.dictionaries(TEXT, st.one_of(TEXT, st.just("")), max_size=3)
    return st.none()


@st.composite
def recipes(draw, base: Recipe) -> Recipe:
    tree = copy.deepcopy(base.model_dump(by_alias=True))
    for name in draw(st.lists(st.sampled_from(sorted(LEAVES)), min_size=1, max_size=8, unique=True)):
        *parents, last = name.split(".")
        at = tree
        for parent in parents:
            at = at[parent]
        at[last] = draw(values(LEAVES[name]))
    tree["patches"] = draw(st.lists(TEXT, max_size=2))
    tree["layout"]["layer_split"] = draw(st.none() | st.lists(st.integers(1, 99), max_size=3))
    tree["changes"] = [{"field": "run", "from": draw(st.none() | TEXT), "to": None, "why": draw(TEXT)}]
    return Recipe.model_validate(tree, by_alias=True)


@settings(QUICK, max_examples=100)
@given(st.data())
def test_a_dumped_recipe_is_read_back_equal(entry_text, data):
    recipe = data.draw(recipes(parse_recipe(entry_text, Path("r.yaml")).recipe))
    assert parse_recipe(dump_recipe(recipe), Path("r.yaml")).recipe == recipe


@settings(QUICK, max_examples=60)
@given(text=TEXT, number=st.floats(0, 1e15))
def test_other_yaml_readers_see_the_same_text_and_numbers(entry_text, text, number):
    recipe = parse_recipe(entry_text, Path("r.yaml")).recipe
    recipe = recipe.model_copy(update={"model": text, "result": recipe.result.model_copy(update={"gpu_hours": number})})
    seen = yaml.safe_load(dump_recipe(recipe))
    assert seen["model"] == text
    assert seen["result"]["gpu_hours"] == number


def test_the_dump_keeps_the_order_and_the_blocks(entry_text):
    text = dump_recipe(parse_recipe(entry_text, Path("r.yaml")).recipe)
    keys = [line.partition(":")[0] for line in text.split("\n") if line and line[0].isalpha()]
    assert keys == [name for name in Recipe.model_fields if name != "evidence"]
    assert "\nrun: |\n  export CUDA_DEVICE_MAX_CONNECTIONS=1\n" in text
    assert "\nnotes: |\n" in text
    assert "usd_note" not in text


COMMENTED = [
    ("  tp: 2\n", "  tp:   2   # two\n"),
    ("patches:\n", "# why\n\npatches:   # all\n"),
    ("  - 19\n", "  - 19   # last\n"),
    ("  window:\n  - 5\n  - 19\n", "  window: [5,   19]\n"),
    ("status: verified\n", 'status: "verified"\n'),
    ("  rows: SFT conversations\n", "  rows: SFT\n    conversations\n"),
    ("  cuda: '12.9'\n", "  cuda: 12.90\n"),
    ("  offload: null\n", "  offload: ~\n"),
]


@pytest.mark.parametrize(("old", "new"), COMMENTED)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_edit_moves_nothing_else(entry_path, entry_text, old, new, newline):
    assert entry_text.count(old) == 1
    text = entry_text.replace(old, new).replace("\n", newline)
    entry_path.write_bytes(text.encode())
    edit_recipe(entry_path, {})
    assert entry_path.read_bytes() == text.encode()
    edit_recipe(entry_path, {"result.gpu_hours": 20.5})
    assert entry_path.read_bytes().decode() == text.replace("gpu_hours: 19.73", "gpu_hours: 20.5")


def test_fields_are_set_added_and_typed(entry_path, entry_text):
    reference = {"manifest": "evidence/evidence.json", "sha256": "0" * 64}
    edit_recipe(
        entry_path,
        {
            "result.mfu": None,
            "result.mfu_note": "why: so",
            "stack.cuda": "12.10",
            "result.window[0]": 6,
            "evidence": reference,
        },
    )
    recipe = load_recipe(entry_path).recipe
    assert (recipe.result.mfu, recipe.result.mfu_note, recipe.stack.cuda) == (None, "why: so", "12.10")
    assert recipe.result.window == (6, 19)
    assert recipe.evidence is not None
    before = parse_recipe(entry_text, entry_path).recipe
    assert recipe.layout == before.layout
    assert recipe.run == before.run


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"gpu.count": 0}, ContentError),
        ({"gpu.cuont": 48}, ContentError),
        ({"gpu.nothing.count": 48}, UsageError),
        ({"result.window[7]": 48}, UsageError),
        ({"model.count": 48}, UsageError),
    ],
)
def test_an_edit_that_would_break_the_entry_writes_nothing(entry_path, entry_text, changes, error):
    with pytest.raises(error):
        edit_recipe(entry_path, changes)
    assert entry_path.read_text(encoding="utf-8") == entry_text
    assert [p.name for p in entry_path.parent.iterdir()] == ["entry.yaml"]


def test_an_edit_of_a_line_laid_out_by_hand_is_refused(entry_path, entry_text):
    text = entry_text.replace("  window:\n  - 5\n  - 19\n", "  window: [5,   19]\n")
    entry_path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="by hand"):
        edit_recipe(entry_path, {"result.window[0]": 6})
    assert entry_path.read_text(encoding="utf-8") == text


def test_an_unwritable_output_is_one_message(tmp_path, entry_text):
    recipe = parse_recipe(entry_text, Path("r.yaml")).recipe
    with pytest.raises(UsageError, match="cannot be written"):
        write_recipe(tmp_path / "missing" / "r.yaml", recipe)


def test_a_full_disk_leaves_the_old_file(entry_path, entry_text, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("openrecipes.recipe.writing.os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        edit_recipe(entry_path, {"result.gpu_hours": 20.5})
    assert entry_path.read_text(encoding="utf-8") == entry_text
    assert [p.name for p in entry_path.parent.iterdir()] == ["entry.yaml"]
