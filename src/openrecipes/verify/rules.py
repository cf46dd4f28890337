"""The list that says what a difference in a resolved argument means for the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from openrecipes.errors import ContentError, Finding, Severity
from openrecipes.recipe.catalogue import shipped_folder

_LIST = Path("scripts/correctness/rules/numerics_list.yaml")


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class NumericsClass(_Fields):
    """A class of arguments. `passes` says whether arms that differ in it may still be compared."""

    name: str
    passes: bool
    meaning: str
    covered_by: str | None = None
    """What shows that a difference of this class did no harm; None where no evidence could."""


class Source(_Fields):
    """Where a rule was read; `url` is None for a file of this project."""

    title: str
    url: str | None
    date: str


class ArgumentRule(_Fields):
    """One argument: its class, why it is in that class, and the key of its source."""

    name: str
    why: str
    source: str
    class_: str

    model_config = ConfigDict(alias_generator=lambda name: name.rstrip("_"))


class NumericsList(_Fields):
    """The whole list."""

    format_version: Literal[1]
    classes: tuple[NumericsClass, ...]
    sources: dict[str, Source]
    arguments: tuple[ArgumentRule, ...]

    @model_validator(mode="after")
    def _refers_only_to_what_is_there(self) -> Self:
        classes = {entry.name for entry in self.classes}
        names = [rule.name for rule in self.arguments]
        wrong = [f"{name} stands twice" for name in sorted({name for name in names if names.count(name) > 1})]
        wrong += [f"{rule.name}: no class {rule.class_}" for rule in self.arguments if rule.class_ not in classes]
        wrong += [f"{rule.name}: no source {rule.source}" for rule in self.arguments if rule.source not in self.sources]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @cached_property
    def rules(self) -> Mapping[str, tuple[ArgumentRule, NumericsClass]]:
        """Each argument's rule and class, by the argument's name."""
        classes = {entry.name: entry for entry in self.classes}
        return {rule.name: (rule, classes[rule.class_]) for rule in self.arguments}


def read_numerics_list(path: Path) -> NumericsList:
    """Read a numerics list.

    Raises:
        ContentError: the file is not YAML, or not a numerics list; the finding says what is wrong.
    """
    try:
        return NumericsList.model_validate(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError, ValidationError) as error:
        finding = Finding(
            id="V001",
            severity=Severity.ERROR,
            message=f"not a numerics list: {error}",
            remedy="each argument has a name, a class of the list, a reason and a source of the list",
            path=path,
        )
        raise ContentError([finding]) from None


@lru_cache(maxsize=1)
def shipped_numerics_list() -> NumericsList:
    """The list that comes with the tool."""
    return read_numerics_list(shipped_folder("skill") / _LIST)
