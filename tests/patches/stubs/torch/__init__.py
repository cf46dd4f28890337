"""A torch that has the GPU which STUB_CAPABILITY (`10.0`, or nothing) and STUB_VENDOR (`cuda`, `hip`) describe."""

import os
from types import SimpleNamespace

_capability = os.environ.get("STUB_CAPABILITY", "")
_vendor = os.environ.get("STUB_VENDOR", "cuda")


def _get_device_capability() -> tuple[int, int]:
    if not _capability:
        raise RuntimeError("no GPU: a caller has to ask is_available() first")
    major, minor = _capability.split(".")
    return int(major), int(minor)


version = SimpleNamespace(cuda="12.9" if _vendor == "cuda" else None)
cuda = SimpleNamespace(is_available=lambda: bool(_capability), get_device_capability=_get_device_capability)
