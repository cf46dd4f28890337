"""data/generate_fixed_sft.py is `openrecipes data build` with the recipe's sizes."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from tests.data.toy import write_source

SCRIPT = Path(__file__).parents[2] / "data" / "generate_fixed_sft.py"
RECIPE = {"--loss-mask": "qwen3_5", "--row-tokens": "8192", "--rows": "6400", "--seed": "42"}


@pytest.fixture
def handed_on(monkeypatch):
    """What the script hands to the command line for the arguments it is given."""

    def run(*given: str) -> list[str]:
        seen: list[list[str]] = []
        monkeypatch.setattr("openrecipes.cli.main.main", lambda: seen.append(sys.argv[1:]))
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *given])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return seen[0]

    return run


def test_the_recipes_sizes_are_filled_in(handed_on):
    build, *options = handed_on("--source", "x.jsonl", "--out", "rows")[1:]
    assert build == "build"
    assert dict(zip(options[::2], options[1::2], strict=True)) == RECIPE | {"--source": "x.jsonl", "--out": "rows"}


@pytest.mark.parametrize("given", [["--rows", "5"], ["--rows=5"]])
def test_a_given_size_is_kept(handed_on, given):
    found = handed_on(*given)
    assert found[-len(given) :] == given
    assert "6400" not in found


def test_it_runs_as_a_script(tmp_path):
    write_source(tmp_path / "chat.jsonl", 5)
    options = ["--source", tmp_path / "chat.jsonl", "--tokenizer", tmp_path, "--out", tmp_path / "rows", "--json"]
    done = subprocess.run([*map(str, [sys.executable, SCRIPT, *options])], capture_output=True, text=True)
    assert done.returncode == 2
    assert "tokenizer.json" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
