"""The engines whose commands are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openrecipes.engines.interface import Engine
from openrecipes.engines.rehearsal_command import Rehearsal
from openrecipes.engines.slime import Slime

if TYPE_CHECKING:
    from openrecipes.recipe.fields import Recipe

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Slime(), Rehearsal())}


def engine_of(recipe: Recipe) -> Engine | None:
    """The engine an entry names; None for one whose commands are not read."""
    return ENGINES.get(recipe.stack.engine)
