"""What a tune found, for a person and for a machine."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from openrecipes.plan.rank import reason as explain_prediction
from openrecipes.tune.trial import PASS, Trial, tied_with

if TYPE_CHECKING:
    from openrecipes.engines.rehearsal import RehearsalJob
    from openrecipes.tune.rehearsal import Rehearsed
    from openrecipes.tune.tuner import Proposal, Tuned

_STYLES = {PASS: "green", "inconclusive": "yellow"}


def proposal_tables(proposal: Proposal) -> Iterable[RenderableType]:
    """The trials that would run, most promising first, with the planner's reasons; and what it warns of."""
    table = _table(
        f"{len(proposal.references)} reference runs and {len(proposal.trials)} trials on {proposal.ranks} ranks, "
        "in this order; speed relative to the first"
    )
    table.add_column("layout", no_wrap=True)
    table.add_column("speed", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    best = proposal.trials[0][0].tokens_per_s
    messages: dict[str, str] = {}
    for prediction, warned in proposal.trials:
        why = Text(explain_prediction(prediction))
        for warning in warned:
            why.append(f", {warning.id}", style="yellow")
            messages.setdefault(warning.id, f"{warning.message}; {warning.url}")
        table.add_row(prediction.layout.label(proposal.ranks), f"{prediction.tokens_per_s / best:.2f}", why)
    yield table
    for id, message in messages.items():
        yield Text.assemble((f"{id}: ", "yellow"), message)


def proposal_json(proposal: Proposal) -> str:
    """The same as one JSON object."""
    best = proposal.trials[0][0].tokens_per_s
    trials = [
        {
            "layout": str(prediction.layout),
            "label": prediction.layout.label(proposal.ranks),
            "relative_speed": round(prediction.tokens_per_s / best, 4),
            "why": explain_prediction(prediction),
            "warnings": [str(warning) for warning in warned],
        }
        for prediction, warned in proposal.trials
    ]
    references = [{"layout": str(plan.layout), "label": plan.label} for plan in proposal.references]
    return _json(references=references, trials=trials)


def to_tables(tuned: Tuned) -> Iterable[RenderableType]:
    """The table of trials, fastest first; why some were rejected; the winner's margins; and the entry's path."""
    yield _trials(tuned)
    yield ""
    yield from _rejections(tuned.trials)
    if tuned.best is None:
        yield Text("no trial passed, so no entry was written", style="red")
        return
    yield _gates(tuned.best)
    yield ""
    ties = tied_with(tuned.best, list(tuned.trials))
    tie = f"; within its noise as fast: {', '.join(trial.label for trial in ties)}" if ties else ""
    yield Text.assemble("fastest that trains right: ", (tuned.best.label, "bold green"), tie)
    yield Text(f"entry: {tuned.entry}", no_wrap=True, overflow="ignore")
    yield Text(f"level: {tuned.level}, as `openrecipes check` computes it")


def _trials(tuned: Tuned) -> Table:
    table = _table(
        f"{len(tuned.trials)} trials: tokens/s of all ranks together; the gate that decided, and how much "
        "of its bound was used"
    )
    table.add_column("layout", no_wrap=True)
    for column in ("predicted", "measured", "CV %"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("gate", overflow="fold")  # a narrow column must not cut what decided
    for trial in sorted(tuned.trials, key=lambda trial: -(trial.tokens_per_s or 0.0)):
        figures = trial.figures
        table.add_row(
            trial.label,
            _number(trial.record.predicted_tokens_per_s),
            _number(trial.tokens_per_s),
            f"{figures.step_time_cv_percent:.1f}" if figures else "-",
            Text(trial.verdict, style="bold green" if trial is tuned.best else _STYLES.get(trial.verdict, "red")),
            trial.reason,
        )
    return table


def _rejections(trials: Iterable[Trial]) -> Iterable[RenderableType]:
    """Each kind of rejection once, with the layouts it struck and the numbers of the first of them."""
    kinds: dict[tuple[str, ...], list[Trial]] = {}
    for trial in trials:
        if trial.verdict != PASS:
            decided = trial.reason.split()[0] if trial.convergence else trial.cause
            kinds.setdefault((trial.verdict, decided, *(warning.id for warning in trial.warnings)), []).append(trial)
    for (verdict, *_), struck in kinds.items():
        first = struck[0]
        yield Text.assemble((f"{verdict}: ", "red"), ", ".join(trial.label for trial in struck))
        yield Padding(Text(f"{first.label}: {first.cause}"), (0, 0, 0, 2))
        for warning in first.warnings:
            yield Padding(Text(f"warned before it ran: {warning.id}: {warning.message}; {warning.url}"), (0, 0, 0, 2))
        yield ""


def _gates(best: Trial) -> Table:
    table = _table(f"{best.label} against the reference runs")
    for column in ("gate", "result", "measured and bound"):
        table.add_column(column, overflow="fold")
    for gate in best.convergence.gates if best.convergence else ():
        table.add_row(gate.id, gate.result.value, gate.detail)
    return table


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 0),  # so that the longest layout fits in 80 columns
        show_edge=False,
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def to_json(tuned: Tuned) -> str:
    """The whole result as one JSON object."""
    return _json(
        ok=tuned.entry is not None,
        entry=None if tuned.entry is None else str(tuned.entry),
        level=None if tuned.entry is None else str(tuned.level),
        best=None if tuned.best is None else str(tuned.best.layout),
        trials=[_trial_json(trial) for trial in tuned.trials],
    )


def _json(*, ok: bool = True, **content: object) -> str:
    found = {"format_version": 1, "ok": ok, "findings": [], **content}
    return json.dumps(_without_nan(found), indent=2, allow_nan=False)


def _without_nan(value: Any) -> Any:
    """The value with null for NaN and the infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _trial_json(trial: Trial) -> dict[str, Any]:
    gates = trial.convergence.gates if trial.convergence else ()
    return {
        "layout": str(trial.layout),
        "label": trial.label,
        "predicted_tokens_per_s": trial.record.predicted_tokens_per_s,
        "measured_tokens_per_s": trial.tokens_per_s,
        "step_time_cv_percent": trial.figures.step_time_cv_percent if trial.figures else None,
        "verdict": trial.verdict,
        "cause": trial.cause,
        "warnings": [str(warning) for warning in trial.warnings],
        "wall_s": trial.record.wall_s,
        "gates": [
            {
                "id": g.id,
                "result": g.result.value,
                "measured": g.measured,
                "bound": g.bound,
                "at": g.at,
                "detail": g.detail,
            }
            for g in gates
        ],
    }


def job_json(job: RehearsalJob) -> str:
    """What a rehearsal would run, as one JSON object; the layout has every default resolved."""
    return _json(job=dataclasses.asdict(job))


def steps_table(rehearsed: Rehearsed) -> Table:
    """Every step of a rehearsal."""
    title = f"{rehearsed.layout.label(rehearsed.ranks)} on {rehearsed.ranks} ranks: {rehearsed.layout}"
    table = _table(title)
    for column in ("step", "loss", "grad norm", "step time, s", "tokens/s"):
        table.add_column(column, justify="right")
    for record in rehearsed.steps:
        table.add_row(
            str(record.step),
            f"{record.loss:.6f}",
            f"{record.grad_norm:.6f}",
            f"{record.step_time_s:.3f}",
            f"{record.tokens / record.step_time_s:,.0f}",
        )
    return table


def steps_json(rehearsed: Rehearsed) -> str:
    """A rehearsal as one JSON object."""
    return _json(
        layout=str(rehearsed.layout),
        ranks=rehearsed.ranks,
        steps=[json.loads(record.to_json()) for record in rehearsed.steps],
        out=str(rehearsed.out),
    )
