"""Sourced numbers: GPUs, instances and prices, model configs. Every value carries a URL and a date."""

from openrecipes.facts.hardware import Gpu, Instance, gpu, gpus, instance, instances
from openrecipes.facts.models import ModelConfig, model_config, model_configs
from openrecipes.facts.names import did_you_mean
from openrecipes.facts.sourced import Fact

__all__ = [
    "Fact",
    "Gpu",
    "Instance",
    "ModelConfig",
    "did_you_mean",
    "gpu",
    "gpus",
    "instance",
    "instances",
    "model_config",
    "model_configs",
]
