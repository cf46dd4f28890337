"""What others rely on: commands, their options and their help, held in one golden file.

A change of `tests/golden/cli-surface.txt` is a change of the contract: it belongs into CHANGELOG.md and docs/design.md.
"""

from __future__ import annotations

import inspect
import typing
from pathlib import Path

from openrecipes.cli.main import app

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/openrecipes"


def surface() -> str:
    """Every verb with its parameters as its function declares them."""
    lines = []
    verbs = [(command.name, command) for command in app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance
        verbs += [
            (f"{group.name} {command.callback.__name__}", command)
            for command in group.typer_instance.registered_commands
        ]
    for name, command in verbs:
        assert command.callback
        assert command.callback.__doc__
        lines += [f"openrecipes {name}", f"    {command.callback.__doc__.splitlines()[0]}"]
        hints = typing.get_type_hints(command.callback, include_extras=True)
        for field, parameter in inspect.signature(command.callback).parameters.items():
            kind, info = typing.get_args(hints[field])
            # Inside Annotated, typer takes the first spelling for its own `default`.
            spellings = [text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
            spelled = ", ".join(spellings) or field.upper()
            default = "required" if parameter.default is inspect.Parameter.empty else f"default {parameter.default}"
            lines.append(f"  {spelled} ({getattr(kind, '__name__', kind)}, {default}): {info.help}")
        lines.append("")
    return "\n".join(lines)


def test_the_surface_of_the_command_line(golden):
    golden("cli-surface.txt", surface())


def test_no_file_is_longer_than_500_lines():
    long = {path: n for path in SOURCE.rglob("*.py") if (n := len(path.read_text().splitlines())) > 500}
    assert long == {}


def test_every_stage_has_its_tests():
    stages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert {stage for stage in stages if not list((ROOT / "tests" / stage).glob("test_*.py"))} == set()
