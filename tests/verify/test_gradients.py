from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.verify.gradients import compare_gradients, gradients_gate, kind
from openrecipes.verify.verdict import Result

BOUND = 1e-4
EXPERTS = [f"decoder.layers.{layer}.mlp.experts.{expert}.linear_fc1.weight" for layer in (1, 2) for expert in range(4)]
REFERENCE = dict.fromkeys(EXPERTS, 0.2) | {
    "embedding.word_embeddings.weight": 1.0,
    "output_layer.weight": 2.0,
    "decoder.layers.1.self_attention.in_proj.weight": 0.5,
    "decoder.layers.1.input_layernorm.weight": 0.01,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("decoder.layers.2.mlp.experts.local_experts.7.linear_fc2.weight", "expert"),
        ("decoder.layers.2.mlp.shared_experts.linear_fc1.weight", "shared expert"),
        ("decoder.layers.2.mlp.router.weight", "router"),
        ("decoder.layers.4.self_attention.linear_qkv.weight", "attention"),
        ("decoder.layers.4.self_attention.q_layernorm.weight", "norm"),
        ("decoder.layers.1.self_attention.A_log", "gated delta net"),
        ("decoder.layers.1.self_attention.out_norm.weight", "norm"),
        ("decoder.final_layernorm.weight", "norm"),
        ("embedding.word_embeddings.weight", "embedding"),
        ("output_layer.weight", "head"),
        ("something.else", "other"),
    ],
)
def test_the_kind_of_a_parameter(name: str, expected: str) -> None:
    assert kind(name) == expected


def test_wrong_expert_gradients_are_named_and_nothing_else_is() -> None:
    candidate = REFERENCE | dict.fromkeys(EXPERTS, 0.2 * 1.009)
    found = compare_gradients(candidate, REFERENCE, bound=BOUND)
    assert [(group.kind, len(group.differing), group.total) for group in found.groups] == [("expert", 8, 8)]
    assert found.cause == (
        f"expert gradients differ by up to 0.892 % (8 of 8 expert parameters, worst {EXPERTS[0]}); "
        "the other 4 parameters agree to 0 of the whole norm"
    )


def test_a_halved_norm_gradient_is_seen_beside_a_whole_a_hundred_times_larger() -> None:
    candidate = REFERENCE | {"decoder.layers.1.input_layernorm.weight": 0.005}
    found = compare_gradients(candidate, REFERENCE, bound=BOUND)
    assert [group.kind for group in found.groups] == ["norm"]
    whole = math.hypot(*REFERENCE.values())
    assert abs(math.hypot(*candidate.values()) / whole - 1) < BOUND  # the norm over all does not show it


def test_rounding_noise_in_a_vanishing_gradient_is_no_difference() -> None:
    found = compare_gradients(REFERENCE | {"x": 1e-9}, REFERENCE | {"x": 3e-9}, bound=BOUND)
    assert not found.groups


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_norm_that_is_none_never_agrees(value: float) -> None:
    wrong = REFERENCE | {EXPERTS[0]: value}
    for candidate, reference in ((wrong, REFERENCE), (REFERENCE, wrong), (wrong, wrong)):
        assert gradients_gate(candidate, [reference], bound=BOUND, noise_share=0.25).result is Result.FAIL


def test_a_parameter_on_one_side_only_fails_and_is_named() -> None:
    fewer = {name: norm for name, norm in REFERENCE.items() if name != "output_layer.weight"}
    for candidate, reference, side in ((fewer, REFERENCE, "reference"), (REFERENCE, fewer, "candidate")):
        found = gradients_gate(candidate, [reference], bound=BOUND, noise_share=0.25)
        assert found.result is Result.FAIL
        assert f"1 parameters only in the {side}, such as output_layer.weight" in found.detail


def test_noisy_or_absent_references_are_inconclusive() -> None:
    noisy = {name: norm * (1 + 0.5 * BOUND) for name, norm in REFERENCE.items()}
    assert gradients_gate(REFERENCE, [REFERENCE, noisy], bound=BOUND, noise_share=0.25).result is Result.INCONCLUSIVE
    for candidate, references in (({}, [REFERENCE]), (REFERENCE, []), (REFERENCE, [REFERENCE, None])):
        found = gradients_gate(candidate, references, bound=BOUND, noise_share=0.25)
        assert found.result is Result.INCONCLUSIVE


norms = st.dictionaries(st.text(min_size=1, max_size=5), st.floats(0, 1e30), min_size=1, max_size=20)


@given(norms)
def test_equal_gradients_agree_and_the_gate_uses_nothing_of_its_bound(gradients: dict[str, float]) -> None:
    found = gradients_gate(gradients, [gradients, gradients], bound=BOUND, noise_share=0.25)
    assert found.result is Result.PASS
    assert found.share == 0


@given(norms, st.floats(1.01, 100))
def test_the_largest_gradient_cannot_change_by_a_percent_unseen(gradients: dict[str, float], factor: float) -> None:
    largest = max(gradients, key=gradients.__getitem__)
    if gradients[largest] > 1e-30:
        changed = gradients | {largest: gradients[largest] * factor}
        found = compare_gradients(changed, gradients, bound=BOUND)
        assert [group.differing for group in found.groups] == [(largest,)]
