"""Recipes to YAML: a whole entry written new, or single fields changed in a file that keeps its text.

Both go through ruamel.yaml with its implicit kinds switched off. A scalar is then the characters that
stand in the file, so that `3.10` or `1075.50` come out as they went in, and this module alone decides
how a new value is written.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString

from openrecipes.errors import UsageError
from openrecipes.recipe.fields import Recipe
from openrecipes.recipe.load import load_recipe, parse_recipe
from openrecipes.recipe.merge import merge_lines
from openrecipes.recipe.writing import write_whole

_IMPLICIT = yaml.resolver.Resolver()
_TEXT = "tag:yaml.org,2002:str"


def dump_recipe(recipe: Recipe) -> str:
    """The entry as YAML, fields in the order of the format; `load_recipe` reads an equal recipe from it.

    Optional fields that hold nothing are left out.
    """
    tree = _node(recipe.model_dump(by_alias=True, exclude_defaults=True))
    for name, text in (("run", recipe.run), ("notes", recipe.notes)):
        if text is not None and text.isprintable() and _fits_a_block(text):
            tree[name] = LiteralScalarString(text)  # also where it is a single line
    return _dump(tree)


def write_recipe(path: Path, recipe: Recipe) -> None:
    """Write a new entry, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    write_whole(path, dump_recipe(recipe).encode())


def edit_recipe(path: Path, changes: Mapping[str, Any]) -> None:
    """Set dotted fields such as `result.mfu` or `result.window[1]` and leave every other character alone.

    A value is what YAML can hold: None, a flag, a number, text, or a list or mapping of those. A field
    that is not there yet is added at the end of its mapping.

    Raises:
        UsageError: the file cannot be read or written, or a field has no parent to stand in.
        ContentError: the file is no recipe, or would be none with these values; nothing is written then.
    """
    load_recipe(path)
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    before = _dump(_round_trip().load(text))
    tree = _round_trip().load(text)
    for field, value in changes.items():
        _set(tree, field, value)
    after = _dump(tree)
    edited = merge_lines(text, before, after)
    if edited is None or parse_recipe(edited, path).recipe != parse_recipe(after, path).recipe:
        fields = ", ".join(changes)
        raise UsageError(f"{path}: {fields} cannot be set without laying out other lines anew; edit the file by hand")
    if edited != text:
        write_whole(path, edited.encode())


class _AsWritten(VersionedResolver):
    """Takes every plain scalar for text, both when reading and when writing."""

    @property
    def versioned_resolver(self) -> dict[Any, Any]:
        return {}


def _round_trip() -> YAML:
    engine = YAML()
    engine.Resolver = _AsWritten
    engine.preserve_quotes = True
    engine.width = 2**31  # never fold a line
    engine.indent(mapping=2, sequence=2, offset=0)
    return engine


def _dump(tree: CommentedMap) -> str:
    out = io.StringIO()
    _round_trip().dump(tree, out)
    return out.getvalue()


def _node(value: Any) -> Any:
    """A value as ruamel's nodes; scalars become the characters to write, quoted where YAML would misread them."""
    if isinstance(value, Mapping):
        return CommentedMap((_node(str(key)), _node(below)) for key, below in value.items())
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return CommentedSeq(_node(below) for below in value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value)


def _text(text: str) -> str:
    if not text.replace("\n", "").replace("\t", "").isprintable():
        return DoubleQuotedScalarString(text)  # the only style that can escape, as a carriage return must be
    if "\n" in text or "\t" in text:
        return LiteralScalarString(text) if _fits_a_block(text) else DoubleQuotedScalarString(text)
    return SingleQuotedScalarString(text) if _misread(text) else text


def _fits_a_block(text: str) -> bool:
    """Whether a literal block shows this text plainly: no leading blanks, none at the end of a line."""
    lines = text.split("\n")
    return lines[0] == lines[0].strip() != "" and all(line == line.rstrip() for line in lines)


def _misread(text: str) -> bool:
    """Whether a YAML 1.1 or 1.2 reader would take these characters, unquoted, for something else than text."""
    if _IMPLICIT.resolve(yaml.ScalarNode, text, (True, False)) != _TEXT or text.startswith("0o"):
        return True
    try:
        float(text)  # YAML 1.2 also takes `1e5` and `12e4567` for numbers
    except ValueError:
        return False
    return True


def _number(number: int | float) -> str:
    """Digits that every YAML reader takes for this number: YAML 1.1 wants a point before an exponent."""
    digits, e, exponent = repr(number).partition("e")
    return f"{digits}.0e{exponent}" if e and "." not in digits else digits + e + exponent


def _set(tree: CommentedMap, field: str, value: Any) -> None:
    *parents, last = _steps(field)
    at: Any = tree
    try:
        for step in parents:
            at = at[step]
        if not isinstance(at, CommentedSeq if isinstance(last, int) else CommentedMap):
            raise TypeError
        at[last] = _node(value)
    except (KeyError, IndexError, TypeError):
        raise UsageError(
            f"`{field}` has no place in this file; its parent is not there or is of another kind"
        ) from None


def _steps(field: str) -> list[str | int]:
    """`result.window[1]` as `["result", "window", 1]`."""
    steps: list[str | int] = []
    for part in field.split("."):
        name, *indices = part.replace("]", "").split("[")
        steps += [name, *(int(i) if i.isascii() and i.isdigit() else i for i in indices)]
    return steps
