"""The published entry with the launcher line that it was first published with, as a file."""

from pathlib import Path

import pytest

ENTRY = Path(__file__).parents[2] / "recipes/qwen3.5-397b-a17b/b200/attune-48gpu-tp2-pp6-ep8.yaml"


@pytest.fixture
def seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The relative path of the entry in an empty working folder, so that no output depends on the machine."""
    text = ENTRY.read_text(encoding="utf-8")
    as_published = text.replace("  python3 train_async.py \\\n", "  python3 -m --async \\\n")
    assert as_published != text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seed.yaml").write_text(as_published, encoding="utf-8")
    return Path("seed.yaml")
