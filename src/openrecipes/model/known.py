"""The shape of the model an entry names: from the recorded facts, else from the entry's own evidence."""

from __future__ import annotations

from functools import cache

from openrecipes.errors import OpenRecipesError
from openrecipes.facts import did_you_mean, model_config, model_configs
from openrecipes.model.config import parse_config, read_config
from openrecipes.model.shape import ModelShape
from openrecipes.recipe.checkable import Case


def shape_of(case: Case) -> ModelShape | str:
    """The model's shape, or the reason it is not known.

    A model that is in the facts is taken from there, whatever the evidence says. Any other is taken
    from the config.json in the evidence (a file of kind `model_config`), where there is one.
    """
    name = case.recipe.model
    if (known := model_config(name)) is not None:
        return _known_shape(known.name)
    unknown = f"the model `{name:.80}` is not among the recorded ones ({did_you_mean(name, model_configs())})"
    files = case.evidence.find("model_config") if case.evidence else []
    if case.evidence is None or not files:
        return f"{unknown} and no config.json is in the evidence"
    try:
        return parse_config(case.evidence.read(files[0]), case.evidence.folder / files[0].path)
    except OpenRecipesError as error:
        return f"{unknown}, and the config.json in the evidence cannot be used: {error}"


@cache
def _known_shape(name: str) -> ModelShape:
    return read_config(model_configs()[name].config)
