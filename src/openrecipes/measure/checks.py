"""Checks of level `measured`: the figures of an entry, recomputed from its raw log."""

from __future__ import annotations

import json

from openrecipes.engines.steps import StepRecord
from openrecipes.errors import ContentError
from openrecipes.measure.evidence import disagreement, listed, log_reader, logged_steps, no_reader, steps_of
from openrecipes.measure.resolved import NOT_SET, resolved_of, stated_arguments
from openrecipes.measure.window import measure
from openrecipes.recipe.arithmetic import half_unit
from openrecipes.recipe.checkable import Case, Check, Level, Outcome, check, failed, not_checked, passed

NO_EVIDENCE = "the entry carries no evidence"


@check("M101", title="The raw log is in the evidence and holds the recorded steps", level=Level.MEASURED)
def raw_log(case: Case) -> Outcome:
    """A number that nobody can trace to what the trainer printed is a claim. The log of the measured run is read
    with its engine's own reader, and must give the records of the steps file, one by one.
    """
    logged = _logged(case)
    if isinstance(logged, str):
        return not_checked(logged)
    steps = steps_of(case.evidence, "candidate") if case.evidence else None
    if steps is None:
        return not_checked("the evidence lists no `steps` of the candidate arm")
    if found := disagreement(logged, steps):
        remedy = "make the steps file from the log; neither is ever edited"
        return failed(found, case.finding("M101", "evidence", found, remedy))
    return passed(f"{len(logged)} steps in the log, the same in the steps file")


@check("M102", title="Speed, its variation and the window's tokens follow from the log", level=Level.MEASURED)
def figures(case: Case) -> Outcome:
    """The figures people compare are recomputed from the raw log over the stated window. Each must agree with the
    entry within half a unit of the last digit that the entry shows.
    """
    logged = _logged(case)
    if isinstance(logged, str):
        return not_checked(logged)
    recipe, result = case.recipe, case.recipe.result
    if result.runs != 1:
        return not_checked(f"the figures are of {result.runs} runs; only those of one run are recomputed")
    found = measure(logged, window=result.window, gpus=recipe.gpu.count, path=case.path)
    compared = (
        ("result.tokens_per_s_per_gpu", result.tokens_per_s_per_gpu, found.tokens_per_s_per_gpu),
        ("result.step_time_cv_percent", result.step_time_cv_percent, found.step_time_cv_percent),
        ("result.window_tokens", result.window_tokens, found.window_tokens),
        ("result.steps_per_run", result.steps_per_run, len(logged)),
    )
    findings = []
    for field, stated, computed in compared:
        if abs(stated - computed) > half_unit(stated) + 1e-9 * abs(computed):
            message = f"{field.rpartition('.')[2]} {stated} != {computed:.10g} from the log"
            findings.append(
                case.finding("M102", field, message, f"write {computed:.6g}, or attach the log of that run")
            )
    detail = f"{found.formula} tokens/s/GPU, CV {found.step_time_cv_percent:.4g} %, steps {found.first}..{found.last}"
    return failed(detail, *findings) if findings else passed(detail)


@check("M103", title="The run's rows are the dataset's rows", level=Level.MEASURED)
def rows(case: Case) -> Outcome:
    """Speed and loss belong to particular rows. The manifest of the rows that were used is in the evidence, and its
    hash must be the entry's, or the entry describes other data.
    """
    evidence = case.evidence
    file = listed(evidence, "data_manifest") if evidence else None
    if evidence is None or file is None:
        return not_checked("the evidence lists no `data_manifest`" if evidence else NO_EVIDENCE)
    stated, found = case.recipe.dataset.rows_sha256, _rows_sha256(evidence.read(file))
    if found != stated:
        message = f"rows_sha256 {stated} != {found} of {file.path}"
        remedy = "give the hash of the rows that the run used"
        return failed(message, case.finding("M103", "dataset.rows_sha256", message, remedy))
    return passed(f"rows_sha256 {stated[:12]} in both")


@check("M104", title="The run had the entry's sizes", level=Level.MEASURED)
def sizes(case: Case) -> Outcome:
    """A log does not say which layout made it. The arguments that were really in force in the measured run are in the
    evidence, and must be the sizes that the entry states; otherwise its figures belong to another entry.
    """
    if case.evidence is None:
        return not_checked(NO_EVIDENCE)
    resolved = resolved_of(case.evidence, "candidate")
    if resolved is None:
        return not_checked("the evidence lists no `resolved_arguments` of the candidate arm")
    findings = []
    for field, argument, stated in stated_arguments(case.recipe):
        found = resolved.arguments.get(argument, NOT_SET)
        if found != stated or isinstance(found, bool) != isinstance(stated, bool):
            message = f"the entry states {stated}, the run had {argument} {found}"
            remedy = "state the sizes of the measured run, or attach the run of these sizes"
            findings.append(case.finding("M104", field, message, remedy))
    compared = len(stated_arguments(case.recipe))
    detail = f"{compared - len(findings)} of {compared} sizes are those of the run"
    return failed(detail, *findings) if findings else passed(detail)


@check("M105", title="Every file of the evidence is as it was recorded", level=Level.MEASURED)
def unaltered(case: Case) -> Outcome:
    """The entry pins its manifest by hash and the manifest pins every file, also those that no other check reads, such
    as the environment. Each file that is missing or altered by a single byte is named.
    """
    if case.evidence is None:
        return not_checked(NO_EVIDENCE)
    findings = []
    for file in case.evidence.files:
        try:
            case.evidence.read(file)
        except ContentError as error:
            findings += error.findings
    files = len(case.evidence.files)
    if findings:
        return failed(f"{len(findings)} of {files} files are missing or altered", *findings)
    return passed(f"{files} files with the recorded SHA-256")


def _logged(case: Case) -> list[StepRecord] | str:
    """The records in the candidate's raw log, or why there are none."""
    if case.evidence is None:
        return NO_EVIDENCE
    read_log = log_reader(case.recipe)
    if read_log is None:
        return no_reader(case.recipe)
    logged = logged_steps(case.evidence, "candidate", 0, read_log)
    return "the evidence lists no `log` of the candidate arm" if logged is None else logged


def _rows_sha256(manifest: bytes) -> str | None:
    """The hash in a rows manifest; None where it holds none."""
    try:
        found = json.loads(manifest)
    except (ValueError, RecursionError):
        return None
    value = found.get("rows_sha256") if isinstance(found, dict) else None
    return value if isinstance(value, str) else None


CHECKS: tuple[Check, ...] = (raw_log, figures, rows, sizes, unaltered)
