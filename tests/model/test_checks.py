from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from openrecipes.errors import Severity
from openrecipes.model.checks import CHECKS
from openrecipes.recipe.checkable import Case, Level, Outcome, Status
from openrecipes.recipe.evidence import Evidence, EvidenceFile
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import load_recipe

SEED = Path(__file__).parents[2] / "recipes/qwen3.5-397b-a17b/b200/attune-48gpu-tp2-pp6-ep8.yaml"


@pytest.fixture(scope="module")
def seed() -> Case:
    loaded = load_recipe(SEED)
    return Case(path=loaded.path, recipe=loaded.recipe, places=loaded.places)


def changed(case: Case, changes: dict[str, Any], **more: Any) -> Case:
    """The case with some dotted fields of its recipe replaced."""
    data = case.recipe.model_dump(by_alias=True)
    for field, value in changes.items():
        *groups, name = field.split(".")
        reduce(lambda group, key: group[key], groups, data)[name] = value
    return dataclasses.replace(case, recipe=Recipe.model_validate(data), **more)


def outcomes(case: Case) -> dict[str, Outcome]:
    return {check.id: check.run(case) for check in CHECKS}


def not_passed(case: Case) -> dict[str, Status]:
    return {id: outcome.status for id, outcome in outcomes(case).items() if outcome.status is not Status.PASS}


def test_ids_are_in_order_and_guard_consistency() -> None:
    assert [check.id for check in CHECKS] == [f"A{number}" for number in range(101, 113)]
    assert {check.level for check in CHECKS} == {Level.CONSISTENT}


def test_the_seed_holds_and_says_how(seed: Case) -> None:
    found = outcomes(seed)
    assert not_passed(seed) == {}
    assert all(outcome.detail and not outcome.findings for outcome in found.values())
    assert found["A101"].detail == "dp 4 = 48 / (tp 2 x pp 6 x cp 1)"
    assert found["A103"].detail.endswith("128 / (dp 4 x rows_per_microbatch 1) = 32")
    assert "16,331,407,360" in found["A107"].detail
    assert "read 2026-12-01" in found["A105"].detail
    assert "2.25e+15 FLOP/s" in found["A106"].detail


# Each control changes a seed that holds in one way, and only the one check notices, at the one place.
CONTROLS = [
    pytest.param("A101", "layout.dp", {"layout.dp": 3}, "dp 3 != 48 / (tp 2 x pp 6 x cp 1) = 4", id="A101 wrong dp"),
    pytest.param(
        "A102",
        "gpu.count",
        {"layout.ep": 16, "layout.label": "TP2 PP6 EP16 DP4"},
        "needs pp 6 x lcm(tp 2 x cp 1, etp 1 x ep 16) = 96 GPUs, more than gpu.count 48",
        id="A102 too few GPUs for EP 16",
    ),
    pytest.param(
        "A102",
        "gpu.count",
        {"layout.etp": 2},  # what leaving ETP out means: Megatron sets it to TP
        "= 96 GPUs",
        id="A102 ETP 2",
    ),
    pytest.param(
        "A103",
        "workload.global_batch",
        {"workload.global_batch": 126, "result.window_tokens": 15 * 126 * 8192},
        "126 / (dp 4 x rows_per_microbatch 1) = 31.5",
        id="A103 a batch that does not divide",
    ),
    pytest.param(
        "A104", "result.window_tokens", {"result.window_tokens": 14680064}, "!= (19 - 5 + 1)", id="A104 tokens"
    ),
    pytest.param(
        "A104",
        "result.window[1]",
        {"result.window": (6, 20)},
        "ends with step 20, the run with step 19",
        id="A104 window past the end",
    ),
    pytest.param(
        "A105", "result.usd_per_million_tokens", {"result.usd_per_million_tokens": 3.69}, "3.69 !=", id="A105"
    ),
    pytest.param(
        "A105",
        "result.usd_per_million_tokens",
        {"result.usd_per_million_tokens": None},
        "usd_note does not say why",
        id="A105 null without a reason",
    ),
    pytest.param("A106", "result.mfu", {"result.mfu": 0.0469}, "0.0469 != 6 x 16,331,407,360", id="A106 wrong MFU"),
    pytest.param("A106", "result.mfu", {"result.mfu": 0.0234}, "0.0234 !=", id="A106 peak with sparsity"),
    pytest.param(
        "A106", "result.mfu", {"result.mfu": None}, "mfu_note does not say why", id="A106 null without a reason"
    ),
    pytest.param(
        "A107",
        "result.active_params.count",
        {"result.active_params.count": 16331407361},
        "16,331,407,361 != text weights",
        id="A107 one too many",
    ),
    pytest.param(
        "A108",
        "gpu.per_node",
        {"gpu.per_node": 4},
        "carries 8 GPUs, gpu.per_node is 4",
        id="A108 nodes of another size",
    ),
    pytest.param(
        "A108", "gpu.memory_gb", {"gpu.memory_gb": 80}, "is 80; B200 has 180", id="A108 memory of another GPU"
    ),
    pytest.param(
        "A108",
        "gpu.count",
        {"gpu.per_node": 9, "gpu.instance": "own cluster"}
        | {"result.usd_per_million_tokens": None, "result.usd_note": "own"},
        "48 is not a multiple of gpu.per_node 9",
        id="A108 ragged nodes",
    ),
    pytest.param("A109", "layout.label", {"layout.label": "TP2 PP6 EP8 DP8"}, "DP8 (the layout has dp 4)", id="A109"),
    pytest.param("A109", "layout.label", {"layout.label": f"TP{'2' * 18}"}, "TP222", id="A109 a huge number"),
    pytest.param(
        "A110",
        "layout.rows_per_microbatch",
        {"layout.rows_per_microbatch": 2},
        "holds 1 row(s) of 8,192 tokens, not rows_per_microbatch 2",
        id="A110 more rows than the bound holds",
    ),
    pytest.param(
        "A111",
        "layout.pp",
        {"layout.pp": 8, "layout.dp": 4, "layout.label": "TP2 PP8 EP8", "gpu.count": 64},
        "layers 60 / pp 8 = 7.5",
        id="A111 layers",
    ),
    pytest.param("A111", "layout.pp", {"layout.vpp": 4}, "layers 60 / pp x vpp 24 = 2.5", id="A111 virtual stages"),
    pytest.param(
        "A111",
        "layout.layer_split",
        {"layout.layer_split": (8, 10, 10, 10, 10, 11)},
        "places 59 layers on 6 stages",
        id="A111 a split that misses a layer",
    ),
    pytest.param(
        "A111",
        "layout.ep",
        {"layout.ep": 3, "layout.label": "TP2 PP6 EP3 DP12", "gpu.count": 144, "layout.dp": 12}
        | {"workload.global_batch": 120, "result.window_tokens": 15 * 120 * 8192},
        "experts 512 / ep 3 = 170.67",
        id="A111 experts",
    ),
    pytest.param(
        "A112",
        "dataset.build.row_tokens",
        {"dataset.build.row_tokens": 4096},
        "rows of 4,096 tokens were built",
        id="A112 rows of another length",
    ),
]


@pytest.mark.parametrize(("id", "field", "changes", "said"), CONTROLS)
def test_a_wrong_number_fails_its_check_and_no_other(
    seed: Case, id: str, field: str, changes: dict[str, Any], said: str
) -> None:
    found = outcomes(changed(seed, changes))
    assert {key for key, outcome in found.items() if outcome.status is Status.FAIL} == {id}
    (finding,) = [finding for finding in found[id].findings if finding.severity is Severity.ERROR]
    assert (finding.id, finding.field) == (id, field)
    assert said in finding.message
    assert finding.remedy
    assert finding.line is not None


def test_more_ranks_than_gpus_is_said_plainly(seed: Case) -> None:
    found = outcomes(changed(seed, {"layout.tp": 16}))
    assert (
        found["A101"].findings[0].message == "the layout needs tp 16 x pp 6 x cp 1 = 96 ranks, more than gpu.count 48"
    )
    assert found["A102"].status is Status.FAIL
    assert found["A103"].status is Status.NOT_CHECKED


def test_sizes_that_do_not_divide_the_gpus(seed: Case) -> None:
    found = outcomes(changed(seed, {"layout.pp": 5}))
    assert "48 / (tp 2 x pp 5 x cp 1) = 4.8" in found["A101"].findings[0].message
    assert "not a multiple of pp 5 x lcm" in found["A102"].findings[0].message


def test_a_price_given_by_the_user_overrides_the_recorded_one(seed: Case) -> None:
    assert not_passed(dataclasses.replace(seed, usd_per_gpu_hour=14.25)) == {}
    found = outcomes(dataclasses.replace(seed, usd_per_gpu_hour=7.0))["A105"]
    assert found.status is Status.FAIL
    assert "7 USD/GPU-hour" in found.detail
    assert "--usd-per-gpu-hour" in found.detail


@pytest.mark.parametrize("price", [None, 12.5])
def test_a_stated_reason_is_an_answer(seed: Case, price: float | None) -> None:
    reasons = {
        "result.usd_per_million_tokens": None,
        "result.usd_note": "own cluster",
        "result.mfu": None,
        "result.mfu_note": "no agreed peak",
        "result.active_params": None,
    }
    case = changed(seed, reasons, usd_per_gpu_hour=price)
    assert not_passed(case) == dict.fromkeys(("A105", "A106", "A107"), Status.NOT_APPLICABLE)
    assert ("12.5 USD/GPU-hour" in outcomes(case)["A105"].detail) == (price is not None)


@pytest.mark.parametrize(
    ("changes", "unchecked", "said"),
    [
        ({"gpu.instance": None}, {"A105"}, "names no instance"),
        ({"gpu.instance": "AWS p6-b200.24xlarge"}, {"A105"}, "did you mean `AWS p6-b200.48xlarge`?"),
        ({"workload.precision": "fp8"}, {"A106"}, "only BF16 peaks are recorded"),
        ({"result.active_params": None}, {"A106"}, "no active parameters"),
        ({"model": "Qwen3.5-397B"}, {"A107", "A111"}, "did you mean `Qwen3.5-397B-A17B`?"),
    ],
)
def test_what_nobody_recorded_is_not_checked(
    seed: Case, changes: dict[str, Any], unchecked: set[str], said: str
) -> None:
    found = outcomes(changed(seed, changes))
    assert {id for id, outcome in found.items() if outcome.status is Status.NOT_CHECKED} == unchecked
    assert not any(outcome.status is Status.FAIL for outcome in found.values())
    assert all(said in found[id].detail for id in unchecked)


def test_an_unknown_gpu_is_an_error_with_a_suggestion_and_has_no_mfu(seed: Case) -> None:
    found = outcomes(changed(seed, {"gpu.type": "B20"}))
    assert found["A108"].findings[0].remedy == "did you mean `B200`?"
    assert found["A106"].status is Status.NOT_CHECKED
    assert {id for id, outcome in found.items() if outcome.status is Status.FAIL} == {"A108"}


def test_the_gpu_of_another_instance_is_an_error(seed: Case) -> None:
    found = outcomes(changed(seed, {"gpu.type": "H100", "gpu.memory_gb": 80, "result.mfu": 0.1066}))
    assert [finding.message for finding in found["A108"].findings] == [
        "AWS p6-b200.48xlarge carries B200, gpu.type is H100"
    ]
    assert found["A106"].status is Status.PASS


@pytest.mark.parametrize(
    ("id", "changes", "severity"),
    [
        ("A107", {"result.active_params.revision": "main"}, Severity.NOTE),
        ("A108", {"gpu.memory_gb": 192}, Severity.WARNING),
        ("A108", {"gpu.memory_gb": None}, Severity.WARNING),
        ("A108", {"gpu.instance": "own"}, Severity.NOTE),
        ("A110", {"layout.max_tokens_per_gpu": 4096}, Severity.WARNING),
        ("A110", {"layout.max_tokens_per_gpu": 16384}, Severity.WARNING),
        ("A112", {"dataset.build.rows": 2559}, Severity.NOTE),
    ],
)
def test_what_the_text_does_not_settle_passes_with_a_remark(
    seed: Case, id: str, changes: dict[str, Any], severity: Severity
) -> None:
    found = outcomes(changed(seed, changes))[id]
    assert found.status is Status.PASS
    assert [finding.severity for finding in found.findings] == [severity]


def test_a_run_smaller_than_a_node_is_fine(seed: Case) -> None:
    case = changed(seed, {"gpu.count": 4, "layout.tp": 1, "layout.pp": 1, "layout.ep": 4, "layout.label": "EP4 DP4"})
    assert outcomes(case)["A108"].findings == ()


@pytest.mark.parametrize(("framework", "severity"), [("slime 0.3", Severity.NOTE), ("megatron", Severity.ERROR)])
def test_linear_attention_heads_matter_where_the_trainer_cuts_them(
    seed: Case, framework: str, severity: Severity
) -> None:
    found = outcomes(changed(seed, {"layout.tp": 32, "layout.cp": 1, "stack.framework": framework}))["A111"]
    about = [finding for finding in found.findings if "gated-delta-net key heads 16 / tp x cp 32" in finding.message]
    assert [finding.severity for finding in about] == [severity]


@pytest.mark.parametrize(("tp", "fits"), [(1, True), (2, True), (4, True), (16, True), (32, True), (3, False)])
def test_kv_heads_are_cut_or_copied_whole(seed: Case, tp: int, fits: bool) -> None:
    found = outcomes(changed(seed, {"layout.tp": tp, "stack.framework": "slime"}))["A111"]
    assert any("KV heads" in finding.message for finding in found.findings) != fits


@pytest.mark.parametrize("label", ["the fast one", "TP PP6x EP", "2 nodes"])
def test_a_label_without_sizes_has_nothing_to_check(seed: Case, label: str) -> None:
    assert outcomes(changed(seed, {"layout.label": label}))["A109"].status is Status.NOT_APPLICABLE


SIZE = st.sampled_from([1, 2, 3, 7, 48, 10**15])
NUMBER = st.sampled_from([5e-324, 1e-9, 0.1, 3.68, 1e15])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.dictionaries(
        st.sampled_from(
            [f"layout.{name}" for name in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp", "max_tokens_per_gpu")]
            + ["layout.rows_per_microbatch", "gpu.count", "gpu.per_node", "gpu.memory_gb", "workload.global_batch"]
            + ["workload.row_tokens", "result.steps_per_run", "result.window_tokens", "result.active_params.count"]
        ),
        SIZE,
        max_size=6,
    ),
    speed=NUMBER,
    price=NUMBER,
)
@example({"layout.tp": 3, "layout.ep": 3, "layout.etp": 3, "layout.pp": 7}, 0.1, 0.1)
def test_any_sizes_get_an_answer(seed: Case, sizes: dict[str, int], speed: float, price: float) -> None:
    numbers = {"result.tokens_per_s_per_gpu": speed, "result.usd_per_million_tokens": price}
    found = outcomes(changed(seed, {**sizes, **numbers}))
    assert all(outcome.detail for outcome in found.values())
    assert found["A105"].status is Status.FAIL  # no pair of these is the seed's 1075.5 and 3.68


def evidence_with(folder: Path, content: bytes) -> Evidence:
    (folder / "config.json").write_bytes(content)
    file = EvidenceFile(
        kind="model_config",
        path="config.json",
        sha256=hashlib.sha256(content).hexdigest(),
        producer="openrecipes",
        created="2026-12-01T04:23:00Z",
    )
    return Evidence(manifest=folder / "evidence.json", files=(file,))


def test_a_model_nobody_recorded_is_counted_from_the_evidence(seed: Case, tmp_path: Path, tiny: dict[str, Any]) -> None:
    evidence = evidence_with(tmp_path, json.dumps(tiny | {"num_hidden_layers": 12}).encode())
    found = outcomes(changed(seed, {"model": "mine"}, evidence=evidence))
    assert "layers 12 / pp 6 = 2" in found["A111"].detail
    assert found["A107"].status is Status.FAIL  # the seed's count is not that of the small model


def test_a_recorded_model_is_never_taken_from_the_evidence(seed: Case, tmp_path: Path, tiny: dict[str, Any]) -> None:
    evidence = evidence_with(tmp_path, json.dumps(tiny).encode())
    assert not_passed(dataclasses.replace(seed, evidence=evidence)) == {}


@pytest.mark.parametrize("content", [b"", b"[]", b'"config.json"', b'{"model_type": "llama"}', b"[" * 100_000])
def test_a_useless_config_in_the_evidence_is_not_checked(seed: Case, tmp_path: Path, content: bytes) -> None:
    found = outcomes(changed(seed, {"model": "mine"}, evidence=evidence_with(tmp_path, content)))
    assert found["A111"].status is Status.NOT_CHECKED
    assert "cannot be used" in found["A111"].detail
