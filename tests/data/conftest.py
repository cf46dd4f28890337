from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Tests and the worker processes they spawn import the toy encoder by its name.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def toy_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import toy

    path = tmp_path_factory.mktemp("source") / "chat.jsonl"
    toy.write_source(path, 600)
    return path
