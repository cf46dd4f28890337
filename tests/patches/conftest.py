"""Run a few lines of Python in a fresh process, as the guard acts on a whole process and only once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

PATCHES = Path(__file__).parents[2] / "patches"
STUBS = Path(__file__).parent / "stubs"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def run() -> Run:
    """`run(code, NAME=value)`: the finished process, with the guard and the stubs importable in it."""
    return lambda code, **variables: run_python(code, [PATCHES, STUBS], **variables)


@pytest.fixture(scope="session")
def run_real() -> Run:
    """As `run`, but with the torch, Triton and FLA that are installed."""
    return lambda code, **variables: run_python(code, [PATCHES], **variables)


def run_python(
    code: str, path: list[Path], python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLA_", "STUB_"))}
    inherited = [kept["PYTHONPATH"]] if "PYTHONPATH" in kept else []
    environment = kept | {"PYTHONPATH": os.pathsep.join([*map(str, path), *inherited])} | variables
    command = [python, "-W", "ignore", "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
