"""Each rule's illegal layout is given to the real Megatron-Core, which must refuse it in its own words."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openrecipes.data.rows import write_rows
from openrecipes.engines.rehearsal import RehearsalJob
from openrecipes.model.config import read_config
from openrecipes.plan.rules import RULES, violations
from openrecipes.plan.workload import PlanWorkload
from openrecipes.recipe.parallel import Layout

CONFIG = Path(__file__).parents[2] / "examples" / "tiny-qwen3.5-moe" / "config.json"


@dataclasses.dataclass(frozen=True)
class Refused:
    """A layout that breaks one rule, changes of the toy that bring it about, and Megatron's own words."""

    layout: str
    words: str
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    ranks: int = 2
    global_batch: int = 8
    row_tokens: int = 64


CASES = {
    "L101": Refused("tp=2,etp=1", "is not divisible by 2", ranks=3, global_batch=9),
    "L102": Refused("ep=4", "is not divisible by expert_tensor_model_pipeline_parallel size (4)"),
    "L103": Refused(
        "pp=2",
        "num_layers should be divisible by pipeline_model_parallel_size",
        {"num_hidden_layers": 3, "layer_types": ["linear_attention", "linear_attention", "full_attention"]},
    ),
    "L104": Refused("pp=2,vpp=3", "should be divisible by vp_size"),
    "L105": Refused("vpp=2", "should be greater than 1 with interleaved schedule"),
    "L106": Refused("pp=2,vpp=2", "remainder of M (the total micro-batches)", global_batch=7),
    "L107": Refused("tp=2", "num_attention_heads", {"num_attention_heads": 5, "num_key_value_heads": 1}),
    "L108": Refused("tp=2", "num_query_groups", {"num_attention_heads": 12, "num_key_value_heads": 3}),
    "L109": Refused("tp=2", "linear_num_key_heads must be a multiple", {"linear_num_key_heads": 1}),
    "L110": Refused("ep=2", "moe_layer.py", {"num_experts": 5}),
    "L111": Refused("etp=2", "is not divisible by 2", {"moe_intermediate_size": 31}),
    "L112": Refused("tp=2", "31 is not divisible by 2", {"shared_expert_intermediate_size": 31}),
    "L113": Refused("tp=2", "4095 is not divisible by 2", {"vocab_size": 4095}),
    "L114": Refused("ep=1", "global batch size (9) is not divisible", global_batch=9),
    "L115": Refused("tp=2,sp=false", "without also enabling sequence parallelism"),
    "L116": Refused("sp=true", "Cannot use sequence parallelism without tensor parallelism"),
    "L117": Refused("tp=2", "should be divisible by tensor parallel size", row_tokens=63),
    "L118": Refused("cp=2", "does not support context parallel"),
}


@pytest.fixture(scope="module")
def causes(tmp_path_factory) -> dict[str, str]:
    """What the engine said to each case's job: one process, one import, a fork a job."""
    folder = tmp_path_factory.mktemp("refused")
    for row_tokens in {case.row_tokens for case in CASES.values()}:
        ids = np.arange(16 * row_tokens, dtype=np.int32).reshape(16, row_tokens) % 50
        write_rows(folder / f"rows{row_tokens}", tokenizer_ids=ids, loss_mask=np.ones_like(ids), manifest={})
    for id, case in CASES.items():
        (folder / id).mkdir()
        _config(case, folder / id / "config.json")
        job = RehearsalJob(
            model=str(folder / id / "config.json"),
            rows=str(folder / f"rows{case.row_tokens}"),
            layout=str(Layout.parse(case.layout)),
            ranks=case.ranks,
            steps=1,
            global_batch=case.global_batch,
            out=str(folder / id),
        )
        job.write(folder / id / "job.json")
    jobs = [str(folder / id / "job.json") for id in CASES]
    command = [sys.executable, "-m", "openrecipes.rehearse", *jobs]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    outcomes = {id: folder / id / "outcome.json" for id in CASES}
    assert all(path.exists() for path in outcomes.values()), result.stderr
    found = {id: json.loads(path.read_text()) for id, path in outcomes.items()}
    assert {outcome["status"] for outcome in found.values()} == {"failed"}
    return {id: outcome["cause"] for id, outcome in found.items()}


def _config(case: Refused, path: Path) -> None:
    config = json.loads(CONFIG.read_text())
    config["text_config"] |= case.config
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("id", CASES)
def test_megatron_refuses_what_the_rule_refuses(causes, id, tmp_path):
    case = CASES[id]
    _config(case, tmp_path / "config.json")
    work = PlanWorkload(ranks=case.ranks, global_batch=case.global_batch, row_tokens=case.row_tokens)
    broken = violations(Layout.parse(case.layout), read_config(tmp_path / "config.json"), work)
    assert [violation.id for violation in broken] == [id]
    assert case.words in causes[id]


def test_every_rule_is_tried():
    assert CASES.keys() == {rule.id for rule in RULES}
