"""The documentation of one field or one document rule, as text."""

from __future__ import annotations

import json

from openrecipes.errors import UsageError
from openrecipes.recipe.rules import RULES
from openrecipes.recipe.schema import closest, fields, resolve
from openrecipes.recipe.wording import expectation


def explain_field(name: str) -> str:
    """Meaning, kind, unit and example of a field; `name` is dotted, or its last part where that is unique.

    Raises:
        UsageError: no field has this name, or several have.
    """
    known = dict(fields())
    plain = _without_indices(name)
    by_plain_name = {_without_indices(dotted): dotted for dotted in known}
    matches = [plain] if plain in by_plain_name else [d for d in by_plain_name if d.rpartition(".")[2] == plain]
    if not matches:
        last_parts = [dotted.rpartition(".")[2] for dotted in by_plain_name]
        meant = closest(plain, [*by_plain_name, *last_parts])
        hint = f"did you mean {', '.join(f'`{m}`' for m in meant)}?" if meant else "`openrecipes schema` lists all"
        raise UsageError(f"no field is called `{name}`; {hint}")
    if len(matches) > 1:
        raise UsageError(f"several fields are called `{name}`: {', '.join(by_plain_name[m] for m in matches)}")
    dotted = by_plain_name[matches[0]]
    schema = known[dotted]
    lines = [dotted, f"  {resolve(schema)['description']}", f"  expected  {expectation(schema)}"]
    if "unit" in schema:
        lines.append(f"  unit      {schema['unit']}")
    lines += [f"  example   {_example(example)}" for example in schema.get("examples", ())]
    return "\n".join(lines)


def explain_rule(id: str) -> str | None:
    """Title and reason of a document rule such as `D105`; None where there is no such rule."""
    rule = RULES.get(id.upper())
    return None if rule is None else f"{id.upper()}: {rule.title}\n  {rule.reason}"


def _without_indices(name: str) -> str:
    """`correctness.component_tests[0].gpu` and `...[].gpu` are the same field."""
    return ".".join(part.partition("[")[0] for part in name.split("."))


def _example(example: object) -> str:
    return example if isinstance(example, str) else json.dumps(example)
