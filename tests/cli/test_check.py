import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from openrecipes.cli.main import app
from openrecipes.errors import UsageError

ENTRY = Path(__file__).parents[2] / "recipes/qwen3.5-397b-a17b/b200/attune-48gpu-tp2-pp6-ep8.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with `seed.yaml`, the published entry with the launcher line it was first published with."""
    text = ENTRY.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    Path("seed.yaml").write_text(text.replace("python3 train_async.py", "python3 -m --async", 1), encoding="utf-8")
    Path("good").mkdir()
    Path("good/entry.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", *arguments])


def test_text_of_the_seed(folder: Path, golden: Callable[[str, str], None]) -> None:
    result = check("seed.yaml")
    assert result.exit_code == 1
    golden("check-seed.txt", result.stdout)


def test_json_of_the_seed(folder: Path, golden: Callable[[str, str], None]) -> None:
    result = check("seed.yaml", "--json")
    assert result.exit_code == 1
    golden("check-seed.json", result.stdout)


def test_the_shape_of_the_json(folder: Path) -> None:
    found = json.loads(check("seed.yaml", "good", "--json").stdout)
    assert found["format_version"] == 1
    assert found["ok"] is False
    assert [(entry["path"], entry["claimed"], entry["level"]) for entry in found["entries"]] == [
        ("seed.yaml", "verified", "draft"),
        ("good/entry.yaml", "verified", "consistent"),
    ]
    assert found["findings"] == [finding for entry in found["entries"] for finding in entry["findings"]]
    assert all(set(answer) == {"id", "title", "status", "detail"} for answer in found["entries"][0]["checks"])


def test_strict_counts_warnings_as_errors(folder: Path) -> None:
    assert check("good").exit_code == 0
    assert check("good", "--strict").exit_code == 1
    assert json.loads(check("good", "--strict", "--json").stdout)["ok"] is False


def test_a_given_price_overrides_the_recorded_one(folder: Path) -> None:
    assert "1 error" in check("good", "--usd-per-gpu-hour", "2.5").stdout
    assert check("good", "--usd-per-gpu-hour", "14.24").exit_code == 0


@pytest.mark.parametrize("price", ["0", "-1", "nan", "inf"])
def test_a_price_that_is_none_is_refused(price: str, folder: Path) -> None:
    result = check("good", f"--usd-per-gpu-hour={price}")
    assert isinstance(result.exception, UsageError)


def test_a_malformed_file_beside_a_good_one(folder: Path) -> None:
    Path("good/broken.yaml").write_text("model: [", encoding="utf-8")
    result = check("good")
    assert result.exit_code == 1
    assert "good/broken.yaml: not a recipe" in result.stdout
    assert "good/entry.yaml: level consistent, claimed verified" in result.stdout


@pytest.mark.parametrize("path", ["missing.yaml", "empty"])
def test_nothing_to_check_is_a_usage_error(path: str, folder: Path) -> None:
    Path("empty").mkdir()
    assert isinstance(check(path).exception, UsageError)


def test_no_path_is_a_usage_error() -> None:
    assert check().exit_code == 2


def test_markup_in_a_recipe_is_shown_as_it_stands(folder: Path) -> None:
    text = Path("seed.yaml").read_text(encoding="utf-8").replace("-m --async", "-m '[bold red]--async'")
    Path("seed.yaml").write_text(text, encoding="utf-8")
    assert "[bold red]--async" in check("seed.yaml").stdout
