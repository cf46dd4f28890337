"""How long the command takes to answer, beside Python importing the libraries it is made of.

    python benchmarks/startup.py [RUNS]

Whole processes, started one after the other in turn, so that all meet the same machine; medians of RUNS (9).
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

HELP_LIMIT_S = 0.5
OPENRECIPES = str(Path(sys.executable).with_name("openrecipes"))
RECIPES = str(Path(__file__).parents[1] / "recipes")
LIBRARIES = "the libraries alone: import typer, pydantic, yaml, tree_sitter_bash"
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    LIBRARIES: [sys.executable, "-c", "import typer, pydantic, yaml, tree_sitter_bash"],
    "openrecipes --help": [OPENRECIPES, "--help"],
    "openrecipes list": [OPENRECIPES, "list"],
    "openrecipes check recipes": [OPENRECIPES, "check", RECIPES],
}


def wall_s(command: Sequence[str]) -> float:
    """Seconds from start to end of one process."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    """Print the medians, and whether help comes in time."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores; typer {version('typer')}; median of {runs} runs"
    )
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            times[name].append(wall_s(command))
    medians = {name: statistics.median(found) for name, found in times.items()}
    for name, median in medians.items():
        print(f"{median:6.3f} s  {median / medians[LIBRARIES]:5.2f}x  {name}")
    print(f"help in under {HELP_LIMIT_S} s: {'yes' if medians['openrecipes --help'] < HELP_LIMIT_S else 'NO'}")


if __name__ == "__main__":
    main()
