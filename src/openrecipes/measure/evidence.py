"""The steps of a run, read from the evidence of an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from openrecipes.engines import rehearsal
from openrecipes.engines.registry import engine_of
from openrecipes.engines.steps import StepRecord, read_steps
from openrecipes.errors import ContentError, Finding, Severity
from openrecipes.recipe.evidence import Arm, Evidence, EvidenceFile, Kind
from openrecipes.recipe.fields import Recipe

LogReader = Callable[[Iterable[str]], list[StepRecord]]
_LOG_READERS: dict[str, LogReader] = {"rehearsal": rehearsal.read_log}


def log_reader(recipe: Recipe) -> LogReader | None:
    """What reads the raw log of the entry's engine into step records; None for an engine whose logs are not read."""
    engine = engine_of(recipe)
    return _LOG_READERS.get(engine.name) if engine else None


def no_reader(recipe: Recipe) -> str:
    """The reason where `log_reader` has none."""
    return f"no reader for the log of `{recipe.stack.framework:.80}`; known engines are {', '.join(_LOG_READERS)}"


def listed(evidence: Evidence, kind: Kind, arm: Arm | None = None, run: int = 0) -> EvidenceFile | None:
    """The one file of this kind, arm and run; None where the manifest lists none.

    Raises:
        ContentError: the manifest lists several, so that it is open which one counts.
    """
    found = [file for file in evidence.find(kind) if (file.arm, file.run) == (arm, run)]
    if len(found) > 1:
        paths = ", ".join(file.path for file in found)
        message = f"{len(found)} files of kind {kind} for {arm or 'no arm'}, run {run}: {paths}"
        raise ContentError([_finding("M003", evidence.manifest, message, "list one file for each kind, arm and run")])
    return found[0] if found else None


def steps_of(evidence: Evidence, arm: Arm, run: int = 0) -> list[StepRecord] | None:
    """The records of a run's `steps` file; None where the manifest lists none.

    Raises:
        ContentError: the file was altered or is no `steps.jsonl`.
    """
    file = listed(evidence, "steps", arm, run)
    if file is None:
        return None
    path = evidence.folder / file.path
    return read_steps(path, _lines(evidence.read(file), path))


def logged_steps(evidence: Evidence, arm: Arm, run: int, read_log: LogReader) -> list[StepRecord] | None:
    """The records in a run's raw log; None where the manifest lists none.

    Raises:
        ContentError: the file was altered, or a step record in it is damaged.
    """
    file = listed(evidence, "log", arm, run)
    if file is None:
        return None
    path = evidence.folder / file.path
    # The ranks' own output may hold any bytes; a step record is ASCII, so a replaced byte in it is found.
    lines = evidence.read(file).decode("utf-8", errors="replace").splitlines()
    try:
        return read_log(lines)
    except ValueError as error:
        raise ContentError([_finding("M004", path, str(error), "attach the log as the run printed it")]) from None


def disagreement(logged: list[StepRecord], steps: list[StepRecord]) -> str | None:
    """What differs first between a log's records and a steps file's; None where they are the same."""
    for number, pair in enumerate(zip(logged, steps, strict=False)):
        said, kept = (record.to_json() for record in pair)
        if said != kept:
            return f"record {number}: the log has {said}, the steps file {kept}"
    if len(logged) != len(steps):
        return f"the log has {len(logged)} records, the steps file {len(steps)}"
    return None


def _lines(content: bytes, path: Path) -> list[str]:
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ContentError([_finding("M001", path, f"not UTF-8: {error}", "steps.jsonl is UTF-8 text")]) from None


def _finding(id: str, path: Path, message: str, remedy: str) -> Finding:
    return Finding(id=id, severity=Severity.ERROR, message=message, remedy=remedy, path=path)
