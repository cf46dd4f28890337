"""A whole, valid recipe text for the tests of this folder to change."""

from pathlib import Path

import pytest

ENTRY = Path(__file__).parents[2] / "recipes/qwen3.5-397b-a17b/b200/attune-48gpu-tp2-pp6-ep8.yaml"


@pytest.fixture(scope="session")
def entry_text() -> str:
    return ENTRY.read_text(encoding="utf-8")


@pytest.fixture
def entry_path(tmp_path: Path, entry_text: str) -> Path:
    path = tmp_path / "entry.yaml"
    path.write_text(entry_text, encoding="utf-8")
    return path
