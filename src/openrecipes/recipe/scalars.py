"""Nodes to Python values, as the schema of each field directs.

YAML's own guesses are what turns the version `3.10` into 3.1, the short hash `12e4567` into infinity
and `no` into false. Here the field decides: where it holds text, the characters stay as written; where
it holds a number, only a plain JSON number is one. A text that its field does not take is passed on as
it is, for the typed model to refuse.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from openrecipes.recipe.checkable import Place
from openrecipes.recipe.reader import MappingNode, Node, ScalarNode
from openrecipes.recipe.schema import Schema, alternatives, item, value_at

_NULLS = ("", "~", "null", "Null", "NULL")


def to_value(node: Node, schema: Schema, field: str, places: dict[str, Place]) -> Any:
    """The Python value of `node`, and into `places` where it and everything below it stands.

    The place of a scalar is its value; that of a list or a mapping is set by its key.
    """
    if isinstance(node, ScalarNode):
        places[field] = node.place
        return _scalar(node, schema)
    places.setdefault(field, node.place)
    if isinstance(node, MappingNode):
        value = {}
        for key, below in node.entries:
            name = f"{field}.{key.text}" if field else key.text
            places[name] = key.place
            value[key.text] = to_value(below, value_at(schema, key.text), name, places)
        return value
    return [to_value(below, item(schema, i), f"{field}[{i}]", places) for i, below in enumerate(node.items)]


def _scalar(node: ScalarNode, schema: Schema) -> str | int | float | bool | None:
    if not node.plain:
        return node.text
    if node.text in _NULLS:
        return None
    kinds = {_kind(option) for option in alternatives(schema)}
    if kinds & {"integer", "number"}:
        return _number(node.text)
    if "boolean" in kinds and node.text in ("true", "false"):
        return node.text == "true"
    return node.text


def _kind(schema: Schema) -> str | None:
    if "const" in schema:
        return "integer" if isinstance(schema["const"], int) else "string"
    return schema.get("type")


def _number(text: str) -> int | float | str:
    """The number in JSON's grammar, or the text itself where it is none."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
