"""slime's own data source, rollout manager and schedule on built rows: `SLIME_SOURCE=PATH pytest tests/rollout`.

Real: RolloutDataSource, Dataset, RolloutManager.generate, its conversion and its split over ranks. Stood in for:
sglang, wandb and httpx (imported by name only), ray's object store (a list), the tokenizer (never called).
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from tests.data.toy import build, write_source

from openrecipes.data.table import FILE, read_rows

SOURCE = os.environ.get("SLIME_SOURCE")
pytestmark = [
    pytest.mark.skipif(not SOURCE, reason="SLIME_SOURCE names no checkout of slime"),
    pytest.mark.filterwarnings("ignore"),  # of torch and ray, while they are imported
]
ROW_TOKENS, ROWS, BATCH, RANKS = 64, 20, 16, 4
STOOD_IN = [
    "httpx",
    "sglang",
    "sglang.srt",
    "sglang.srt.constants",
    "sglang_router",
    "sglang_router.launch_router",
    "slime.backends.sglang_utils.external",
    "slime.backends.sglang_utils.sglang_config",
    "slime.backends.sglang_utils.sglang_engine",
    "wandb",
]


class AnyNames(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


@pytest.fixture
def stored(monkeypatch) -> list:
    """What slime put into ray's object store."""
    ray = pytest.importorskip("ray")
    monkeypatch.syspath_prepend(SOURCE)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("slime", "pretokenized_sft_rollout")]:
        monkeypatch.delitem(sys.modules, name)
    for name in STOOD_IN:
        monkeypatch.setitem(sys.modules, name, AnyNames(name))
    stored: list = []
    monkeypatch.setattr(ray, "put", lambda value, **_: stored.append(value) or value)
    return stored


class Options(SimpleNamespace):
    """slime's options: those of the recipe that matter here; any other is off."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def options(path: Path) -> Options:
    return Options(
        prompt_data=str(path),
        input_key="messages",
        metadata_key="metadata",
        rollout_global_dataset=True,
        rollout_batch_size=BATCH,
        global_batch_size=BATCH,
        micro_batch_size=1,
        n_samples_per_prompt=1,
        rollout_num_gpus=1,
        rollout_data_transport="object-store",
        rollout_top_p=1.0,
        vocab_size=257,
    )


def test_a_rank_gets_the_tokens_and_the_mask_of_the_next_rows(stored, monkeypatch, tmp_path):
    write_source(tmp_path / "chat.jsonl", 300)
    build(tmp_path / "chat.jsonl", tmp_path / "rows", rows=ROWS, row_tokens=ROW_TOKENS)
    rollout = importlib.import_module("slime.ray.rollout")
    data_source = importlib.import_module("slime.rollout.data_source")
    monkeypatch.setattr(data_source, "load_tokenizer", lambda *_, **__: None)
    monkeypatch.setattr(data_source, "load_processor", lambda *_, **__: object())
    given = options(tmp_path / "rows" / FILE)
    manager = object.__new__(rollout.RolloutManager.__ray_metadata__.modified_class)
    manager.args, manager._health_monitors = given, []
    manager.custom_reward_post_process_func = manager.custom_convert_samples_to_train_data_func = None
    manager.data_source = data_source.RolloutDataSource(given)
    manager.generate_rollout = importlib.import_module("pretokenized_sft_rollout").generate_rollout
    layout = {"dp_size": RANKS, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}
    manager.set_train_parallel_config(layout)

    rows = list(read_rows(tmp_path / "rows", ROW_TOKENS))
    for step in range(3):
        stored.clear()
        manager.generate(step)
        seen = {}
        for rank in stored:
            for local, place in enumerate(rank["partition"]):
                seen[place] = (rank["tokens"][local].tolist(), rank["loss_masks"][local].tolist())
        assert sorted(seen) == list(range(BATCH))
        for place, (tokens, mask) in seen.items():
            row = rows[(step * BATCH + place) % ROWS]
            assert tokens == row.ids.tolist()
            assert [0] * (ROW_TOKENS - len(mask)) + mask == row.loss_mask.tolist()
