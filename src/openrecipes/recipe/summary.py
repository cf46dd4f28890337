"""A recipe in a few lines, for people."""

from __future__ import annotations

from openrecipes.recipe.fields import Recipe


def summary(recipe: Recipe) -> list[tuple[str, str]]:
    """What a reader wants to know first, as (label, text) in the order to show it."""
    gpu, layout, workload, result = recipe.gpu, recipe.layout, recipe.workload, recipe.result
    instance = f", {gpu.instance}" if gpu.instance else ""
    first, last = result.window
    rows = [
        ("model", recipe.model),
        ("GPUs", f"{gpu.count} x {gpu.type}, {gpu.per_node} per node{instance}"),
        ("author", recipe.author.name),
        ("claimed status", recipe.status),
        ("layout", f"{layout.label}: {layout.summary}"),
        ("workload", f"{workload.global_batch} rows of {workload.row_tokens:,} tokens a step, {workload.precision}"),
        ("data", f"{recipe.dataset.name} ({recipe.dataset.license})"),
        (
            "speed",
            f"{result.tokens_per_s_per_gpu:,.2f} tokens/s/GPU, steps {first} to {last} of {result.steps_per_run}",
        ),
        ("step time CV", f"{result.step_time_cv_percent:.2f} %"),
        ("cost", _known_or_why(result.usd_per_million_tokens, "${:.2f} per million tokens", result.usd_note)),
        ("MFU", _known_or_why(result.mfu, "{:.2%}", result.mfu_note)),
        ("correctness", recipe.correctness.summary),
        ("framework", recipe.stack.framework),
        ("patches", ", ".join(recipe.patches) or "none"),
        ("evidence", recipe.evidence.manifest if recipe.evidence else "none"),
    ]
    return rows + [(f"changed {change.field}", change.why) for change in recipe.changes]


def _known_or_why(value: float | None, form: str, note: str | None) -> str:
    return form.format(value) if value is not None else f"unknown: {note or 'no reason is given'}"
