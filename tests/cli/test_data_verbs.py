"""`openrecipes data ...` as a person calls it, with a toy encoder in place of a checkpoint's."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from openrecipes.cli import data as verbs
from openrecipes.cli.main import app, main
from openrecipes.errors import MissingToolError, UsageError

sys.path.insert(0, str(Path(__file__).parent.parent / "data"))
import toy


@pytest.fixture(autouse=True)
def toy_encoder(monkeypatch):
    for module in ("builder", "preview", "show"):
        monkeypatch.setattr(f"openrecipes.data.{module}.ConversationEncoder", toy.ToyEncoder)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("source") / "chat.jsonl"
    toy.write_source(path, 600)
    return path


def build_arguments(source: Path, out: Path, *more: str) -> list[str]:
    chosen = ["data", "build", "--source", str(source), "--tokenizer", "toy", "--row-tokens", "128", "--rows", "100"]
    return [*chosen, "--out", str(out), "--max-rejected", "1000", *more]


def run(*arguments: str, code: int = 0):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def built(source, tmp_path) -> Path:
    run(*build_arguments(source, tmp_path / "rows"))
    return tmp_path / "rows"


def test_build_prints_what_was_made(source, tmp_path):
    printed = run(*build_arguments(source, tmp_path / "rows")).stdout
    manifest = json.loads((tmp_path / "rows" / "manifest.json").read_text())
    assert f"rows_sha256  {manifest['rows_sha256']}" in printed
    assert "rows         100 of 128 tokens, 12,800 tokens" in printed
    assert "invalid_json" in printed
    assert "listed in rejections.jsonl, such as chat.jsonl:" in printed


def test_build_as_json_prints_the_manifest(source, tmp_path):
    printed = json.loads(run(*build_arguments(source, tmp_path / "rows", "--json")).stdout)
    assert printed["ok"] is True
    manifest = json.loads((tmp_path / "rows" / "manifest.json").read_text())
    assert printed["manifest"]["rows_sha256"] == manifest["rows_sha256"]


def test_a_dry_run_says_what_to_expect_and_leaves_nothing(source, tmp_path):
    printed = run(*build_arguments(source, tmp_path / "rows", "--dry-run")).stdout
    assert "estimate" in printed
    assert "nothing was kept" in printed
    assert list(tmp_path.iterdir()) == []
    found = json.loads(run(*build_arguments(source, tmp_path / "rows", "--dry-run", "--json")).stdout)["preview"]
    # A build of these rows needs about as many conversations as the dry run expects.
    run(*build_arguments(source, tmp_path / "rows"))
    read = json.loads((tmp_path / "rows" / "manifest.json").read_text())["conversations"]["read"]
    assert found["estimate"]["conversations"] == pytest.approx(read, rel=0.3)


def test_verify_says_ok_and_exits_1_where_something_differs(built):
    assert "ok: 100 rows, rows_sha256" in run("data", "verify", str(built)).stdout
    assert json.loads(run("data", "verify", str(built), "--json").stdout)["ok"] is True
    path = built / "manifest.json"
    path.write_text(path.read_text().replace('"tokens": 12800', '"tokens": 12801'))
    assert "tokens is 12801, the rows give 12800" in run("data", "verify", str(built), code=1).stdout
    found = json.loads(run("data", "verify", str(built), "--json", code=1).stdout)
    assert [finding["id"] for finding in found["findings"]] == ["F014"]


def test_show_prints_the_row_and_marks_conversations(built):
    printed = run("data", "show", str(built), "--row", "1").stdout
    assert "── conversation at token" in printed
    found = json.loads(run("data", "show", str(built), "--row", "1", "--json").stdout)
    assert any(piece["target"] for piece in found["pieces"])
    assert any(not piece["target"] for piece in found["pieces"])
    with pytest.raises(UsageError, match="row 100 does not exist"):
        run("data", "show", str(built), "--row", "100")


def test_an_interrupted_build_says_how_to_go_on(source, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("openrecipes.data.blocks.BlockMaker.make", interrupt)
    result = run(*build_arguments(source, tmp_path / "rows"), code=130)
    assert "interrupted; the same command goes on after the finished blocks" in " ".join(result.stderr.split())
    assert not (tmp_path / "rows").exists()


def test_an_error_is_one_line_and_its_exit_code(source, tmp_path, monkeypatch, capsys):
    arguments = build_arguments(source, tmp_path / "rows", "--workers", "many")
    monkeypatch.setattr(sys, "argv", ["openrecipes", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == "openrecipes: --workers is `many`, expected a whole number or `ray`\n"


def test_missing_packages_are_named_with_the_way_to_install_them(built, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        MissingToolError,
        match=r"pyarrow, tokenizers, jinja2 not installed; install with `pip install openrecipes\[data\]`",
    ):
        run("data", "verify", str(built))
    assert verbs.data.info.help
