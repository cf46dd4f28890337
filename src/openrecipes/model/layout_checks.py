"""A101-A103, A109-A112: the layout against the GPUs, the batch, the model and the rows."""

from __future__ import annotations

from collections.abc import Callable

from openrecipes.errors import Finding, Severity
from openrecipes.model.known import shape_of
from openrecipes.model.shape import LayerType, ModelShape
from openrecipes.recipe import arithmetic
from openrecipes.recipe.checkable import Case, Level, Outcome, check, failed, not_applicable, not_checked, passed
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.parallel import Layout


def parallel_sizes(recipe: Recipe) -> Layout:
    """The bare parallel sizes of a recipe's layout."""
    stated = recipe.layout
    return Layout(
        tp=stated.tp,
        pp=stated.pp,
        vpp=stated.vpp,
        cp=stated.cp,
        ep=stated.ep,
        etp=stated.etp,
        rows_per_microbatch=stated.rows_per_microbatch,
        sp=stated.sequence_parallel,
    )


def _outcome(detail: str, findings: list[Finding]) -> Outcome:
    if any(finding.severity is Severity.ERROR for finding in findings):
        return failed(detail, *findings)
    return passed(detail, *findings)


@check("A101", title="DP follows from the GPU count and the layout", level=Level.CONSISTENT)
def data_parallel(case: Case) -> Outcome:
    """DP is no free choice: it is what TP, PP and CP leave of the GPUs. A wrong one makes figures per rank wrong."""
    layout, gpus, stated = parallel_sizes(case.recipe), case.recipe.gpu.count, case.recipe.layout.dp
    derived = arithmetic.dp(layout, gpus)
    detail = derived.beside("dp", stated, agrees=derived.value == stated)
    ranks = layout.tp * layout.pp * layout.cp
    if ranks > gpus:
        product = f"tp {layout.tp} x pp {layout.pp} x cp {layout.cp}"
        message = f"the layout needs {product} = {ranks:,} ranks, more than gpu.count {gpus:,}"
        return failed(detail, case.finding("A101", "layout", message, f"use {ranks:,} GPUs or smaller sizes"))
    if not derived.is_whole:
        remedy = f"make gpu.count a multiple of tp x pp x cp = {ranks:,}"
        return failed(detail, case.finding("A101", "gpu.count", detail, remedy))
    if derived.value != stated:
        return failed(
            detail, case.finding("A101", "layout.dp", detail, f"write dp: {derived.value}, or mend the sizes")
        )
    return passed(detail)


@check("A102", title="The expert groups fit the GPU count", level=Level.CONSISTENT)
def expert_parallel(case: Case) -> Outcome:
    """Dense and expert groups are both cut from the same ranks, so the GPU count must be a multiple of
    PP * lcm(TP * CP, ETP * EP). Trainers notice only when the process groups are made, on all GPUs.
    """
    layout, gpus = parallel_sizes(case.recipe), case.recipe.gpu.count
    edp, minimum = arithmetic.edp(layout, gpus), arithmetic.minimum_gpus(layout)
    detail = f"edp = {edp}; fewest GPUs = {minimum}"
    if gpus < minimum.value:
        message = f"the layout needs {minimum} GPUs, more than gpu.count {gpus:,}"
        return failed(
            detail, case.finding("A102", "gpu.count", message, f"use {minimum.value:,} GPUs or smaller sizes")
        )
    if gpus % minimum.value:
        message = f"gpu.count {gpus:,} is not a multiple of {minimum} (edp = {edp})"
        return failed(detail, case.finding("A102", "gpu.count", message, "change the GPU count or the sizes"))
    return passed(detail)


@check("A103", title="Each DP rank gets a whole number of micro-batches", level=Level.CONSISTENT)
def whole_microbatches(case: Case) -> Outcome:
    """A global batch that does not divide over the DP ranks is refused by the trainer, or silently trained short."""
    layout, dp = parallel_sizes(case.recipe), arithmetic.dp(parallel_sizes(case.recipe), case.recipe.gpu.count)
    if not isinstance(dp.value, int):
        return not_checked(f"DP is not whole ({dp}), see A101")
    derived = arithmetic.microbatches(layout, dp.value, case.recipe.workload.global_batch)
    detail = f"micro-batches per DP rank = {derived}"
    if derived.is_whole:
        return passed(detail)
    unit = dp.value * layout.rows_per_microbatch
    remedy = f"make the global batch a multiple of dp x rows_per_microbatch = {unit:,}"
    return failed(detail, case.finding("A103", "workload.global_batch", detail, remedy))


@check("A109", title="The label names the sizes of the layout", level=Level.CONSISTENT)
def label(case: Case) -> Outcome:
    """Tables show the label, not the fields: a label left over from another layout misleads every reader."""
    stated, dp = case.recipe.layout, arithmetic.dp(parallel_sizes(case.recipe), case.recipe.gpu.count)
    sizes = {name: getattr(stated, name) for name in ("tp", "pp", "vpp", "cp", "ep", "etp")}
    # The derived DP, so that a wrong `layout.dp` is reported once, by A101.
    sizes["dp"] = dp.value if dp.is_whole else stated.dp
    named = _sizes_in(stated.label)
    if not named:
        return not_applicable("the label names no parallel size")
    wrong = [
        f"{name.upper()}{size} (the layout has {name} {sizes[name]:,})" for name, size in named if sizes[name] != size
    ]
    detail = f"label `{stated.label:.80}`: {', '.join(f'{name} {size}' for name, size in named)}"
    if not wrong:
        return passed(detail)
    message = f"the label `{stated.label:.80}` says {', '.join(wrong)}"
    return failed(detail, case.finding("A109", "layout.label", message, "name the sizes of this layout"))


def _sizes_in(label: str) -> list[tuple[str, int]]:
    """The words of a label that are a size's name and a number, such as `TP2`."""
    found = []
    for word in label.replace(",", " ").split():
        name = word.rstrip("0123456789").casefold()
        digits = word[len(name) :]
        if name in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp") and 0 < len(digits) <= 18:
            found.append((name, int(digits)))
    return found


@check("A110", title="The token bound of a micro-batch holds its rows", level=Level.CONSISTENT)
def token_bound(case: Case) -> Outcome:
    """With dynamic batches the trainer fills a micro-batch up to max_tokens_per_gpu x CP. A longer row is neither
    cut nor refused: it travels alone, and the bound on memory that the entry states does not hold.
    """
    layout, row_tokens = case.recipe.layout, case.recipe.workload.row_tokens
    if layout.max_tokens_per_gpu is None:
        return not_applicable("the layout states no max_tokens_per_gpu")
    bound, rows = layout.max_tokens_per_gpu * layout.cp, layout.rows_per_microbatch
    cap = f"max_tokens_per_gpu {layout.max_tokens_per_gpu:,} x cp {layout.cp} = {bound:,}"
    detail = f"{cap}, rows_per_microbatch {rows} x row_tokens {row_tokens:,} = {rows * row_tokens:,}"
    field, fitting, findings = "layout.max_tokens_per_gpu", max(bound // row_tokens, 1), []
    if bound < row_tokens:
        message = f"{cap} is below row_tokens {row_tokens:,}: every row is longer than the bound and travels alone"
        remedy = f"state the true bound, {-(-row_tokens // layout.cp):,} or more"
        findings.append(case.finding("A110", field, message, remedy, severity=Severity.WARNING))
    if rows > fitting:
        message = f"{cap} holds {fitting} row(s) of {row_tokens:,} tokens, not rows_per_microbatch {rows}"
        findings.append(
            case.finding("A110", "layout.rows_per_microbatch", message, f"write {fitting}, or raise the bound")
        )
    if rows < fitting:
        message = (
            f"{cap} holds {fitting} rows of {row_tokens:,} tokens: dynamic batches may put more than {rows} in one"
        )
        remedy = f"lower the bound to {rows * row_tokens // layout.cp:,}, or state the rows that were packed"
        findings.append(case.finding("A110", field, message, remedy, severity=Severity.WARNING))
    return _outcome(detail, findings)


@check("A111", title="Layers, heads and experts divide over the layout", level=Level.CONSISTENT)
def divisibility(case: Case) -> Outcome:
    """What a layout cuts, it must cut evenly: layers over stages, heads over TP, experts over EP. Some trainers
    refuse at once, others only when the model is built on all GPUs.
    """
    shape = shape_of(case)
    if isinstance(shape, str):
        return not_checked(shape)
    layout, findings, held = case.recipe.layout, [], []

    def divides(field: str, whole: int, what: str, parts: int, by: str, severity: Severity = Severity.ERROR) -> None:
        if whole % parts == 0:
            held.append(f"{what} {whole:,} / {by} {parts:,} = {whole // parts:,}")
            return
        message = f"{what} {whole:,} / {by} {parts:,} = {whole / parts:.5g}, not a whole number"
        remedy = f"choose {by} as a divisor of {whole:,}"
        findings.append(case.finding("A111", f"layout.{field}", message, remedy, severity=severity))

    _check_stages(case, shape, divides, findings)
    divides("tp", shape.attention.heads, "query heads", layout.tp, "tp")
    if layout.tp % shape.attention.kv_heads:  # with more TP ranks than KV heads, each head is copied whole
        divides("tp", shape.attention.kv_heads, "KV heads", layout.tp, "tp")
    if LayerType.LINEAR_ATTENTION in shape.layer_types:
        # slime's wrapper of the HF layer computes all of it on every rank, so its heads are never cut.
        severity = Severity.NOTE if case.recipe.stack.engine == "slime" else Severity.ERROR
        heads = shape.gated_delta_net.key_heads
        divides("tp", heads, "gated-delta-net key heads", layout.tp * layout.cp, "tp x cp", severity)
    if shape.experts is not None:
        divides("ep", shape.experts.experts, "experts", layout.ep, "ep")
        divides("etp", shape.experts.width, "expert width", layout.etp, "etp")
    elif layout.ep > 1:
        message = f"ep {layout.ep} on a model without experts"
        findings.append(case.finding("A111", "layout.ep", message, "write ep: 1"))
    return _outcome("; ".join(held) or "nothing divides", findings)


def _check_stages(case: Case, shape: ModelShape, divides: Callable[..., None], findings: list[Finding]) -> None:
    layout = case.recipe.layout
    if layout.layer_split is None:
        by = "pp" if layout.vpp == 1 else "pp x vpp"
        divides("pp", shape.layers, "layers", layout.pp * layout.vpp, by)
        return
    total, stages = sum(layout.layer_split), len(layout.layer_split)
    if total != shape.layers or stages != layout.pp:
        message = (
            f"layer_split places {total} layers on {stages} stages; the model has {shape.layers}, pp is {layout.pp}"
        )
        remedy = "name the layers of each stage, or write null for an even split"
        findings.append(case.finding("A111", "layout.layer_split", message, remedy))


@check("A112", title="The rows are those of the workload, and enough of them", level=Level.CONSISTENT)
def rows(case: Case) -> Outcome:
    """Speed depends on the row length, so the rows that were built must be as long as the ones the entry was measured
    on; and a run that needs more rows than there are repeats some, which changes its loss curve.
    """
    build, workload, steps = case.recipe.dataset.build, case.recipe.workload, case.recipe.result.steps_per_run
    needed, findings = steps * workload.global_batch, []
    use = f"{steps} steps x {workload.global_batch} rows = {needed:,}"
    detail = f"row_tokens {build.row_tokens:,}; {build.rows:,} rows built, {use} used"
    if build.row_tokens != workload.row_tokens:
        message = f"rows of {build.row_tokens:,} tokens were built; workload.row_tokens is {workload.row_tokens:,}"
        findings.append(case.finding("A112", "dataset.build.row_tokens", message, "make the two agree"))
    if build.rows < needed:
        message = (
            f"{build.rows:,} rows for {steps} steps x {workload.global_batch} rows = {needed:,}: some are seen again"
        )
        remedy = "build more rows, or say in the notes that rows repeat"
        findings.append(case.finding("A112", "dataset.build.rows", message, remedy, severity=Severity.NOTE))
    return _outcome(detail, findings)


CHECKS = (data_parallel, expert_parallel, whole_microbatches, label, token_bound, divisibility, rows)
