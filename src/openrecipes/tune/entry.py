"""The entry of a tune: every field from what was built, run, measured and judged."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openrecipes import __version__
from openrecipes.engines.rehearsal_command import render_command
from openrecipes.measure.window import Figures
from openrecipes.publish.entry import Attachment, publish_entry
from openrecipes.recipe import fields
from openrecipes.recipe.evidence import Arm, Kind
from openrecipes.recipe.parallel import Layout
from openrecipes.tune.arms import reference_plans
from openrecipes.tune.task import LOG, ROWS, STEPS, Task
from openrecipes.tune.trial import PASS, Trial
from openrecipes.tune.workload import Workload
from openrecipes.verify.components import ComponentVerdict, judge_components, parse_component_results
from openrecipes.verify.convergence import FP32_BOUNDS, Convergence
from openrecipes.verify.verdict import Result, overall

_RUN_FILES: dict[str, Kind] = {
    LOG: "log",
    STEPS: "steps",
    "resolved.json": "resolved_arguments",
    "gradients.json": "gradients",
    "environment.json": "environment",
}
_NO_PRICE = "CPU processes have no price per GPU-hour"
_NO_PEAK = "no dense peak FLOP/s is recorded for CPU processes"


def publish_winner(task: Task, best: Trial) -> Path:
    """Write the entry of the winning trial and its evidence below `<out>/entry`; the entry's path."""
    if best.verdict != PASS or best.figures is None or best.convergence is None:
        raise ValueError(f"{best.label}: {best.verdict}; only a trial that passed is published")
    created = datetime.datetime.fromtimestamp((task.out / best.record.arm / LOG).stat().st_mtime, datetime.UTC)
    model = task.workload.model_path(task.path).parent.name
    components = judge_components(parse_component_results(task.components.read_bytes(), task.components))
    return publish_entry(
        _compose(task, best, best.figures, best.convergence, components, model, created.date().isoformat()),
        _attachments(task, best),
        folder=task.out / "entry",
        name=f"{model}-{task.workload.ranks}rank-{best.record.arm}",
        producer=f"openrecipes {__version__}",
        created=created.isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def _compose(
    task: Task,
    best: Trial,
    figures: Figures,
    convergence: Convergence,
    components: tuple[Result, Sequence[ComponentVerdict]],
    model: str,
    today: str,
) -> fields.Recipe:
    """The recipe; `today` is the day of the measured run."""
    workload, layout = task.workload, best.layout
    environment = json.loads((task.out / best.record.arm / "environment.json").read_text(encoding="utf-8"))
    command = render_command(task.path.name, layout=layout, ranks=workload.ranks, steps=workload.steps)
    correctness = _correctness(workload, best, convergence, components, today)
    return fields.Recipe(
        schema_version=1,
        model=model,
        gpu=fields.Gpu(type="cpu", memory_gb=None, count=workload.ranks, per_node=workload.ranks, instance=None),
        author=fields.Author(name=workload.author.name, url=workload.author.url),
        status="verified" if correctness.result == "pass" else "measured",
        stack=_stack(environment["versions"], today),
        workload=fields.Workload(
            row_tokens=workload.data.row_tokens,
            rows="human conversations",
            global_batch=workload.global_batch,
            precision="fp32",
        ),
        dataset=_dataset(task.rows),
        layout=_layout(layout, workload),
        result=_result(workload, best, figures, today),
        correctness=correctness,
        env={},
        patches=(),
        run=command + "\n",
        notes=(
            "A rehearsal: real Megatron-Core on CPU processes at toy width. It shows that the layout runs and trains "
            "right; its speed says nothing about GPUs.\n"
        ),
    )


def _attachments(task: Task, best: Trial) -> list[Attachment]:
    """The files that support the entry, from the folders of the tune."""
    out = task.out
    references = [plan.arm for plan in reference_plans(task.workload)]
    arms: list[tuple[Arm, int, str]] = [
        ("candidate", 0, best.record.arm),
        *(("reference", run, arm) for run, arm in enumerate(references)),
    ]
    return [
        *(
            Attachment(source=out / folder / name, kind=kind, arm=arm, run=run)
            for arm, run, folder in arms
            for name, kind in _RUN_FILES.items()
        ),
        Attachment(source=out / ROWS / "manifest.json", kind="data_manifest"),
        Attachment(source=task.workload.model_path(task.path), kind="model_config"),
        Attachment(source=task.components, kind="component_results"),
        Attachment(source=out / "journal.jsonl", kind="journal"),
    ]


def _stack(versions: Mapping[str, str], today: str) -> fields.Stack:
    return fields.Stack(
        framework=f"rehearsal (openrecipes {versions['openrecipes']})",
        megatron_lm=f"megatron-core {versions['megatron-core']}",
        transformer_engine=None,
        pytorch=versions["torch"],
        cuda=None,
        nccl=None,
        deepep=None,
        python=versions["python"],
        fla=None,
        triton=None,
        network="gloo over loopback on one machine",
        runtime_fixes="openrecipes.rehearse.cpu_device: CPU stand-ins for Megatron-Core's CUDA calls",
        source=f"environment.json of the measured run, {today}",
    )


def _dataset(rows: Mapping[str, Any]) -> fields.Dataset:
    source, tokenizer = rows["inputs"]["source"], rows["inputs"]["tokenizer"]
    packing, chat = rows["inputs"]["packing"], rows["inputs"]["chat"]
    return fields.Dataset(
        name=f"conversations of the package {source['package']}",
        source=source["package"],
        revision=source["version"],
        license=source["license"],
        rows_sha256=rows["rows_sha256"],
        build=fields.DatasetBuild(
            name=f"{source['package']}-fixed{packing['row_tokens']}-seed{packing['seed']}",
            tokenizer=f"{tokenizer['name']} of {tokenizer['package']} {tokenizer['version']} ({tokenizer['license']})",
            loss_mask=chat["loss_mask"],
            rows=packing["rows"],
            row_tokens=packing["row_tokens"],
            padding_tokens=0,
            seed=packing["seed"],
            packing=(
                f"conversations in the order of {packing['permutation']}, joined with {packing['separator']} and cut "
                "into consecutive rows; rows without supervised targets are skipped"
            ),
            supervised_token_ratio=rows["supervised_token_ratio"],
            parquet_sha256=None,
            parquet_bytes=None,
            builder=f"openrecipes.data {__version__}",
        ),
    )


def _layout(layout: Layout, workload: Workload) -> fields.LayoutFields:
    recompute = "full recompute (uniform, 1 layer)" if workload.recompute else "no recompute"
    return fields.LayoutFields(
        label=layout.label(workload.ranks),
        summary=(
            f"{layout} on {workload.ranks} ranks; {recompute}; distributed optimizer; alltoall dispatcher; no offload"
        ),
        highlights=None,
        tp=layout.tp,
        pp=layout.pp,
        vpp=layout.vpp,
        cp=layout.cp,
        ep=layout.ep,
        etp=layout.etp,
        dp=layout.dp(workload.ranks),
        sequence_parallel=layout.sp,
        layer_split=None,
        max_tokens_per_gpu=None,
        rows_per_microbatch=layout.rows_per_microbatch,
        recompute=fields.RecomputeFields(granularity="full", method="uniform", num_layers=1)
        if workload.recompute
        else None,
        offload=None,
        dispatcher="alltoall",
    )


def _result(workload: Workload, best: Trial, figures: Figures, today: str) -> fields.Result:
    return fields.Result(
        tokens_per_s_per_gpu=round(figures.tokens_per_s_per_gpu, 2),
        usd_per_million_tokens=None,
        usd_note=_NO_PRICE,
        step_time_cv_percent=round(figures.step_time_cv_percent, 2),
        mfu=None,
        mfu_note=_NO_PEAK,
        active_params=None,
        measured=today,
        steps_per_run=workload.steps,
        window=workload.window,
        window_tokens=figures.window_tokens,
        runs=1,
        profiler=False,
        gpu_hours=round(workload.ranks * best.record.wall_s / 3600, 4),
        gpu_hours_note="processes x wall time of the run, from its start to its end",
    )


def _correctness(
    workload: Workload,
    best: Trial,
    convergence: Convergence,
    components: tuple[Result, Sequence[ComponentVerdict]],
    today: str,
) -> fields.Correctness:
    """The account. The trial passed, or it would not have won; the component tests are the machine's own."""
    component_result, tests = components
    whole = overall([component_result, convergence.result])
    counts = f"{len(tests)} component tests, {len(convergence.gates)} convergence gates"
    reference = f"{workload.reference_layout} on {workload.reference.ranks} rank(s)"
    return fields.Correctness(
        result=whole.value,
        summary=f"passed; {counts}" if whole is Result.PASS else f"component tests: {component_result.value}; {counts}",
        reference=f"{reference}, {workload.reference.runs} runs, all in the evidence",
        configuration="pass",
        component_tests=tuple(_component(test, today) for test in tests),
        convergence=fields.Convergence(
            steps=convergence.steps,
            result=convergence.result.value,
            correlation=convergence.correlation,
            final_loss_difference=convergence.final_loss_difference,
            pointwise_failures=convergence.pointwise_failures or 0,
            note=f"candidate arm: the measured run; {convergence.cause}",
        ),
        rules=(
            f"step 0 within {FP32_BOUNDS.step0_loss:g} in loss and {FP32_BOUNDS.step0_grad_norm:g} in grad norm, "
            f"every step within {FP32_BOUNDS.curve_loss:g} and {FP32_BOUNDS.curve_grad_norm:g}, all relative"
        ),
    )


def _component(test: ComponentVerdict, today: str) -> fields.ComponentTest:
    return fields.ComponentTest(
        test=test.test, shape=test.shape, gpu="cpu", date=today, result=test.result.value, detail=test.detail
    )
