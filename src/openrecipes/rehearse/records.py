"""What was really in force in a run: resolved arguments and environment."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import megatron.core
import numpy
import torch

from openrecipes import __version__
from openrecipes.rehearse.cpu_device import GATED_DELTA_CHUNK

_THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "GLOO_SOCKET_IFNAME", "CUDA_DEVICE_MAX_CONNECTIONS")


def versions() -> dict[str, str]:
    """The versions that decide the numerics."""
    return {
        "openrecipes": __version__,
        "megatron-core": megatron.core.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def resolved_arguments(*configs: Any, **sizes: Any) -> dict[str, Any]:
    """One flat mapping {argument: value} of Megatron's configuration dataclasses and the run's own sizes.

    Fields that hold process groups, timers or callbacks say how the run was wired, not what it
    computes, and are left out. Later arguments win over earlier ones of the same name.
    """
    found = {}
    for config in configs:
        for field in dataclasses.fields(config):
            value = getattr(config, field.name)
            if _is_plain(value):
                found[field.name] = _plain(value)
    found["gated_delta_chunk"] = GATED_DELTA_CHUNK
    return dict(sorted((found | sizes).items()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, enum.Enum, torch.dtype))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.name
    return str(value) if isinstance(value, torch.dtype) else value


def environment(ranks: int) -> dict[str, Any]:
    """Versions, processor and thread settings; nothing that names a person, a path or a network."""
    return {
        "versions": versions(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "ranks": ranks,
        "threads_per_rank": torch.get_num_threads(),
        "backend": "gloo",
        "settings": {name: os.environ[name] for name in _THREAD_SETTINGS if name in os.environ},
    }


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON to a temporary file beside `path` and rename it, so that a reader sees all or nothing."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    unfinished.replace(path)
