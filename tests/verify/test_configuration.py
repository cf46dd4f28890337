from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openrecipes.errors import ContentError
from openrecipes.measure.resolved import ResolvedArguments, parse_resolved_arguments
from openrecipes.recipe.catalogue import shipped_folder
from openrecipes.verify.configuration import compare_arguments
from openrecipes.verify.rules import read_numerics_list, shipped_numerics_list
from openrecipes.verify.verdict import Result

NUMERICS = shipped_numerics_list()
ARGUMENTS: dict[str, Any] = {
    "tensor_model_parallel_size": 1,
    "sequence_parallel": False,
    "recompute_granularity": "full",
    "overlap_p2p_comm": False,
    "lr": 1e-4,
    "hidden_size": 64,
    "rows_sha256": "a" * 64,
    "init_method_std": 0.02,
    "params_dtype": "torch.float32",
    "moe_grouped_gemm": False,
    "cpu_offloading": False,
}


def resolved(**changes: Any) -> ResolvedArguments:
    return ResolvedArguments(
        engine=changes.pop("engine", "rehearsal"), versions={"torch": "2.13"}, arguments=ARGUMENTS | changes
    )


def test_equal_arguments_pass() -> None:
    found = compare_arguments(resolved(), resolved(), NUMERICS)
    assert found.result is Result.PASS
    assert found.differences == ()
    assert found.cause == "13 arguments compared, 0 differ"


@pytest.mark.parametrize(
    ("name", "value", "numerics_class"),
    [
        ("tensor_model_parallel_size", 2, "reduction_order"),
        ("sequence_parallel", True, "reduction_order"),
        ("recompute_granularity", None, "recompute"),
        ("overlap_p2p_comm", True, "neutral"),
        ("params_dtype", "torch.bfloat16", "precision"),
        ("moe_grouped_gemm", True, "kernel"),
        ("cpu_offloading", True, "offload"),
    ],
)
def test_differences_that_may_be_pass_and_name_what_covers_them(name: str, value: object, numerics_class: str) -> None:
    found = compare_arguments(resolved(**{name: value}), resolved(), NUMERICS)
    assert found.result is Result.PASS
    (difference,) = found.differences
    assert (difference.name, difference.numerics_class) == (name, numerics_class)
    assert difference.covered_by
    assert difference.why


@pytest.mark.parametrize(
    ("name", "value", "numerics_class"),
    [
        ("lr", 1.1e-4, "semantics"),
        ("hidden_size", 128, "model"),
        ("rows_sha256", "b" * 64, "data"),
        ("init_method_std", 0.01, "rng"),
        ("engine", "megatron", "semantics"),
    ],
)
def test_another_experiment_fails(name: str, value: object, numerics_class: str) -> None:
    found = compare_arguments(resolved(**{name: value}), resolved(tensor_model_parallel_size=2), NUMERICS)
    assert found.result is Result.FAIL
    assert f"({numerics_class})" in found.cause
    assert "tensor_model_parallel_size" not in found.cause


def test_an_unlisted_name_that_differs_fails_on_either_side() -> None:
    for pair in ((resolved(frobnicate=1), resolved()), (resolved(), resolved(frobnicate=1))):
        found = compare_arguments(*pair, NUMERICS)
        assert found.result is Result.FAIL
        assert "frobnicate" in found.cause
        assert "not in the numerics list" in found.cause


def test_values_of_another_type_differ() -> None:
    for other in (1.0, True, "1"):
        found = compare_arguments(resolved(tensor_model_parallel_size=other), resolved(), NUMERICS)
        assert [difference.name for difference in found.differences] == ["tensor_model_parallel_size"]


def test_nothing_to_compare_is_inconclusive() -> None:
    empty = ResolvedArguments(engine="rehearsal", versions={}, arguments={})
    assert compare_arguments(empty, empty, NUMERICS).result is Result.INCONCLUSIVE


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), json_values, min_size=1, max_size=8))
def test_any_arguments_equal_themselves_and_the_order_does_not_matter(arguments: dict[str, Any]) -> None:
    one = ResolvedArguments(engine="rehearsal", versions={}, arguments=arguments)
    other = ResolvedArguments(engine="rehearsal", versions={}, arguments=dict(reversed(arguments.items())))
    assert compare_arguments(one, other, NUMERICS).differences == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"engine": 1, "versions": {}, "arguments": {}}',
        b'{"engine": "x", "versions": {}}',
        b'{"engine": "x", "versions": [], "arguments": {}}',
        b"[" * 100_000,
    ],
)
def test_what_are_no_resolved_arguments_is_one_clear_error(content: bytes) -> None:
    with pytest.raises(ContentError, match="not the resolved arguments of a run"):
        parse_resolved_arguments(content, Path("resolved.json"))


def test_every_rule_has_a_reason_and_a_dated_source() -> None:
    assert len(NUMERICS.rules) == len(NUMERICS.arguments) > 150
    for rule, entry in NUMERICS.rules.values():
        assert rule.why.endswith(".")
        assert NUMERICS.sources[rule.source].date
        assert entry.passes == (entry.covered_by is not None)
    failing = {entry.name for entry in NUMERICS.classes if not entry.passes}
    assert failing == {"semantics", "model", "data", "rng"}


@pytest.mark.parametrize(
    "change",
    [
        ("class: reduction_order", "class: harmless", "no class harmless"),
        ("source: rehearsal", "source: hearsay", "no source hearsay"),
        ("- name: seq_length", "- name: lr", "lr stands twice"),
        ("format_version: 1", "format_version: 2", "format_version"),
        ("arguments:", "arguments: [", "not a numerics list"),
    ],
)
def test_a_damaged_list_is_refused(tmp_path: Path, change: tuple[str, str, str]) -> None:
    before, after, message = change
    text = (shipped_folder("skill") / "scripts/correctness/rules/numerics_list.yaml").read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "numerics_list.yaml"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ContentError, match=message):
        read_numerics_list(path)
