"""Configs of known models, as in the `config.json` of their Hugging Face repositories."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from openrecipes.facts.names import find
from openrecipes.facts.sourced import read_yaml


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A model's config at one revision of its repository; `sources` are the URLs its values were read at."""

    name: str
    repository: str
    revision: str
    config: Mapping[str, Any]
    sources: tuple[str, ...]
    note: str | None = None

    @property
    def url(self) -> str:
        """Address of the repository at this revision."""
        return f"https://huggingface.co/{self.repository}/tree/{self.revision}"


@cache
def model_configs() -> Mapping[str, ModelConfig]:
    """Every known model by name."""
    folder = resources.files("openrecipes.facts").joinpath("models")
    found = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        entry = read_yaml(f"models/{file.name}")
        found[entry["name"]] = ModelConfig(
            name=entry["name"],
            repository=entry["repository"],
            revision=entry["revision"],
            config=MappingProxyType(entry["config"]),
            sources=tuple(source["url"] for source in entry["sources"]),
            note=entry.get("note"),
        )
    return MappingProxyType(found)


def model_config(name: str) -> ModelConfig | None:
    """The config of the model called `name` (case does not matter), or None."""
    return find(name, model_configs())
