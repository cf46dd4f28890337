"""Checks of the command and of what it needs (C101 to C106, P101), all of level `consistent`."""

from __future__ import annotations

from openrecipes.engines.flags import read_flags
from openrecipes.engines.interface import Setting, WordProblem
from openrecipes.engines.patches import patch_problem
from openrecipes.engines.registry import ENGINES
from openrecipes.engines.run_block import RunBlock, at_place, read_run_block, word_finding
from openrecipes.engines.values import outside_variables
from openrecipes.engines.words import Word
from openrecipes.errors import Finding, Severity
from openrecipes.recipe.checkable import Case, Check, Level, Outcome, check, failed, not_applicable, not_checked, passed

_NO_COMMAND = "there is no single training command to look at (C101)"


@check("C101", title="The command parses and starts one training run", level=Level.CONSISTENT)
def one_command(case: Case) -> Outcome:
    """An entry is one run. Its `run` text must be a shell script that holds exactly one training command of the engine
    that `stack.framework` names. It is parsed, never run.
    """
    block = read_run_block(case)
    if block.engine is None:
        known = ", ".join(ENGINES)
        message = f"the commands of `{case.recipe.stack.framework:.60}` are not read; engines: {known}"
        remedy = f"let stack.framework begin with one of {known}"
        return not_checked(message, case.finding("C101", "stack.framework", message, remedy, severity=Severity.WARNING))
    findings = [
        at_place(
            case,
            case.finding("C101", "run", problem.message, "write the command as a shell script"),
            line=problem.line,
            column=problem.column,
        )
        for problem in block.script.problems
    ]
    if findings:
        return failed(f"{len(findings)} place(s) in the script are not shell syntax", *findings)
    findings = [word_finding(case, "C101", problem) for problem in _cut_off(block)]
    training = block.training
    if not training:
        message = f"no training command found, expected `{block.engine.command}`"
        findings.append(case.finding("C101", "run", message, "give the command that starts the run"))
    findings += [
        word_finding(case, "C101", WordProblem(message=message, remedy="keep one run an entry", at=extra.words[0]))
        for extra in training[1:]
        for message in [f"a second training command; the first is in line {training[0].command.line} of the script"]
    ]
    detail = f"{len(block.commands)} command(s), {len(training)} of them training runs of {block.engine.name}"
    return failed(detail, *findings) if findings else passed(detail)


@check("C102", title="The launcher is told what to run", level=Level.CONSISTENT)
def launcher(case: Case) -> Outcome:
    """A command that names no program fails on every machine, after the cluster has been reserved. `python3 -m` must be
    followed by a module, `python3` by a file; a file that stock slime does not have is noted.
    """
    block = read_run_block(case)
    command = block.only
    if command is None or block.engine is None:
        return not_checked(_NO_COMMAND)
    findings = [word_finding(case, "C102", problem) for problem in block.engine.launch_problems(command.words)]
    detail = " ".join(word.source for word in command.words[:3])
    return _outcome(f"`{detail} ...`", findings)


@check("C103", title="The fields say what the command does", level=Level.CONSISTENT)
def fields(case: Case) -> Outcome:
    """People choose by the fields and run the command, so both must describe the same run. Flags, the trainer's
    defaults and the values it forces all count. What only the environment decides is not compared, and is listed.
    """
    block = read_run_block(case)
    command = block.only
    if command is None or block.engine is None:
        return not_checked(_NO_COMMAND)
    reading = block.engine.read(command.words, case.recipe)
    findings = [word_finding(case, "C103", problem) for problem in reading.problems]
    wrong = [setting for setting in reading.settings if setting.stated != setting.found]
    outside = ", ".join(f"`{word.source}`" for word in read_flags(command.words).may_hold_more)
    findings += [_mismatch(case, setting, outside) for setting in wrong]
    detail = f"{len(reading.settings) - len(wrong)} of {len(reading.settings)} settings agree"
    if reading.open:
        detail += "; not compared: " + "; ".join(f"{field} ({reason})" for field, reason in reading.open)
    if wrong and not any(setting.certain for setting in wrong) and not reading.problems:
        return not_checked(f"{detail}; {outside} may settle the others", *findings)
    return _outcome(detail, findings)


@check("C104", title="`env` is what the script exports", level=Level.CONSISTENT)
def environment(case: Case) -> Outcome:
    """Variables change numerics and speed as flags do. What the entry lists under `env` must be what the script exports
    to the training command, text for text; a value that a shell computes is compared as it is written.
    """
    command = read_run_block(case).only
    if command is None:
        return not_checked(_NO_COMMAND)
    stated, exported = case.recipe.env, command.environment
    findings = []
    for name in sorted(stated.keys() | exported.keys()):
        word = exported.get(name)
        if name not in exported:
            message = f"{name}={stated[name]} is not exported to the training command"
            severity = Severity.WARNING if command.others_may_export else Severity.ERROR
            remedy = f"write `export {name}=...` before the command, or take it out of env"
            findings.append(case.finding("C104", f"env.{name}", message, remedy, severity=severity))
        elif name not in stated:
            text = word.source if word else "(a value from outside)"
            message = f"the script exports {name}={text}, which env does not list"
            findings.append(case.finding("C104", "env", message, f"add {name} to env"))
        elif word and stated[name] not in (word.text, word.source):
            message = f"env.{name} is `{stated[name]}`, the script exports `{word.source}`"
            findings.append(case.finding("C104", f"env.{name}", message, "write the same text in both places"))
    return _outcome(f"{len(stated)} in env, {len(exported)} exported", findings)


@check("C105", title="What the command needs from outside is named", level=Level.CONSISTENT)
def outside(case: Case) -> Outcome:
    """Variables that the script reads and never sets must come from whoever runs it. They are listed, so that nobody
    finds out on the cluster; they are no fault.
    """
    script = read_run_block(case).script
    if script.problems:
        return not_checked("the script cannot be read (C101)")
    names = outside_variables(script)
    if not names:
        return passed("the script sets every variable that it reads")
    message = f"the command needs these variables from outside: {', '.join(names)}"
    remedy = "set them before you run the command"
    return passed(", ".join(names), case.finding("C105", "run", message, remedy, severity=Severity.NOTE))


@check("C106", title="No flag is overridden by a later one", level=Level.CONSISTENT)
def repeated_flags(case: Case) -> Outcome:
    """Of two equal flags the trainers' parser keeps the last and says nothing, so that the first one is read by people
    and by nobody else.
    """
    command = read_run_block(case).only
    if command is None:
        return not_checked(_NO_COMMAND)
    flags = read_flags(command.words)
    findings = [
        word_finding(
            case,
            "C106",
            WordProblem(
                message=f"`{later.text}` overrides `{earlier.text}` of line {earlier.at.line} of the script",
                remedy=f"keep one {later.name}",
                at=later.at,
            ),
        )
        for earlier, later in flags.repeated()
    ]
    return _outcome(f"{len(flags.flags)} flags", findings)


@check("P101", title="The named patches exist", level=Level.CONSISTENT)
def patches(case: Case) -> Outcome:
    """A run depends on its patches as on its flags. A path is looked for in the folders above the entry and among the
    files that come with this tool; one that is in neither may exist elsewhere, so it is a warning.
    """
    named = case.recipe.patches
    if not named:
        return not_applicable("the entry names no patch")
    findings = []
    for i, path in enumerate(named):
        problem = patch_problem(path, case.path)
        if problem:
            remedy = "name a file relative to the repository root, or add it there"
            field = f"patches[{i}]"
            findings.append(case.finding("P101", field, problem, remedy, severity=Severity.WARNING))
    return _outcome(f"{len(named) - len(findings)} of {len(named)} found", findings)


def _cut_off(block: RunBlock) -> list[WordProblem]:
    """Commands that begin with a flag: the line above was meant to go on, and does not."""
    remedy = "end the line above in a backslash with nothing after it, and put no comment between"
    return [
        WordProblem(message=f"`{word.source}` begins a command of its own", remedy=remedy, at=word)
        for word in (command.command.words[0] for command in block.commands if command.command.words)
        if _is_flag(word)
    ]


def _is_flag(word: Word) -> bool:
    return word.value is not None and word.value.startswith("-")


def _mismatch(case: Case, setting: Setting, outside: str) -> Finding:
    name = setting.field
    message = f"{name} {_shown(setting.stated)} != {_shown(setting.found)} of the command ({setting.because})"
    if not setting.certain:
        message += f", unless {outside} gives the flag"
    remedy = f"write the value that was run in both places ({name} and the command)"
    severity = Severity.ERROR if setting.certain else Severity.WARNING
    return case.finding("C103", name, message, remedy, severity=severity)


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _outcome(detail: str, findings: list[Finding]) -> Outcome:
    wrong = any(finding.severity is Severity.ERROR for finding in findings)
    return failed(detail, *findings) if wrong else passed(detail, *findings)


CHECKS: tuple[Check, ...] = (one_command, launcher, fields, environment, outside, repeated_flags, patches)
