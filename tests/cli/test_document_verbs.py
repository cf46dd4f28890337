"""`show`, `list`, `explain` and `schema` as a person calls them."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from openrecipes.cli.explain import explain
from openrecipes.cli.list import list_recipes
from openrecipes.cli.schema import schema
from openrecipes.cli.show import show
from openrecipes.errors import ContentError, UsageError
from openrecipes.recipe.catalogue import shipped_recipes
from openrecipes.recipe.rules import RULES
from openrecipes.recipe.schema import fields, schema_text

NAME = "attune-48gpu-tp2-pp6-ep8"
app = typer.Typer()
for name, verb in {"show": show, "list": list_recipes, "explain": explain, "schema": schema}.items():
    app.command(name)(verb)


def run(*arguments: str):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    (text,) = [path.read_text(encoding="utf-8") for path in shipped_recipes().values() if path.stem == NAME]
    (tmp_path / "good.yaml").write_text(text, encoding="utf-8")
    path = tmp_path / "broken.yaml"
    path.write_text(text.replace("  tp: 2\n", "  tp: two\n"), encoding="utf-8")
    return path


def test_show_says_what_matters_first():
    shown = run("show", NAME).stdout
    for words in (
        "48 x B200",
        "claimed status",
        "1,075.50 tokens/s/GPU",
        "$3.68",
        "4.68%",
        "python3 train_async.py",
        "another launcher",
    ):
        assert words in shown


def test_show_json_is_the_whole_recipe():
    found = json.loads(run("show", NAME, "--json").stdout)
    assert (found["format_version"], found["ok"], found["findings"]) == (1, True, [])
    assert found["recipe"]["result"]["window"] == [5, 19]
    assert found["recipe"]["changes"][0]["from"] == "python3 -m --async"


def test_show_reports_a_broken_file(broken):
    with pytest.raises(ContentError, match=r"layout\.tp"):
        run("show", str(broken))
    result = run("show", str(broken), "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["ok"], found["findings"][0]["field"]) == (1, False, "layout.tp")
    with pytest.raises(UsageError, match="expected a YAML file"):
        run("show", "missing.yaml")


def test_list_has_a_row_for_every_shipped_entry():
    assert NAME in run("list").stdout
    (row, *_) = json.loads(run("list", "--json").stdout)["recipes"]
    assert row["tokens_per_s_per_gpu"] == 1075.5
    assert row["layout"] == "TP2 PP6 EP8 DP4"


def test_list_shows_the_good_files_beside_the_findings_of_the_bad(broken):
    result = run("list", str(broken.parent), "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [Path(row["name"]).name for row in found["recipes"]] == ["good.yaml"]
    assert [f["id"] for f in found["findings"]] == ["D110"]


def test_text_of_a_recipe_is_never_taken_for_markup(broken):
    path = broken.parent / "good.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\nmodel: Qwen3.5-397B-A17B\n", "\nmodel: '[red]Qwen3.5'\n"), encoding="utf-8")
    assert "[red]Qwen3.5" in run("show", str(path)).stdout
    assert "[red]Qwen3.5" in run("list", str(path)).stdout


def test_explain_a_field():
    assert run("explain", "layout.tp").stdout == (
        "layout.tp\n"
        "  Tensor-parallel size (TP).\n"
        "  expected  a whole number from 1 up to 10^15\n"
        "  unit      ranks\n"
        "  example   2\n"
    )


@pytest.mark.parametrize("name", [name for name, _ in fields()])
def test_every_field_can_be_explained(name):
    assert run("explain", name).stdout.startswith(name)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("result.window[1]", "result.window\n"),
        ("correctness.component_tests[0].shape", "correctness.component_tests[].shape\n"),
        ("mfu", "result.mfu\n"),
        ("d105", "D105: "),
    ],
)
def test_explain_finds_what_a_finding_names(asked, found):
    assert run("explain", asked).stdout.startswith(found)


@pytest.mark.parametrize("id", list(RULES))
def test_every_document_rule_can_be_explained(id):
    assert run("explain", id).stdout.startswith(f"{id}: ")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [("layout.tq", "did you mean `layout.tp`"), ("row_tokens", "workload.row_tokens"), ("???", "schema")],
)
def test_explain_of_an_unknown_name_is_a_usage_error(asked, answer):
    with pytest.raises(UsageError, match=answer):
        run("explain", asked)


def test_explain_a_check():
    assert run("explain", "a101").stdout.startswith("A101: ")
    with pytest.raises(UsageError, match="did you mean `A10"):
        run("explain", "A1099")


def test_schema_prints_the_file_in_git():
    assert run("schema").stdout == schema_text()
