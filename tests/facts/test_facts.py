import datetime

import pytest

from openrecipes.facts import did_you_mean, gpu, gpus, instance, instances, model_config, model_configs
from openrecipes.facts.sourced import Fact, read_fact

SOURCES = {"page": {"url": "https://example.org/page", "date": "2026-12-01"}}
EVERY_FACT = [
    *((f"{g.name} memory", g.memory_gb) for g in gpus().values()),
    *((f"{g.name} peak", g.bf16_dense_flop_per_s) for g in gpus().values()),
    *((f"{i.name} price", i.usd_per_hour) for i in instances().values()),
]


@pytest.mark.parametrize("fact", [fact for _, fact in EVERY_FACT], ids=[name for name, _ in EVERY_FACT])
def test_every_number_has_a_source_and_a_date_or_a_reason(fact: Fact) -> None:
    if fact.value is None:
        assert fact.reason
        assert str(fact) == f"unknown: {fact.reason}"
    else:
        assert fact.source is not None
        assert fact.source.startswith("https://")
        assert datetime.date.fromisoformat(str(fact.date)) <= datetime.date.today()
        assert fact.source in str(fact)


def test_the_peak_is_dense_and_the_price_is_that_of_one_gpu() -> None:
    b200, node = gpus()["B200"], instances()["AWS p6-b200.48xlarge"]
    assert b200.bf16_dense_flop_per_s.value == 2.25e15
    assert node.usd_per_hour.value == 113.9328
    assert node.usd_per_gpu_hour == pytest.approx(14.2416)


def test_an_unknown_number_stays_unknown() -> None:
    assert gpus()["cpu"].bf16_dense_flop_per_s.value is None
    assert instances()["AWS p5e.48xlarge"].usd_per_gpu_hour is None


def test_every_instance_carries_a_known_gpu() -> None:
    assert {i.gpu for i in instances().values()} <= gpus().keys()


def test_names_are_found_whatever_their_case() -> None:
    assert gpu("b200") is gpus()["B200"]
    assert instance("aws P6-B200.48xlarge") is instances()["AWS p6-b200.48xlarge"]
    assert model_config("QWEN3.5-397b-a17b") is model_configs()["Qwen3.5-397B-A17B"]
    assert gpu("B2000") is None
    assert instance("") is None
    assert model_config("Qwen3.5") is None


def test_a_close_name_is_suggested_and_a_strange_one_lists_all() -> None:
    assert did_you_mean("b20", gpus()) == "did you mean `B200`?"
    assert did_you_mean("teapot", ["B200", "cpu"]) == "known are B200, cpu"


def test_a_model_names_its_revision_and_where_its_values_were_read() -> None:
    known = model_configs()["Qwen3.5-397B-A17B"]
    assert known.url.endswith("/Qwen/Qwen3.5-397B-A17B/tree/8472618112abcbd45acbcdc58436aff4233c23f7")
    assert known.sources
    assert all(url.startswith("https://") for url in known.sources)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"value": 1.0}, id="no source"),
        pytest.param({"value": 1.0, "source": "elsewhere"}, id="a source that is not listed"),
        pytest.param({"value": 1.0, "source": ["page"]}, id="a source that is no name"),
        pytest.param({"value": "2.25e15", "source": "page"}, id="text, as YAML reads 2.25e15"),
        pytest.param({"value": True, "source": "page"}, id="a truth value"),
        pytest.param({"value": 0, "source": "page"}, id="zero"),
        pytest.param({"value": float("nan"), "source": "page"}, id="not a number"),
        pytest.param({"value": None}, id="unknown without a reason"),
    ],
)
def test_a_number_without_its_due_is_refused(entry: dict) -> None:
    with pytest.raises(ValueError, match=r"source|positive|reason"):
        read_fact(entry, SOURCES)


def test_a_value_beside_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="null and a reason"):
        Fact(value=1.0, source="https://example.org", date="2026-12-01", reason="unknown")
