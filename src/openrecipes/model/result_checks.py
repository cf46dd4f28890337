"""A104-A108: the result's derived numbers, and the machine they were measured on."""

from __future__ import annotations

from openrecipes.errors import Finding, Severity
from openrecipes.facts import Gpu, did_you_mean, gpu, gpus, instance, instances, model_config
from openrecipes.model.known import shape_of
from openrecipes.model.parameters import active_parameters
from openrecipes.recipe import arithmetic
from openrecipes.recipe.checkable import Case, Level, Outcome, check, failed, not_applicable, not_checked, passed

# Parts are sold under their physical memory and under the smaller usable one (B200: 192 and 180 GB).
MEMORY_TOLERANCE = 0.1


@check("A104", title="The window lies inside the run and holds the stated tokens", level=Level.CONSISTENT)
def window(case: Case) -> Outcome:
    """Speed is tokens over time in the window; if its tokens are not steps x global batch x row tokens, the speed is
    of something else.
    """
    result, workload = case.recipe.result, case.recipe.workload
    first, last = result.window
    derived = arithmetic.window_tokens(first, last, workload.global_batch, workload.row_tokens)
    agrees = derived.value == result.window_tokens
    tokens = derived.beside("window_tokens", result.window_tokens, agrees=agrees)
    speed = result.tokens_per_s_per_gpu
    step = arithmetic.mean_step_time_s(workload.global_batch, workload.row_tokens, speed, case.recipe.gpu.count)
    detail = f"{tokens}; last step {last} of {result.steps_per_run} counted from 0; implied mean step time {step} s"
    findings: list[Finding] = []
    if not agrees:
        remedy = f"write {derived.value}, or mend window, global_batch or row_tokens"
        findings.append(case.finding("A104", "result.window_tokens", tokens, remedy))
    if last >= result.steps_per_run:
        message = f"the window ends with step {last}, the run with step {result.steps_per_run - 1} (steps_per_run - 1)"
        remedy = "steps count from 0; end the window inside the run"
        findings.append(case.finding("A104", "result.window[1]", message, remedy))
    return failed(detail, *findings) if findings else passed(detail)


@check("A105", title="The price of a million tokens follows from a sourced price", level=Level.CONSISTENT)
def price(case: Case) -> Outcome:
    """A price is compared across clusters, so it must follow from the speed and a price per GPU-hour that anybody can
    look up. Allowed is the rounding of the printed figures: half a unit of the last digit of the price, and of
    the speed. Without a recorded price nothing is checked; `--usd-per-gpu-hour` replaces any recorded one.
    """
    result = case.recipe.result
    hourly, source = _usd_per_gpu_hour(case)
    stated, speed = result.usd_per_million_tokens, result.tokens_per_s_per_gpu
    if stated is None:
        if result.usd_note is None:
            message = "usd_per_million_tokens is null and usd_note does not say why"
            remedy = "state the price, or the reason in usd_note"
            return failed(message, case.finding("A105", "result.usd_per_million_tokens", message, remedy))
        at_price = f"; it would be {arithmetic.usd_per_million_tokens(hourly, speed)} USD" if hourly else ""
        return not_applicable(f"no price is stated: {result.usd_note}{at_price}")
    if hourly is None:
        return not_checked(f"no price per GPU-hour is known: {source}")
    derived = arithmetic.usd_per_million_tokens(hourly, speed)
    agrees = abs(stated - derived.value) <= arithmetic.rounding_tolerance(stated, speed)
    comparison = derived.beside("usd_per_million_tokens", stated, agrees=agrees)
    detail = f"{comparison}; price per GPU-hour from {source}"
    if agrees:
        return passed(detail)
    remedy = f"write {derived.value:.2f}, or give the price that was paid with --usd-per-gpu-hour"
    return failed(detail, case.finding("A105", "result.usd_per_million_tokens", detail, remedy))


def _usd_per_gpu_hour(case: Case) -> tuple[float | None, str]:
    """The price to use with where it comes from, or None with the reason."""
    if case.usd_per_gpu_hour is not None:
        return case.usd_per_gpu_hour, "--usd-per-gpu-hour"
    name = case.recipe.gpu.instance
    if name is None:
        return None, "the entry names no instance"
    if (found := instance(name)) is None:
        return None, f"instance `{name:.80}` has no recorded price ({did_you_mean(name, instances())})"
    return found.usd_per_gpu_hour, f"{found.name}, {found.gpus} GPUs, USD per hour {found.usd_per_hour}"


@check("A106", title="The MFU follows from a sourced peak and the stated rule", level=Level.CONSISTENT)
def utilisation(case: Case) -> Outcome:
    """MFU = 6 x active parameters x tokens/s/GPU / dense BF16 peak. Half of all published figures differ in the rule or
    take the peak with sparsity, twice as high, so both are fixed here. Allowed is the rounding of the printed
    figures: half a unit of the last digit of the MFU, and of the speed.
    """
    result, kind = case.recipe.result, gpu(case.recipe.gpu.type)
    if result.mfu is None:
        if result.mfu_note is not None:
            return not_applicable(f"no MFU is stated: {result.mfu_note}")
        message = "mfu is null and mfu_note does not say why"
        return failed(message, case.finding("A106", "result.mfu", message, "state the MFU, or the reason in mfu_note"))
    if (reason := _no_peak(case, kind)) is not None or kind is None:
        return not_checked(f"no peak is known: {reason}")
    if result.active_params is None:
        return not_checked("the entry states no active parameters")
    peak = kind.bf16_dense_flop_per_s
    derived = arithmetic.mfu(result.active_params.count, result.tokens_per_s_per_gpu, peak.value or 0)
    tolerance = arithmetic.rounding_tolerance(result.mfu, result.tokens_per_s_per_gpu)
    agrees = abs(result.mfu - derived.value) <= tolerance
    detail = f"{derived.beside('mfu', result.mfu, agrees=agrees)}; dense BF16 peak of {kind.name} {peak}"
    if agrees:
        return passed(detail)
    remedy = f"write {derived.value:.4f}, or mend the active parameters or the speed"
    return failed(detail, case.finding("A106", "result.mfu", detail, remedy))


def _no_peak(case: Case, kind: Gpu | None) -> str | None:
    precision = case.recipe.workload.precision
    if kind is None:
        return f"gpu.type `{case.recipe.gpu.type:.40}` is unknown, see A108"
    if precision != "bf16":
        return f"only BF16 peaks are recorded, and the workload is {precision}"
    return kind.bf16_dense_flop_per_s.reason


@check("A107", title="The active parameters follow from the model's config", level=Level.CONSISTENT)
def active(case: Case) -> Outcome:
    """The MFU stands on this count, and there is no agreed way to make it. Counted here: all text weights with two or
    more dimensions, without the token embedding, the routed experts at top_k / num_experts. It must be exact.
    """
    stated, shape = case.recipe.result.active_params, shape_of(case)
    if stated is None:
        return not_applicable("the entry states no active parameters")
    if isinstance(shape, str):
        return not_checked(shape)
    expected = active_parameters(shape)
    rule = "text weights of two or more dimensions without the embedding"
    routed = f", routed experts at {shape.experts.top_k} / {shape.experts.experts}" if shape.experts else ""
    derived = arithmetic.Derived(value=expected, expression=f"{rule}{routed}")
    detail = derived.beside("active_params", stated.count, agrees=stated.count == expected)
    notes: list[Finding] = []
    known = model_config(case.recipe.model)
    if known is not None and known.revision != stated.revision:
        message = f"compared with the config at revision {known.revision}, not {stated.revision:.80}"
        remedy = "nothing to mend if the shapes are the same in both"
        notes.append(case.finding("A107", "result.active_params.revision", message, remedy, severity=Severity.NOTE))
    if stated.count != expected:
        finding = case.finding("A107", "result.active_params.count", detail, f"write {expected}")
        return failed(detail, finding, *notes)
    return passed(detail, *notes)


@check("A108", title="GPU, memory, instance and node size agree with the facts", level=Level.CONSISTENT)
def machine(case: Case) -> Outcome:
    """Peak and price are looked up by these names. A GPU nobody knows has neither, and a node size that the instance
    does not have makes the layout a different one.
    """
    stated = case.recipe.gpu
    kind = gpu(stated.type)
    if kind is None:
        message = f"gpu.type `{stated.type:.40}` is not a known GPU"
        return failed(message, case.finding("A108", "gpu.type", message, did_you_mean(stated.type, gpus())))
    detail = f"{kind.name}, {stated.count:,} in nodes of {stated.per_node:,}"
    findings = [*_memory(case, kind), *_instance(case, kind)]
    if stated.count > stated.per_node and stated.count % stated.per_node:
        message = f"gpu.count {stated.count:,} is not a multiple of gpu.per_node {stated.per_node:,}"
        findings.append(
            case.finding("A108", "gpu.count", message, "trainers start the same number of ranks on every node")
        )
    if any(finding.severity is Severity.ERROR for finding in findings):
        return failed(detail, *findings)
    return passed(detail, *findings)


def _memory(case: Case, kind: Gpu) -> list[Finding]:
    stated, known = case.recipe.gpu.memory_gb, kind.memory_gb.value
    if known is None or stated == known:
        return []
    close = stated is None or abs(stated - known) <= MEMORY_TOLERANCE * known
    message = f"gpu.memory_gb is {'null' if stated is None else f'{stated:,}'}; {kind.name} has {kind.memory_gb} GB"
    severity = Severity.WARNING if close else Severity.ERROR
    return [case.finding("A108", "gpu.memory_gb", message, f"write {known:g}, or mend gpu.type", severity=severity)]


def _instance(case: Case, kind: Gpu) -> list[Finding]:
    stated = case.recipe.gpu
    if stated.instance is None:
        return []
    if (known := instance(stated.instance)) is None:
        message = f"nothing is recorded about the instance `{stated.instance:.80}`"
        remedy = did_you_mean(stated.instance, instances())
        return [case.finding("A108", "gpu.instance", message, remedy, severity=Severity.NOTE)]
    findings = []
    if known.gpu != kind.name:
        message = f"{known.name} carries {known.gpu}, gpu.type is {kind.name}"
        findings.append(case.finding("A108", "gpu.instance", message, "make GPU and instance agree"))
    if known.gpus != stated.per_node:
        message = f"{known.name} carries {known.gpus} GPUs, gpu.per_node is {stated.per_node:,}"
        findings.append(case.finding("A108", "gpu.per_node", message, f"write {known.gpus}"))
    return findings


CHECKS = (window, price, utilisation, active, machine)
