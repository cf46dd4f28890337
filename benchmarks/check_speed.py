"""How fast entries are checked, beside ruamel.yaml loading the same files and doing nothing else.

    python benchmarks/check_speed.py [ENTRIES]

The entries are distinct and consistent: each is the published one on other GPU counts, batches and speeds,
with every number that depends on them, and its command, changed to match. One process on one core.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from ruamel.yaml import YAML

from openrecipes.check.run import check_entry
from openrecipes.errors import Severity
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import load_recipe
from openrecipes.recipe.writer import dump_recipe

Result = TypeVar("Result")
ENTRY = Path(__file__).parents[1] / "recipes/qwen3.5-397b-a17b/b200/attune-48gpu-tp2-pp6-ep8.yaml"
MOST_S_PER_ENTRY = 0.01  # 1,000 entries in 10 s
PEAK_FLOP_PER_S = 2.25e15  # B200, dense BF16; facts/gpus.yaml has the source


def variant(recipe: Recipe, i: int) -> Recipe:
    """The i-th consistent variant: 48 to 480 GPUs, a batch of 8 to 80 rows a DP rank, its own speed."""
    replicas, per_rank = 1 + i % 10, 1 + i // 10 % 10
    gpus, dp = 48 * replicas, 4 * replicas
    batch = dp * 8 * per_rank
    speed = 1000 + i
    first, last = recipe.result.window
    assert recipe.result.active_params is not None
    flags = {
        "--actor-num-nodes 6": f"--actor-num-nodes {6 * replicas}",
        "-batch-size 128": f"-batch-size {batch}",
    }
    run = recipe.run
    for old, new in flags.items():
        run = run.replace(old, new)
    return recipe.model_copy(
        update={
            "gpu": recipe.gpu.model_copy(update={"count": gpus}),
            "workload": recipe.workload.model_copy(update={"global_batch": batch}),
            "dataset": recipe.dataset.model_copy(
                update={"build": recipe.dataset.build.model_copy(update={"rows": 1_000_000})}
            ),
            "layout": recipe.layout.model_copy(update={"dp": dp, "label": f"TP2 PP6 EP8 DP{dp}"}),
            "result": recipe.result.model_copy(
                update={
                    "tokens_per_s_per_gpu": float(speed),
                    "usd_per_million_tokens": round(113.9328 / 8 / (speed * 3600) * 1e6, 2),
                    "mfu": round(6 * recipe.result.active_params.count * speed / PEAK_FLOP_PER_S, 4),
                    "window_tokens": (last - first + 1) * batch * recipe.workload.row_tokens,
                    "gpu_hours": 1000.0,
                }
            ),
            "run": run,
        }
    )


@dataclasses.dataclass(frozen=True)
class Took:
    """Processor time, which a busy machine leaves alone, and the wall time that passed."""

    cpu_s: float
    wall_s: float

    def __str__(self) -> str:
        return f"{self.cpu_s:.2f} s of one core ({self.wall_s:.2f} s by the clock)"


def timed(work: Callable[[Path], Result], paths: list[Path]) -> tuple[Took, list[Result]]:
    cpu, wall = time.process_time(), time.perf_counter()
    results = [work(path) for path in paths]
    return Took(time.process_time() - cpu, time.perf_counter() - wall), results


def load_alone(path: Path) -> object:
    return YAML(typ="rt").load(path.read_text(encoding="utf-8"))


def main(entries: int) -> int:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    recipe = load_recipe(ENTRY).recipe
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i:05}.yaml" for i in range(entries)]
        for i, path in enumerate(paths):
            path.write_text(dump_recipe(variant(recipe, i)), encoding="utf-8")
        checked, reports = timed(check_entry, paths)
        sample = paths[:: max(1, entries // 100)]
        loaded, _ = timed(load_alone, sample)
    errors = [f for report in reports for f in report.findings if f.severity is Severity.ERROR]
    ratio = (loaded.cpu_s / len(sample)) / (checked.cpu_s / entries)
    print(f"Python {platform.python_version()}, one core of {platform.machine()}")
    print(f"check: {entries} entries in {checked}, {entries / checked.cpu_s:.0f} entries/s, {len(errors)} errors")
    print(f"ruamel.yaml {version('ruamel.yaml')}, loading alone: {len(sample)} of them in {loaded}")
    print(f"ratio: loading one alone takes {ratio:.1f} times as long as checking it")
    for finding in errors[:3]:
        print(finding)
    return 1 if errors or checked.cpu_s / entries > MOST_S_PER_ENTRY else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
