from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openrecipes.errors import ContentError, UsageError
from openrecipes.facts import model_configs
from openrecipes.model.config import LARGEST_FILE_BYTES, read_config
from openrecipes.model.shape import DenseMlp, Experts, LayerType, ModelShape

KNOWN = dict(model_configs()["Qwen3.5-397B-A17B"].config)
TEXT_FIELDS = sorted(KNOWN["text_config"])
NUMBERS = st.one_of(st.integers(), st.just(10**4000), st.just(-(10**4000)), st.floats(), st.booleans(), st.none())
ANYTHING = st.recursive(
    st.one_of(NUMBERS, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=5,
)


def fields_of(error: pytest.ExceptionInfo[ContentError]) -> list[str | None]:
    return [finding.field for finding in error.value.findings]


def test_the_nested_config_gives_the_shape(qwen_397b: dict[str, Any]) -> None:
    shape = read_config(qwen_397b)
    assert shape.layers == 60
    assert [i for i, kind in enumerate(shape.layer_types) if kind is LayerType.FULL_ATTENTION] == list(range(3, 60, 4))
    assert shape.experts == Experts(experts=512, top_k=10, width=1024, shared_width=1024)
    assert (shape.gated_delta_net.key_width, shape.gated_delta_net.value_width) == (2048, 8192)


def test_nested_and_bare_text_config_are_the_same_model(qwen_397b: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(qwen_397b["text_config"]))
    assert read_config(path) == read_config(qwen_397b)


def test_a_dense_model_is_read(tiny: dict[str, Any]) -> None:
    dense = tiny | {"model_type": "qwen3_5_text", "intermediate_size": 17}
    assert read_config(dense).mlp == DenseMlp(width=17)
    assert read_config(dense).experts is None
    assert read_config({"model_type": "qwen3_5", "text_config": dense}) == read_config(dense)


def test_listed_layer_types_need_no_interval(tiny: dict[str, Any]) -> None:
    del tiny["full_attention_interval"]
    tiny["layer_types"] = ["full_attention"] * 2 + ["linear_attention"] * 3
    assert read_config(tiny).layer_types[1:3] == (LayerType.FULL_ATTENTION, LayerType.LINEAR_ATTENTION)


@pytest.mark.parametrize("kind", ["llama", "qwen3_moe", "qwen3_next", "", None, 7, ["qwen3_5"]])
def test_an_unknown_architecture_is_refused_by_name(tiny: dict[str, Any], kind: object) -> None:
    with pytest.raises(ContentError, match="is not known") as error:
        read_config(tiny | {"model_type": kind})
    assert [finding.id for finding in error.value.findings] == ["A002"]
    if isinstance(kind, str) and kind:
        assert kind in error.value.findings[0].message


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hidden_size", 0, "0"),
        ("hidden_size", -4096, "-4096"),
        ("hidden_size", "4096", "'4096'"),
        ("hidden_size", 4096.0, "4096.0"),
        ("hidden_size", True, "True"),
        ("hidden_size", None, "None"),
        ("hidden_size", [4096], "a list of 1"),
        ("hidden_size", 10**30, "more than 18 digits"),
        ("num_hidden_layers", 10**6, "1000000"),
        ("attention_bias", "no", "'no'"),
        ("layer_types", ["full_attention"] * 5 + ["mamba"], "a list of 6"),
        ("layer_types", "full_attention", "'full_attention'"),
        ("layer_types", ["full_attention"] * 4, "4 layers"),
        ("num_key_value_heads", 4, "6 query heads over 4"),
        ("linear_num_key_heads", 3, "4 value heads over 3"),
        ("num_experts_per_tok", 13, "top-13 of 12"),
    ],
)
def test_a_wrong_field_is_named_with_what_was_found(tiny: dict[str, Any], field: str, value: object, said: str) -> None:
    with pytest.raises(ContentError) as error:
        read_config(tiny | {field: value})
    assert fields_of(error) == [field]
    assert said in error.value.findings[0].message
    assert "expected" in error.value.findings[0].remedy


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_too_long_to_print_is_a_finding(tiny: dict[str, Any], sign: int) -> None:
    with pytest.raises(ContentError, match="more than 18 digits"):
        read_config(tiny | {"hidden_size": sign * 10**5000})


def test_a_missing_size_is_never_guessed(tiny: dict[str, Any]) -> None:
    del tiny["head_dim"], tiny["shared_expert_intermediate_size"]
    with pytest.raises(ContentError, match="missing") as error:
        read_config(tiny)
    assert fields_of(error) == ["head_dim", "shared_expert_intermediate_size"]


def test_everything_wrong_is_said_at_once_with_its_place(qwen_397b: dict[str, Any]) -> None:
    wrong = {"hidden_size": 0, "num_experts": "many", "tie_word_embeddings": 3}
    with pytest.raises(ContentError) as error:
        read_config(qwen_397b | {"text_config": qwen_397b["text_config"] | wrong})
    assert fields_of(error) == [f"text_config.{field}" for field in wrong]


@pytest.mark.parametrize("text", [None, [], "nested", 3])
def test_a_text_config_that_is_no_object_is_refused(text: object) -> None:
    with pytest.raises(ContentError, match="text_config is"):
        read_config({"model_type": "qwen3_5_moe", "text_config": text})


def test_two_flags_at_odds_are_refused_and_one_is_enough(qwen_397b: dict[str, Any]) -> None:
    with pytest.raises(ContentError, match="True outside"):
        read_config(qwen_397b | {"tie_word_embeddings": True})
    text = {key: value for key, value in qwen_397b["text_config"].items() if key != "tie_word_embeddings"}
    assert read_config(qwen_397b | {"tie_word_embeddings": True, "text_config": text}).tied_head
    assert not read_config(qwen_397b | {"text_config": text}).tied_head


def test_a_moe_config_with_a_dense_text_part_is_refused(qwen_397b: dict[str, Any]) -> None:
    text = qwen_397b["text_config"] | {"model_type": "qwen3_5_text"}
    with pytest.raises(ContentError, match="qwen3_5_text"):
        read_config(qwen_397b | {"text_config": text})


def test_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    for path, found in ((tmp_path / "config.json", "no such file"), (tmp_path, "not a regular file")):
        with pytest.raises(UsageError, match=found):
            read_config(path)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe\x00binary", id="binary"),
        pytest.param(b"[1, 2]", id="a list"),
        pytest.param(b"[" * 100_000, id="nested too deeply"),
        pytest.param(b'{"vocab_size": ' + b"9" * 5000 + b"}", id="a number of 5000 digits"),
        pytest.param(b" " * (LARGEST_FILE_BYTES + 1), id="too large"),
    ],
)
def test_what_is_no_config_is_one_finding(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ContentError, match=r"not a config\.json") as error:
        read_config(path)
    (finding,) = error.value.findings
    assert (finding.id, finding.path) == ("A001", path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, len(json.dumps(KNOWN)) - 1))
def test_a_truncated_config_is_an_error_never_a_traceback(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(KNOWN)[:cut])
    with pytest.raises(ContentError):
        read_config(path)


@given(field=st.sampled_from(TEXT_FIELDS), value=ANYTHING)
def test_a_hostile_value_gives_findings_or_a_shape(field: str, value: object) -> None:
    try:
        found = read_config(KNOWN | {"text_config": KNOWN["text_config"] | {field: value}})
    except ContentError as error:
        found = error.findings
    assert isinstance(found, ModelShape) or all(len(finding.message) < 300 for finding in found)


@given(config=st.dictionaries(st.sampled_from([*KNOWN, "vocab_size"]), ANYTHING))
def test_a_hostile_object_gives_findings(config: dict[str, Any]) -> None:
    with pytest.raises(ContentError):
        read_config(config)
