"""What a field expects, in words, and a refused value as a finding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from openrecipes.errors import Finding, Severity
from openrecipes.recipe.checkable import Place
from openrecipes.recipe.fields.kinds import LARGEST
from openrecipes.recipe.schema import Schema, alternatives, closest, item, properties, value_at

_FORMATS = {
    "date": "a day as YYYY-MM-DD",
    "uri": "an http or https address",
    "sha256": "64 lower-case hexadecimal digits",
}
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "from", "maximum": "up to", "exclusiveMaximum": "below"}
_SHOWN = 60


def expectation(schema: Schema) -> str:
    """What a field holds, such as `a whole number from 1 up to 10^15, or null`."""
    return ", or ".join(_one(option) for option in alternatives(schema))


def _one(schema: Schema) -> str:
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
    match schema.get("type"):
        case "string":
            return _FORMATS.get(schema.get("format", ""), "text")
        case "integer":
            return "a whole number" + _range(schema)
        case "number":
            return "a number" + _range(schema)
        case "boolean":
            return "true or false"
        case "array" if "prefixItems" in schema:
            return f"a list of {len(schema['prefixItems'])}, each {expectation(schema['prefixItems'][0])}"
        case "array":
            return f"a list, each item {expectation(schema['items'])}"
        case "object" if "properties" in schema:
            return "a mapping with the fields " + ", ".join(f"`{name}`" for name in schema["properties"])
        case "object":
            return "a mapping of names to text"
        case kind:
            return str(kind)


def _range(schema: Schema) -> str:
    bounds = []
    for keyword, words in _BOUNDS.items():
        if keyword in schema:
            bound = "10^15" if schema[keyword] == LARGEST else f"{schema[keyword]:g}"
            bounds.append(f" {words} {bound}")
    return "".join(bounds)


def schema_at(schema: Schema, location: tuple[int | str, ...]) -> Schema:
    """The schema of the field at a location below `schema`; empty where there is no such field."""
    for step in location:
        schema = item(schema, step) if isinstance(step, int) else value_at(schema, step)
    return schema


def dotted(location: tuple[int | str, ...]) -> str:
    """The location as a dotted field, such as `result.window[1]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def shown(value: Any) -> str:
    """A value as a message shows it: the characters of the file, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        text = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
        return f"the text {text!r}"
    try:
        return f"`{value}`"
    except ValueError:  # Python does not print whole numbers of more than 4,300 digits
        return "a whole number of more than 4,300 digits"


def to_finding(error: ErrorDetails, schema: Schema, path: Path, places: Mapping[str, Place]) -> Finding:
    """One refusal of the model that `schema` describes: a finding at its field, or at the parent of a missing one."""
    location = tuple(step for step in error["loc"] if step != "[key]")
    field = dotted(location)
    place = places.get(field) or places.get(dotted(location[:-1])) or Place()
    id, message, remedy = _say(error, schema, location)
    return Finding(
        id=id,
        severity=Severity.ERROR,
        message=message,
        remedy=remedy,
        path=path,
        line=place.line,
        column=place.column,
        field=field,
    )


def _say(error: ErrorDetails, root: Schema, location: tuple[int | str, ...]) -> tuple[str, str, str]:
    """The id, the message and the remedy."""
    schema = schema_at(root, location)
    expected = expectation(schema) if schema else "text"
    value = error["input"]
    meaning = " ".join(schema.get("description", "").split())
    remedy = f"it means: {meaning}" if meaning else "write a value of that kind"
    match error["type"]:
        case "extra_forbidden":
            known = list(properties(schema_at(root, location[:-1])))
            meant = closest(str(location[-1]), known)
            names = ", ".join(f"`{name}`" for name in meant or known)
            return (
                "D108",
                f"unknown field `{location[-1]}`",
                f"did you mean {names}?" if meant else f"known are {names}",
            )
        case "missing":
            return "D109", f"missing; expected {expected}", remedy
        case "value_error":
            cause = str(error.get("ctx", {}).get("error"))
            if isinstance(value, Mapping):
                return "D111", cause, "mend one of the fields it names"
            kind = "" if expected == "text" else f"; expected {expected}"
            return "D111", f"found {shown(value)}: {cause}{kind}", remedy
        case "int_type" | "float_type" if isinstance(value, str):
            return (
                "D110",
                f"found {shown(value)}; expected {expected}",
                "write plain digits such as 48, 3.68 or 2.6e-05",
            )
        case "string_type" if value is None:
            return "D110", f"found null; expected {expected}", "text that looks like null needs quotes"
        case kind:
            id = "D110" if kind.endswith("_type") else "D111"
            return id, f"found {shown(value)}; expected {expected}", remedy
