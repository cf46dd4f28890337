"""Every layout trains the same model; one that megatron-core 0.16.1 gets wrong is told apart; every fault shows.

All runs come from one process, which imports torch once.
"""

import math

import pytest
from tests.rehearse.jobs import GLOBAL_BATCH, ROW_TOKENS, STEPS, Run, make_rows, rehearse, write_job

from openrecipes.engines.rehearsal import Recompute

HONEST = {
    "one row": ("tp=1", 1),
    "reversed": ("tp=1,rows_per_microbatch=2", 1),
    "tp2 etp2": ("tp=2,rows_per_microbatch=2", 2),
    "tp2 recompute": ("tp=2,ep=2,etp=1,rows_per_microbatch=4", 2),
    "pp2": ("pp=2,rows_per_microbatch=2", 2),
    "pp2 vpp2": ("pp=2,vpp=2,rows_per_microbatch=2", 2),
    "ep2": ("ep=2,rows_per_microbatch=2", 2),
    "dp2": ("tp=1,rows_per_microbatch=2", 2),
    "dp4": ("tp=1,rows_per_microbatch=2", 4),
    "pp4": ("pp=4,rows_per_microbatch=2", 4),
    "ep4": ("ep=4,rows_per_microbatch=2", 4),
    "tp4": ("tp=4,rows_per_microbatch=4", 4),
    "tp2 ep2 dp2": ("tp=2,ep=2,etp=1,rows_per_microbatch=2", 4),
    "tp2 pp2 ep2": ("tp=2,pp=2,ep=2,etp=1,rows_per_microbatch=4", 4),
    "tp2 ep2 etp2": ("tp=2,ep=2,rows_per_microbatch=4", 4),
    "tp2 ep4": ("tp=2,ep=4,etp=1,rows_per_microbatch=4", 4),
    "pp2 vpp2 ep2": ("pp=2,vpp=2,ep=2,rows_per_microbatch=2", 4),
}
REFERENCE = ("tp=1,rows_per_microbatch=2", 1)
WRONG_UPSTREAM = ("tp=2,etp=1,rows_per_microbatch=4", 2)
# Each fault with the layout it shows on and the honest run of that layout.
FAULTY = {
    "norm_grads_unreduced_over_tp": ("tp=2,rows_per_microbatch=2", 2, "tp2 etp2"),
    "loss_scaled_by_dp": ("tp=1,rows_per_microbatch=2", 2, "dp2"),
    "microbatch_dropped": (*REFERENCE, "reference"),
    "rows_shuffled": (*REFERENCE, "reference"),
    "nan_at_step_3": (*REFERENCE, "reference"),
    "lr_x1.1": (*REFERENCE, "reference"),
}
# What a layout may change in the resolved arguments.
LAYOUT_ARGUMENTS = {
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "data_parallel_size",
    "expert_data_parallel_size",
    "sequence_parallel",
    "world_size",
    "micro_batch_size",
    "num_microbatches",
    "microbatch_group_size_per_vp_stage",
    "batch_p2p_comm",
    "overlap_p2p_comm",
    "recompute_granularity",
    "recompute_method",
    "recompute_num_layers",
    "row_order",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("layouts")
    rows = make_rows(folder / "rows")
    more = {"reversed": {"row_order": "reversed"}, "tp2 recompute": {"recompute": Recompute()}}
    jobs = {"reference": REFERENCE, "wrong upstream": WRONG_UPSTREAM, **HONEST}
    paths = [write_job(folder, rows, name, *job, **more.get(name, {})) for name, job in jobs.items()]
    paths += [write_job(folder, rows, name, *job, faults=(name,)) for name, (*job, _) in FAULTY.items()]
    code, events, stderr = rehearse(*paths)
    assert code == 0, (events, stderr)
    assert events[0] == {"event": "ready"}
    return {path.stem: Run(folder / path.stem) for path in paths}


def differences(run: Run, reference: Run) -> tuple[list[float], list[float]]:
    """Relative differences in loss and in grad norm, step by step."""
    assert [record.step for record in run.steps] == list(range(STEPS))
    pairs = list(zip(run.steps, reference.steps, strict=True))
    return (
        [abs(a.loss - b.loss) / b.loss for a, b in pairs],
        [abs(a.grad_norm - b.grad_norm) / b.grad_norm for a, b in pairs],
    )


def gradient_differences(run: Run, reference: Run) -> dict[str, float]:
    mine, theirs = run.gradients, reference.gradients
    assert mine.keys() == theirs.keys()
    # An expert that no token chose has no gradient, under any layout.
    assert {name for name in mine if mine[name] == 0} == {name for name in theirs if theirs[name] == 0}
    return {name: abs(mine[name] - norm) / norm for name, norm in theirs.items() if norm > 0}


@pytest.mark.parametrize("name", HONEST)
def test_a_layout_trains_like_one_process(runs, name):
    loss, grad_norm = differences(runs[name], runs["reference"])
    assert max(loss) < 1e-5
    assert max(grad_norm) < 1e-4
    assert runs[name].outcome == {"status": "ok", "cause": None, "rank": None}
    assert runs[name].steps[0].tokens == GLOBAL_BATCH * ROW_TOKENS
    assert [r.supervised_tokens for r in runs[name].steps] == [r.supervised_tokens for r in runs["reference"].steps]


@pytest.mark.parametrize("name", HONEST)
def test_gradients_have_global_names_and_the_same_norms_under_every_layout(runs, name):
    assert max(gradient_differences(runs[name], runs["reference"]).values()) < 1e-4
    total = math.sqrt(sum(norm**2 for norm in runs[name].gradients.values()))
    assert total == pytest.approx(runs[name].steps[0].grad_norm, rel=1e-4)


def test_experts_and_layers_are_numbered_over_the_whole_model(runs):
    names = runs["tp2 pp2 ep2"].gradients.keys()
    assert {f"decoder.layers.{layer}.mlp.experts.7.linear_fc2.weight" for layer in range(4)} <= names
    assert not any("local" in name for name in names)


def test_the_reference_learns(runs):
    losses = [record.loss for record in runs["reference"].steps]
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("name", ["tp2 etp2", "tp2 recompute", "tp2 pp2 ep2", "pp2 vpp2 ep2", "reversed"])
def test_a_layout_changes_only_the_arguments_it_names(runs, name):
    mine, reference = runs[name].arguments, runs["reference"].arguments
    assert {key for key in mine.keys() | reference.keys() if mine.get(key) != reference.get(key)} <= LAYOUT_ARGUMENTS
    assert mine["use_distributed_optimizer"] is True
    assert mine["calculate_per_token_loss"] is True
    assert mine["lr"] == 1e-3


def test_expert_gradients_are_wrong_with_ep1_and_etp_other_than_tp(runs):
    """https://github.com/NVIDIA/Megatron-LM/pull/5916 mends it, after the release that runs here."""
    loss, grad_norm = differences(runs["wrong upstream"], runs["reference"])
    assert loss[0] < 1e-5
    assert grad_norm[0] > 1e-3
    blamed = {
        name for name, found in gradient_differences(runs["wrong upstream"], runs["reference"]).items() if found > 1e-4
    }
    experts = {name for name, norm in runs["reference"].gradients.items() if ".experts." in name and norm > 0}
    # An expert whose few tokens all lie on the first TP rank loses nothing there.
    assert blamed <= experts
    assert len(blamed) > 0.8 * len(experts)


def test_each_fault_leaves_the_arguments_as_they_are_and_says_so_in_the_log_only(runs):
    for name, (*_, honest) in FAULTY.items():
        assert runs[name].arguments == runs[honest].arguments
        assert f"deliberate faults: {name}" in runs[name].log
        assert "fault" not in runs[honest].log


def test_unreduced_norm_gradients_show_in_norm_weights_alone(runs):
    loss, grad_norm = differences(runs["norm_grads_unreduced_over_tp"], runs["reference"])
    assert loss[0] < 1e-5
    assert grad_norm[0] > 1e-4
    found = gradient_differences(runs["norm_grads_unreduced_over_tp"], runs["reference"])
    blamed = {name for name, difference in found.items() if difference > 1e-4}
    assert blamed
    assert all("norm.weight" in name for name in blamed)


def test_a_loss_scaled_by_dp_doubles_the_gradient_but_not_the_loss(runs):
    faulty, honest = runs["loss_scaled_by_dp"].steps, runs["dp2"].steps
    assert faulty[0].loss == pytest.approx(honest[0].loss, rel=1e-6)
    assert faulty[0].grad_norm == pytest.approx(2 * honest[0].grad_norm, rel=1e-4)


def test_a_dropped_microbatch_misses_from_the_tokens_and_changes_the_loss(runs):
    faulty, honest = runs["microbatch_dropped"], runs["reference"]
    assert all(a.supervised_tokens < b.supervised_tokens for a, b in zip(faulty.steps, honest.steps, strict=True))
    assert differences(faulty, honest)[0][0] > 1e-4


def test_shuffled_rows_change_the_loss_of_step_0(runs):
    assert differences(runs["rows_shuffled"], runs["reference"])[0][0] > 1e-4


def test_nan_shows_at_its_step_and_nowhere_else(runs):
    faulty, honest = runs["nan_at_step_3"].steps, runs["reference"].steps
    assert [math.isnan(record.loss) for record in faulty] == [step == 3 for step in range(STEPS)]
    assert faulty[-1].loss == honest[-1].loss


def test_a_higher_learning_rate_shows_after_the_first_update(runs):
    loss, _ = differences(runs["lr_x1.1"], runs["reference"])
    assert loss[0] == 0
    assert max(loss[1:]) > 1e-3
