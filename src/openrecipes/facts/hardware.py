"""GPUs with their memory and BF16 peak, and the cloud instances that carry them with their price."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from openrecipes.facts.names import find
from openrecipes.facts.sourced import Fact, read_fact, read_yaml


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gpu:
    """One kind of GPU (or `cpu`, on which recipes are rehearsed).

    `memory_gb` is the figure the part is sold under. `bf16_dense_flop_per_s` is the tensor-core peak
    of one GPU without sparsity.
    """

    name: str
    vendor: str
    memory_gb: Fact
    bf16_dense_flop_per_s: Fact


@cache
def gpus() -> Mapping[str, Gpu]:
    """Every known GPU by name."""
    file = read_yaml("gpus.yaml")
    return MappingProxyType(
        {
            name: Gpu(
                name=name,
                vendor=entry["vendor"],
                memory_gb=read_fact(entry["memory_gb"], file["sources"]),
                bf16_dense_flop_per_s=read_fact(entry["bf16_dense_flop_per_s"], file["sources"]),
            )
            for name, entry in file["gpus"].items()
        }
    )


def gpu(name: str) -> Gpu | None:
    """The GPU called `name` (case does not matter), or None."""
    return find(name, gpus())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instance:
    """One instance type: `gpus` GPUs called `gpu` in `gpus()`, and the on-demand Linux price of the whole instance."""

    name: str
    gpu: str
    gpus: int
    usd_per_hour: Fact

    @property
    def usd_per_gpu_hour(self) -> float | None:
        """Price of one GPU for one hour in USD, or None where no price is recorded."""
        price = self.usd_per_hour.value
        return None if price is None else price / self.gpus


@cache
def instances() -> Mapping[str, Instance]:
    """Every known instance by name, such as `AWS p6-b200.48xlarge`."""
    file = read_yaml("instances.yaml")
    return MappingProxyType(
        {
            name: Instance(
                name=name,
                gpu=entry["gpu"],
                gpus=entry["gpus"],
                usd_per_hour=read_fact(entry["usd_per_hour"], file["sources"]),
            )
            for name, entry in file["instances"].items()
        }
    )


def instance(name: str) -> Instance | None:
    """The instance called `name` (case does not matter), or None."""
    return find(name, instances())
