"""Typed recipes: what fields keep, and what is said about a wrong one."""

import re
from pathlib import Path

import pytest

from openrecipes.errors import ContentError, UsageError
from openrecipes.recipe.load import find_recipes, load_recipe, parse_recipe


def findings(text: str):
    with pytest.raises(ContentError) as caught:
        parse_recipe(text, Path("r.yaml"))
    return caught.value.findings


def put(text: str, line: str, new: str) -> str:
    """The text with the one line that starts with `line` replaced."""
    changed, count = re.subn(rf"(?m)^{re.escape(line)}.*$", lambda _: new, text)
    assert count == 1, f"{line!r} stands {count} times"
    return changed


def test_the_entry_is_typed_with_its_places(entry_path, entry_text):
    loaded = load_recipe(entry_path)
    recipe = loaded.recipe
    assert (recipe.layout.tp, recipe.layout.pp, recipe.layout.ep) == (2, 6, 8)
    assert recipe.result.window == (5, 19)
    assert recipe.result.active_params is not None
    assert recipe.result.active_params.count == 16331407360
    assert recipe.changes[0].from_ == "python3 -m --async"
    lines = entry_text.split("\n")
    assert lines[loaded.places["layout.tp"].line - 1] == "  tp: 2"  # type: ignore[operator]
    assert lines[loaded.places["run"].line - 1] == "run: |"  # type: ignore[operator]
    assert lines[loaded.places["result.window[1]"].line - 1] == "  - 19"  # type: ignore[operator]
    assert lines[loaded.places["layout"].line - 1] == "layout:"  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        "3.12",
        "3.10",
        "0123",
        "12e4567",
        "1e-5",
        "yes",
        "no",
        "on",
        "2026-10-18",
        "1_000",
        "0x1f",
        "1:30",
        ".inf",
        "true",
        "=",
    ],
)
def test_text_keeps_its_characters(entry_text, text):
    recipe = parse_recipe(put(entry_text, "  cuda:", f"  cuda: {text}"), Path("r.yaml")).recipe
    assert recipe.stack.cuda == text


@pytest.mark.parametrize("null", ["null", "~", "", "Null", "NULL"])
def test_null_is_null_unless_quoted(entry_text, null):
    plain = parse_recipe(put(entry_text, "  cuda:", f"  cuda: {null}"), Path("r.yaml")).recipe
    assert plain.stack.cuda is None
    if null:
        quoted = parse_recipe(put(entry_text, "  cuda:", f"  cuda: '{null}'"), Path("r.yaml")).recipe
        assert quoted.stack.cuda == null


@pytest.mark.parametrize(
    ("text", "value"), [("1e-5", 1e-5), ("2.6e-05", 2.6e-5), ("0", 0.0), ("7", 7.0), ("7.50", 7.5)]
)
def test_a_number_is_plain_json(entry_text, text, value):
    recipe = parse_recipe(put(entry_text, "  step_time_cv_percent:", f"  step_time_cv_percent: {text}"), Path("r.yaml"))
    assert recipe.recipe.result.step_time_cv_percent == value


@pytest.mark.parametrize(
    ("line", "new", "id", "field"),
    [
        ("  count: 48", "  count: '48'", "D110", "gpu.count"),
        ("  count: 48", "  count: 48.0", "D110", "gpu.count"),
        ("  count: 48", "  count: 048", "D110", "gpu.count"),
        ("  count: 48", "  count: 1_000", "D110", "gpu.count"),
        ("  count: 48", "  count: true", "D110", "gpu.count"),
        ("  count: 48", "  count: [48]", "D110", "gpu.count"),
        ("  count: 48", "  count:", "D110", "gpu.count"),
        ("  count: 48", "  count: 0", "D111", "gpu.count"),
        ("  count: 48", "  count: -1", "D111", "gpu.count"),
        ("  count: 48", "  count: " + "9" * 400, "D111", "gpu.count"),
        ("  count: 48", "  count: " + "9" * 5000, "D110", "gpu.count"),
        ("schema_version: 1", "schema_version: 2", "D111", "schema_version"),
        ("schema_version: 1", "schema_version: '1'", "D111", "schema_version"),
        ("status:", "status: proven", "D111", "status"),
        ("  url: https://arxiv", "  url: ftp://arxiv.org/abs/1", "D111", "author.url"),
        ("  url: https://arxiv", "  url: javascript:alert(1)", "D111", "author.url"),
        ("  url: https://arxiv", "  url: 'http://['", "D111", "author.url"),
        ("  sequence_parallel:", "  sequence_parallel: yes", "D110", "layout.sequence_parallel"),
        ("  sequence_parallel:", "  sequence_parallel: True", "D110", "layout.sequence_parallel"),
        ("  mfu: ", "  mfu: 1.2", "D111", "result.mfu"),
        ("  mfu: ", "  mfu: .nan", "D110", "result.mfu"),
        ("  tokens_per_s_per_gpu:", "  tokens_per_s_per_gpu: 1e999", "D111", "result.tokens_per_s_per_gpu"),
        ("  step_time_cv_percent:", "  step_time_cv_percent: -0.1", "D111", "result.step_time_cv_percent"),
        ("  measured:", "  measured: 2026-02-30", "D111", "result.measured"),
        ("  measured:", "  measured: 18.10.2026", "D111", "result.measured"),
        ("  rows_sha256:", "  rows_sha256: abc", "D111", "dataset.rows_sha256"),
        ("  rows_sha256:", f"  rows_sha256: {'A' * 64}", "D111", "dataset.rows_sha256"),
        ("  - 19", "  - 3", "D111", "result.window"),
        ("  - 19", "  - 19\n  - 20", "D111", "result.window"),
        ("  - 19", "  - -1", "D111", "result.window[1]"),
        ("  - 19", "", "D109", "result.window[1]"),
        ("model:", "model: ''", "D111", "model"),
        ("model:", "model: null", "D110", "model"),
        ("model:", "model: {a: b}", "D110", "model"),
        ("  tp: 2", "", "D109", "layout.tp"),
        ("  tp: 2", "  tp: 2\n  tq: 2", "D108", "layout.tq"),
        ("  tp: 2", "  tp: 2\n  tp: 2", "D105", "layout.tp"),
        ("  CUDA_DEVICE_MAX", "  CUDA_DEVICE_MAX_CONNECTIONS: {a: b}", "D110", "env.CUDA_DEVICE_MAX_CONNECTIONS"),
        ("  CUDA_DEVICE_MAX", "  CUDA_DEVICE_MAX_CONNECTIONS:", "D110", "env.CUDA_DEVICE_MAX_CONNECTIONS"),
        ("  CUDA_DEVICE_MAX", "  '': x", "D111", "env."),
    ],
)
def test_a_wrong_value_is_one_finding_at_its_field(entry_text, line, new, id, field):
    (finding,) = findings(put(entry_text, line, new))
    assert (finding.id, finding.field) == (id, field)
    assert finding.line is not None
    assert finding.column is not None
    assert len(str(finding)) < 600


def test_the_message_says_what_was_found_expected_and_how_to_mend_it(entry_text):
    (finding,) = findings(put(entry_text, "  count: 48", "  count: '48'"))
    line = entry_text.split("\n").index("  count: 48") + 1
    assert str(finding) == (
        f"r.yaml:{line}:10: gpu.count: error D110: found the text '48'; expected a whole number from 1 up to 10^15\n"
        "    write plain digits such as 48, 3.68 or 2.6e-05"
    )


def test_an_unknown_field_is_answered_with_the_meant_one(entry_text):
    (finding,) = findings(put(entry_text, "status: verified", "status: verified\nnote: x"))
    assert finding.remedy == "did you mean `notes`?"


def test_all_problems_come_at_once_in_the_order_of_the_file(entry_text):
    text = put(entry_text, "  count: 48", "  count: many")
    text = put(text, "  tp: 2", "  tp: 0\n  tp: 3")
    text = put(text, "  - 19", "  - 1")
    text = put(text, "run: |", "colour: red\nrun: |")
    assert [f.field for f in findings(text)] == ["gpu.count", "layout.tp", "layout.tp", "result.window", "colour"]


def test_a_cpu_entry_has_nulls_with_reasons(entry_text):
    text = put(entry_text, "  type: B200", "  type: cpu")
    text = put(text, "  memory_gb:", "  memory_gb: null")
    text = put(text, "  instance:", "  instance: null")
    text = put(text, "  usd_per_million", "  usd_per_million_tokens: null\n  usd_note: CPU processes have no price")
    text = put(text, "  mfu: ", "  mfu: null")
    text = put(text, "  mfu_note:", "  mfu_note: no peak is recorded")
    for part in ("megatron_lm", "transformer_engine", "cuda", "nccl", "deepep", "triton", "network", "runtime_fixes"):
        text = put(text, f"  {part}:", f"  {part}: null")
    recipe = parse_recipe(text, Path("r.yaml")).recipe
    assert (recipe.gpu.memory_gb, recipe.result.usd_per_million_tokens, recipe.stack.nccl) == (None, None, None)
    assert recipe.result.usd_note == "CPU processes have no price"


def test_recipes_are_found_in_folders_and_sorted(tmp_path):
    for name in ("b.yaml", "sub/a.yaml", "sub/ignored.txt", "a.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_recipes([tmp_path / "b.yaml", tmp_path])
    assert [p.relative_to(tmp_path).as_posix() for p in found] == ["b.yaml", "a.yaml", "sub/a.yaml"]


def test_paths_that_hold_no_recipe_are_all_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError) as caught:
        find_recipes([tmp_path / "missing.yaml", tmp_path / "empty"])
    assert "missing.yaml" in str(caught.value)
    assert "empty: no *.yaml file" in str(caught.value)
