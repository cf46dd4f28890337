"""`openrecipes explain`: what a field means, or why a check exists."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    topic: Annotated[str, typer.Argument(help="A field such as layout.tp, or the id of a check such as A101.")],
) -> None:
    """Explain a recipe field (meaning, kind, unit, example) or a check (what it looks at, and why)."""
    from openrecipes.recipe.explain import explain_field, explain_rule

    typer.echo(explain_rule(topic) or _explain_check(topic) or explain_field(topic))


def _explain_check(id: str) -> str | None:
    """Title, level and reason of a check; None where `id` has not the form of an id, a letter and digits."""
    if not (id[:1].isalpha() and id[1:].isascii() and id[1:].isdigit()):
        return None

    from openrecipes.check.registry import CHECKS
    from openrecipes.errors import UsageError
    from openrecipes.recipe.rules import RULES
    from openrecipes.recipe.schema import closest

    if id.upper() not in CHECKS:
        meant = ", ".join(f"`{known}`" for known in closest(id.upper(), [*RULES, *CHECKS]))
        hint = f"did you mean {meant}?" if meant else "`openrecipes check` prints the ids beside the answers"
        raise UsageError(f"no check is called `{id}`; {hint}")
    check = CHECKS[id.upper()]
    source = f"\n  {check.url}" if check.url else ""
    return f"{check.id}: {check.title} (level {check.level})\n  {check.explanation}{source}"
