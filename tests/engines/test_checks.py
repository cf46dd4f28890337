"""Each check answers right on the published entry, and wrong where a control changes one thing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from openrecipes.engines.checks import CHECKS
from openrecipes.errors import Finding, Severity
from openrecipes.recipe.checkable import Case, Outcome, Status

Change = Callable[..., Case]


def answer(id: str, case: Case) -> Outcome:
    return next(check for check in CHECKS if check.id == id).run(case)


def errors(outcome: Outcome) -> list[Finding]:
    return [finding for finding in outcome.findings if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("id", [check.id for check in CHECKS])
def test_the_published_entry_passes(id: str, change: Change) -> None:
    outcome = answer(id, change())
    assert outcome.status is Status.PASS
    assert not errors(outcome)


def test_the_launcher_module_of_the_seed_is_missing(change: Change) -> None:
    case = change(("  python3 train_async.py", "  python3 -m --async"))
    outcome = answer("C102", case)
    (finding,) = outcome.findings
    assert outcome.status is Status.FAIL
    assert finding.message.startswith("launcher module missing: `-m` is followed by the flag `--async`")
    assert "python3 train_async.py" in finding.remedy
    lines = case.path.read_text(encoding="utf-8").split("\n")
    assert finding.line
    assert finding.column
    assert lines[finding.line - 1][finding.column - 1 :].startswith("--async")
    assert [answer(check.id, case).status for check in CHECKS if check.id != "C102"] == [Status.PASS] * 6


@pytest.mark.parametrize(
    ("launcher", "status", "severities"),
    [
        ("python3 train.py", Status.PASS, []),
        ("python3 -u /root/slime/train_async.py", Status.PASS, []),
        ("ray job submit --address=x -- python3 train.py", Status.PASS, []),
        ("python3 mine.py", Status.PASS, [Severity.NOTE]),
        ("python3 -m pkg.train", Status.PASS, [Severity.NOTE]),
        ("python3 -c pass", Status.PASS, [Severity.NOTE]),
        ('python3 "$MAIN"', Status.PASS, [Severity.NOTE]),
        ("python3 -m train-async", Status.FAIL, [Severity.ERROR]),
        ("python3 -m", Status.FAIL, [Severity.ERROR]),
        ("python3 ''", Status.FAIL, [Severity.ERROR]),
        ("python3 -u", Status.FAIL, [Severity.ERROR]),
        ("python3", Status.FAIL, [Severity.ERROR]),
    ],
)
def test_launchers(launcher: str, status: Status, severities: list[Severity], run_with: Callable[[str], Case]) -> None:
    outcome = answer("C102", run_with(f"{launcher} --num-rollout 20"))
    assert (outcome.status, [finding.severity for finding in outcome.findings]) == (status, severities)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'no training here'", "no training command found"),
        ("python3 train.py; python3 train_async.py", "a second training command"),
        ("python3 train.py 'unclosed", "not shell syntax"),
        ("python3 train.py \\ \n  --num-rollout 20", "`--num-rollout` begins a command of its own"),
        ("python3 train.py \\\n# --lr 1 \\\n--num-rollout 20", "`--num-rollout` begins a command of its own"),
        ("a|" * 10_000, "expected at most"),
    ],
)
def test_one_command_fails(script: str, expected: str, run_with: Callable[[str], Case]) -> None:
    case = run_with(script)
    outcome = answer("C101", case)
    assert outcome.status is Status.FAIL
    assert any(expected in finding.message for finding in outcome.findings)
    assert answer("C103", case).status in (Status.NOT_CHECKED, Status.FAIL)


def test_an_unknown_engine_is_not_checked_and_says_so(change: Change) -> None:
    case = change(("framework: slime", "framework: torchtune"))
    outcome = answer("C101", case)
    assert outcome.status is Status.NOT_CHECKED
    assert [finding.field for finding in outcome.findings] == ["stack.framework"]
    assert {answer(id, case).status for id in ("C102", "C103", "C104", "C106")} == {Status.NOT_CHECKED}


@pytest.mark.parametrize(
    ("old", "new", "field", "text"),
    [
        ("--actor-num-nodes 6", "--actor-num-nodes 5", "gpu.count", "48 != 40"),
        ("--actor-num-gpus-per-node 8", "--actor-num-gpus-per-node 4", "gpu.per_node", "8 != 4"),
        ("--tensor-model-parallel-size 2", "--tensor-model-parallel-size 4", "layout.tp", "2 != 4"),
        ("--pipeline-model-parallel-size 6", "--pipeline-model-parallel-size 3", "layout.pp", "6 != 3"),
        ("--context-parallel-size 1", "--context-parallel-size 2", "layout.cp", "1 != 2"),
        ("--expert-model-parallel-size 8", "--expert-model-parallel-size=4", "layout.ep", "8 != 4"),
        ("--expert-tensor-parallel-size 1", "--expert-tensor-parallel-size 2", "layout.etp", "1 != 2"),
        ("--recompute-granularity full", "--recompute-granularity selective", "layout.recompute.granularity", "full"),
        ("--recompute-method uniform", "--recompute-method block", "layout.recompute.method", "uniform != block"),
        ("--recompute-num-layers 1", "--recompute-num-layers 2", "layout.recompute.num_layers", "1 != 2"),
        ("--max-tokens-per-gpu 8192", "--max-tokens-per-gpu 4096", "layout.max_tokens_per_gpu", "8192 != 4096"),
        ("--max-tokens-per-gpu 8192", "--max-tokens-per-gpu 16384", "layout.rows_per_microbatch", "1 != 2"),
        ("--global-batch-size 128", "--global-batch-size 64", "workload.global_batch", "128 != 64"),
        ("--num-rollout 20", "--num-rollout 10 --n-samples-per-prompt 1", "result.steps_per_run", "20 != 10"),
        ("--num-rollout 20", "--num-rollout 20 --n-samples-per-prompt 2", "result.steps_per_run", "20 != 40"),
        ("--debug-train-only", "--fp16", "workload.precision", "bf16 != fp16"),
        ("--debug-train-only", "--fp8-format e4m3", "workload.precision", "bf16 != fp8"),
        ("--debug-train-only", "--moe-token-dispatcher-type flex", "layout.dispatcher", "alltoall != flex"),
        ("--debug-train-only", "--num-virtual-stages-per-pipeline-rank 2", "layout.vpp", "1 != 2"),
        ("--debug-train-only", "--optimizer-cpu-offload", "layout.offload", "null != some"),
        ("--debug-train-only", "--decoder-first-pipeline-num-layers 8", "layout.layer_split", "null != 8"),
        ("--tensor-model-parallel-size 2", "--tensor-model-parallel-size two", "run", "expected a whole number"),
        ("--num-rollout 20", "--num-rollout", "run", "has no value"),
    ],
)
def test_a_field_that_differs_from_the_command(old: str, new: str, field: str, text: str, change: Change) -> None:
    outcome = answer("C103", change((old, new)))
    assert outcome.status is Status.FAIL
    assert any(found.field == field and text in found.message for found in errors(outcome)), outcome


def test_all_differences_come_at_once_each_with_both_values(change: Change) -> None:
    case = change(
        ("  tp: 2", "  tp: 4"), ("  ep: 8\n", "  ep: 4\n"), ("sequence_parallel: true", "sequence_parallel: false")
    )
    messages = [finding.message for finding in errors(answer("C103", case))]
    assert messages == [
        "layout.tp 4 != 2 of the command (--tensor-model-parallel-size 2)",
        "layout.ep 4 != 8 of the command (--expert-model-parallel-size 8)",
        "layout.sequence_parallel false != true of the command (--sequence-parallel)",
    ]


ETP = "    --expert-tensor-parallel-size 1 \\\n"


def test_a_default_is_decided_only_where_nothing_from_outside_could_give_the_flag(change: Change) -> None:
    doubtful = answer("C103", change((ETP, "")))
    assert doubtful.status is Status.NOT_CHECKED
    (warning,) = doubtful.findings
    assert warning.severity is Severity.WARNING
    assert "layout.etp 1 != 2" in warning.message
    assert "${MODEL_ARGS[@]}" in warning.message
    certain = answer("C103", change((ETP, ""), ("    ${MODEL_ARGS[@]} \\\n", "")))
    assert [finding.field for finding in errors(certain)] == ["layout.etp"]


def test_what_only_the_environment_decides_is_not_compared(change: Change) -> None:
    outcome = answer("C103", change(("--tensor-model-parallel-size 2", '--tensor-model-parallel-size "$TP"')))
    assert outcome.status is Status.PASS
    assert 'layout.tp (--tensor-model-parallel-size is `"$TP"`, known only outside the text)' in outcome.detail


def test_what_the_script_itself_settles_is_compared(change: Change) -> None:
    own = ("  export TORCHINDUCTOR", "  TP=2\n  export TORCHINDUCTOR")
    flag = ("--tensor-model-parallel-size 2", '--tensor-model-parallel-size "$TP"')
    assert "layout.tp" not in answer("C103", change(own, flag)).detail
    assert answer("C103", change((own[0], own[1].replace("2", "4")), flag)).status is Status.FAIL


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "export TORCHINDUCTOR_COMPILE_THREADS=1",
            "export TORCHINDUCTOR_COMPILE_THREADS=2",
            "is `1`, the script exports `2`",
        ),
        ("  export TORCHINDUCTOR_COMPILE_THREADS=1\n", "", "is not exported to the training command"),
        ("  export CUDA_", "  export EXTRA=1\n  export CUDA_", "which env does not list"),
        (
            "-gt 0 ] && echo 1 || echo 0)\n  python3",
            "-gt 1 ] && echo 1 || echo 0)\n  python3",
            "the script exports `$([",
        ),
    ],
)
def test_env_that_differs_from_the_exports(old: str, new: str, message: str, change: Change) -> None:
    (finding,) = errors(answer("C104", change((old, new))))
    assert message in finding.message


def test_a_sourced_file_may_export_the_missing_variable(change: Change) -> None:
    case = change(("  export TORCHINDUCTOR_COMPILE_THREADS=1\n", "  source setup.sh\n"))
    (finding,) = answer("C104", case).findings
    assert finding.severity is Severity.WARNING


def test_outside_variables_are_a_note(change: Change) -> None:
    (finding,) = answer("C105", change()).findings
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith("NVLINK_COUNT, MODEL_ARGS, HF_CKPT, TORCH_DIST, SFT_DATA")


def test_a_flag_that_overrides_another_value(change: Change) -> None:
    outcome = answer("C106", change(("--debug-train-only", "--lr 1e-4")))
    (finding,) = errors(outcome)
    assert "`--lr 1e-5` overrides `--lr 1e-4`" in finding.message
    assert answer("C106", change(("--debug-train-only", "--lr 1e-5"))).status is Status.PASS


def test_patches(change: Change) -> None:
    patch = "- patches/fla_blackwell_guard.py"
    case = change((patch, "- patches/mine.py"))
    (missing,) = answer("P101", case).findings
    assert (missing.severity, missing.field) == (Severity.WARNING, "patches[0]")
    beside = case.path.parents[1] / "patches" / "mine.py"
    beside.parent.mkdir()
    beside.touch()
    assert not answer("P101", case).findings
    assert answer("P101", change((f"patches:\n{patch}", "patches: []"))).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("path", ["/etc/hostname", "../entry.yaml", "patches/../../x", "C:/x", "a\\b"])
def test_a_patch_outside_the_repository_is_refused(path: str, change: Change) -> None:
    (finding,) = answer("P101", change(("- patches/fla_blackwell_guard.py", f"- '{path}'"))).findings
    assert "is not a path below the repository root" in finding.message


def test_nothing_in_a_recipe_is_run(change: Change, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    commands = f"touch {trap} && eval 'touch {trap}' | sh > {trap}"
    planted = f"  export A=$(touch {trap}) B=`touch {trap}`; {commands}\n  export CUDA_"
    case = change(("  export CUDA_", planted))
    assert [check.run(case).status for check in CHECKS]
    assert not trap.exists()


REHEARSAL = "openrecipes rehearse w.yaml --layout tp=2,pp=6,ep=8,etp=1 --ranks 48 --steps 20"


def test_a_rehearsal_is_compared_too(change: Change) -> None:
    case = change(("framework: slime", "framework: rehearsal"))
    recipe = case.recipe.model_copy(update={"run": REHEARSAL, "env": {}})
    rehearsal = Case(path=case.path, recipe=recipe, places=case.places)
    assert [finding.field for finding in answer("C103", rehearsal).findings] == [
        "gpu.type",
        "gpu.per_node",
        "workload.precision",
    ]
    assert answer("C101", rehearsal).status is Status.PASS
