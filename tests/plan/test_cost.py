from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openrecipes.errors import UsageError
from openrecipes.model.flops import forward_flops_per_token
from openrecipes.plan.cost import CpuCosts, calibrate, predict
from openrecipes.plan.enumerate import legal_layouts
from openrecipes.plan.rank import rank, reason
from openrecipes.plan.traffic import Traffic, gradient_traffic, layer_traffic, stage_boundary_traffic
from openrecipes.recipe.parallel import Layout

from .shapes import DENSE, FULL, TOY, WORK, shapes, workloads

# Arithmetic only: every call and every byte is free.
ARITHMETIC = CpuCosts(
    flops_per_s=1e9,
    full_attention_call_s=1e-30,
    linear_attention_call_s=1e-30,
    expert_call_s=1e-30,
    message_s=1e-30,
    bytes_per_s=1e30,
)


def at(text: str, workload=WORK, model=TOY, cores=64, costs=ARITHMETIC):
    return predict(Layout.parse(text), model, workload, cores=cores, costs=costs)


def test_one_rank_costs_its_flops():
    alone = dataclasses.replace(WORK, ranks=1)
    tokens = WORK.global_batch * WORK.row_tokens
    expected = 3 * tokens * forward_flops_per_token(TOY, WORK.row_tokens) / 1e9
    assert at("tp=1", alone).step_time_s == pytest.approx(expected)
    assert at("tp=1", alone).tokens_per_s == pytest.approx(tokens / expected)


def test_recompute_costs_one_more_forward_pass_of_the_layers():
    head = 2 * TOY.hidden_size * TOY.vocab_size
    layers = forward_flops_per_token(TOY, WORK.row_tokens) - head
    plain, again = at("tp=1"), at("tp=1", dataclasses.replace(WORK, recompute=True))
    assert again.step_time_s / plain.step_time_s == pytest.approx((4 * layers + 3 * head) / (3 * layers + 3 * head))


def test_data_parallel_divides_the_work():
    alone = at("tp=1", dataclasses.replace(WORK, ranks=1))
    assert at("tp=1").step_time_s == pytest.approx(alone.step_time_s / 4)
    assert at("tp=4").step_time_s == pytest.approx(alone.step_time_s / 4)


@pytest.mark.parametrize(("text", "bubble"), [("pp=1", 0), ("pp=2", 1 / 5), ("pp=4", 3 / 11), ("pp=2,vpp=2", 1 / 9)])
def test_bubble_is_the_published_formula(text, bubble):
    # m = 4 micro-batches with DP 2, 8 with DP 1.
    assert at(text).bubble == pytest.approx(bubble)


def test_pipeline_time_follows_bubble_and_slowest_stage():
    two = dataclasses.replace(WORK, ranks=2)
    even = dataclasses.replace(TOY, layer_types=(FULL,) * 4, vocab_size=1)
    pipelined, alone = at("pp=2", two, even), at("tp=1", dataclasses.replace(WORK, ranks=1), even)
    assert pipelined.imbalance == pytest.approx(0, abs=1e-3)
    assert pipelined.step_time_s == pytest.approx(alone.step_time_s / 2 / (1 - pipelined.bubble), rel=1e-3)


def test_a_heavy_head_makes_the_last_stage_the_slowest():
    heavy = dataclasses.replace(TOY, vocab_size=100_000)
    assert at("pp=2", model=heavy).imbalance > 0.5


def test_a_bubble_costs_nothing_while_others_want_the_core():
    shared, idle = at("pp=4", cores=1), at("pp=4", cores=4)
    assert shared.limited_by_cores
    assert not idle.limited_by_cores
    assert shared.step_time_s == pytest.approx(at("tp=1", cores=1).step_time_s)
    assert "other ranks use the idle cores" in reason(shared)


def test_expert_parallel_saves_calls_of_experts():
    costs = dataclasses.replace(ARITHMETIC, expert_call_s=1.0)
    assert at("ep=4", costs=costs).step_time_s == pytest.approx(at("ep=1", costs=costs).step_time_s / 4, rel=1e-2)


@settings(max_examples=60, deadline=None)
@given(shapes(), workloads(), st.integers(1, 8))
def test_predictions_are_finite_and_more_cores_never_hurt(model, workload, cores):
    try:
        layouts = legal_layouts(model, workload)
    except UsageError:
        return
    for layout in layouts[:20]:
        fewer = predict(layout, model, workload, cores=cores)
        more = predict(layout, model, workload, cores=cores + 1)
        assert 0 < more.step_time_s <= fewer.step_time_s * (1 + 1e-12) < math.inf
        assert 0 <= fewer.bubble < 1
        assert fewer.imbalance >= -1e-9
        assert fewer.tokens_per_s * fewer.step_time_s == pytest.approx(workload.global_batch * workload.row_tokens)


def test_traffic_of_a_layer_by_hand():
    activations = 64 * 64 * 4
    assert layer_traffic(Layout(), TOY, 64) == Traffic()
    assert layer_traffic(Layout(tp=2, etp=2), DENSE, 64) == Traffic(4, 4 * activations / 2)
    assert layer_traffic(Layout(ep=4), TOY, 64) == Traffic(4, 2 * (2 * activations) * 3 / 4)
    assert layer_traffic(Layout(etp=2), TOY, 64) == Traffic(4, 2 * (2 * activations))
    assert layer_traffic(Layout(tp=2), TOY, 64) == layer_traffic(Layout(tp=2, etp=2), DENSE, 64)


def test_traffic_between_stages_and_of_gradients_by_hand():
    assert stage_boundary_traffic(Layout(), TOY, 64) == Traffic()
    assert stage_boundary_traffic(Layout(pp=2, vpp=2), TOY, 64) == Traffic(4, 4 * 64 * 64 * 4)
    assert gradient_traffic(Layout(tp=4), DENSE, 4, ()) == Traffic()
    outer = 2 * TOY.vocab_size * TOY.hidden_size + TOY.hidden_size
    assert gradient_traffic(Layout(), DENSE, 4, ()) == Traffic(2, 2 * outer * 4 * 3 / 4)
    # EP 4 leaves an expert no replica: only dense weights are exchanged.
    assert gradient_traffic(Layout(ep=4), TOY, 4, (FULL,)).messages == 2
    assert gradient_traffic(Layout(ep=2), TOY, 4, (FULL,)).messages == 4


def test_ranking_is_complete_sorted_and_stable():
    layouts = legal_layouts(TOY, WORK)
    ranked = rank(TOY, WORK, layouts, cores=2)
    assert {p.layout for p in ranked} == set(layouts)
    assert [p.tokens_per_s for p in ranked] == sorted((p.tokens_per_s for p in ranked), reverse=True)
    assert ranked == rank(TOY, WORK, reversed(layouts), cores=2)


def test_calibration_scales_every_prediction_and_keeps_the_order():
    ranked = rank(TOY, WORK, legal_layouts(TOY, WORK), cores=2)
    factor = calibrate(ranked[0], 3 * ranked[0].step_time_s)
    scaled = [prediction.scaled(factor) for prediction in ranked]
    assert factor == pytest.approx(3)
    assert scaled[0].step_time_s == pytest.approx(3 * ranked[0].step_time_s)
    assert [s.tokens_per_s * 3 for s in scaled] == pytest.approx([p.tokens_per_s for p in ranked])


@pytest.mark.parametrize("measured", [0, -1, math.nan, math.inf])
def test_a_measured_time_must_be_one(measured):
    with pytest.raises(UsageError, match="expected a positive number of seconds"):
        calibrate(at("tp=1"), measured)


@pytest.mark.parametrize(
    "changes", [{"cores": 0}, {"costs": CpuCosts(message_s=-1)}, {"costs": CpuCosts(flops_per_s=0)}]
)
def test_costs_must_be_positive(changes):
    with pytest.raises(UsageError, match="expected numbers above 0"):
        rank(TOY, WORK, [Layout()], **({"cores": 2} | changes))


def test_reason_names_what_matters():
    text = reason(at("pp=4", cores=4))
    assert text.startswith("bubble 27 %, slowest stage ")
    assert "messages" in text
