"""Keep FLA's gated-delta-net kernels off the Triton configurations that are wrong on Blackwell GPUs.

flash-linear-attention (FLA) lets Triton's autotuner choose how each kernel is compiled. On Blackwell some
of the choices make a kernel give another result on every call, or hang. This module takes them away before
the kernels are built. README.md beside it has the versions, the sources and the ways to load it.

Importing it arms it, which must happen before FLA is imported:

    import fla_blackwell_guard       # from a .pth file or sitecustomize.py, so that no process is left out
    fla_blackwell_guard.verify()     # at any later time: GuardError unless every guarded kernel is safe

A process prints one line that starts with `[fla-guard]` once FLA has built the guarded kernels. Only the
standard library is imported here: Triton and torch are first asked when FLA itself is being imported, so a
process without FLA pays nothing and none gets a CUDA context earlier than it would have.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BLACKWELL_MAJORS = (10, 12)  # compute capabilities that FLA itself calls Blackwell: data centre and workstation
FORCE_VARIABLE = "FLA_GUARD_FORCE"  # `1` in the environment activates the guard on any machine, for tests


class GuardError(RuntimeError):
    """The kernels cannot be kept safe; the message says why and how to mend it.

    It is no ImportError, because trainers catch those around their imports of FLA and would carry on.
    """


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The configurations of one kernel that may run on Blackwell; `num_stages` None means any number."""

    module: str
    kernel: str
    num_warps: tuple[int, ...]
    num_stages: tuple[int, ...] | None = None
    source: str

    def allows(self, config: Any) -> bool:
        """Whether a `triton.Config` may run."""
        any_stages = self.num_stages is None or config.num_stages in self.num_stages
        return any_stages and config.num_warps in self.num_warps

    def cut(self, configs: Sequence[Any]) -> list[Any]:
        """The allowed ones of `configs`, in their order.

        Raises:
            GuardError: when none is left, since Triton would then fall back to a default of its own.
        """
        kept = [config for config in configs if self.allows(config)]
        if not kept:
            raise GuardError(
                f"[fla-guard] none of the {len(configs)} configurations of {self} is safe on Blackwell: use a "
                "version of FLA that patches/README.md lists"
            )
        return kept

    def __str__(self) -> str:
        stages = "any" if self.num_stages is None else self.num_stages
        return f"{self.module}.{self.kernel} (safe: num_warps {self.num_warps}, num_stages {stages}; {self.source})"


# What FLA 0.6.0 itself offers on Blackwell with Triton before 3.8. Each is matched by module as well as name:
# FLA has other kernels of the same names, which it leaves alone there.
RULES = (
    Rule(
        module="fla.ops.common.chunk_delta_h",
        kernel="chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
        num_warps=(2,),
        source="https://github.com/fla-org/flash-linear-attention/pull/953",
    ),
    Rule(
        module="fla.ops.gated_delta_rule.wy_fast",
        kernel="prepare_wy_repr_bwd_kernel",
        num_warps=(2,),
        num_stages=(4,),
        source="https://github.com/fla-org/flash-linear-attention/pull/1000",
    ),
    Rule(
        module="fla.ops.common.chunk_o",
        kernel="chunk_fwd_kernel_o",
        num_warps=(1, 2, 4),
        source="https://github.com/fla-org/flash-linear-attention/pull/1229",
    ),
    Rule(
        module="fla.ops.common.chunk_o",
        kernel="chunk_bwd_kernel_dv_local",
        num_warps=(1, 2, 4),
        source="https://pypi.org/project/fla-core/0.6.0/",
    ),
)
_RULES_BY_KERNEL = {(rule.module, rule.kernel): rule for rule in RULES}
_counts: dict[Rule, tuple[int, int]] = {}  # configurations offered and kept, of the kernels built so far


def verify(args: object = None) -> None:
    """Prove that every guarded kernel of this process is safe; without a Blackwell GPU there is nothing to prove.

    Imports the kernels' modules and looks at the autotuners that are alive, however they came to be. slime
    calls it with its arguments, which are ignored, for `--custom-megatron-init-path fla_blackwell_guard.verify`.

    Raises:
        GuardError: naming every kernel that was not found and every forbidden configuration that is still held.
    """
    if not _is_active():
        return
    wrong = []
    for module in dict.fromkeys(rule.module for rule in RULES):
        try:
            importlib.import_module(module)
        except ImportError as error:
            wrong.append(f"{module} cannot be imported: {error}")
    autotuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    alive = [found for found in gc.get_objects() if issubclass(type(found), autotuner)]
    for rule in RULES:
        held = [found for found in alive if _rule_of(found) is rule]
        if not held:
            wrong.append(f"FLA {_version('fla')} has no {rule}: renamed?")
        configs = [config for found in held for config in (*found.configs, *found.cache.values())]
        wrong += [f"`{config}` is held by {rule}" for config in configs if not rule.allows(config)]
    if wrong:
        raise GuardError("\n    ".join(["[fla-guard] not safe on Blackwell, see patches/README.md:", *wrong]))


class _GuardedCache(dict[Any, Any]):
    """The cache of a guarded autotuner: it takes no configuration that the rule forbids.

    FLA 0.5.1 and later can read configurations from files (FLA_CACHE_MODE, FLA_CONFIG_DIR) and put them
    here, past the list that the autotuner was given.
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self._rule = rule

    def __setitem__(self, key: Any, config: Any) -> None:
        if not self._rule.allows(config):
            raise GuardError(
                f"[fla-guard] `{config}` was about to be run by {self._rule}: if it comes from FLA's configuration "
                "files, unset FLA_CACHE_MODE or mend the file"
            )
        super().__setitem__(key, config)


@functools.cache
def _wrap_autotuner() -> None:
    """Wrap the constructor that `triton.autotune` and FLA's own autotuner class both end in, once a process."""
    autotuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    build = autotuner.__init__

    @functools.wraps(build)
    def guarded(self: Any, fn: Any, arg_names: Any, configs: Any, *args: Any, **kwargs: Any) -> None:
        rule = _rule_of(fn)
        if rule is None:
            build(self, fn, arg_names, configs, *args, **kwargs)
            return
        offered = configs or []
        kept = rule.cut(offered) if _is_active() else offered
        build(self, fn, arg_names, kept, *args, **kwargs)
        if _is_active():
            self.cache = _GuardedCache(rule)
        _report(rule, len(offered), len(kept))

    autotuner.__init__ = guarded


def _rule_of(kernel: Any) -> Rule | None:
    while hasattr(kernel, "fn"):  # autotuner and heuristics hold a JIT function, which holds the Python function
        kernel = kernel.fn
    return _RULES_BY_KERNEL.get((getattr(kernel, "__module__", ""), getattr(kernel, "__name__", "")))


def _is_active() -> bool:
    capability = _capability()
    return _is_forced() or (capability is not None and capability[0] in BLACKWELL_MAJORS)


def _is_forced() -> bool:
    return os.environ.get(FORCE_VARIABLE) == "1"


@functools.cache
def _capability() -> tuple[int, int] | None:
    """The current device's compute capability; AMD's numbers look alike and mean other GPUs, so they give None."""
    torch = importlib.import_module("torch")
    if torch.version.cuda is None or not torch.cuda.is_available():
        return None
    return torch.cuda.get_device_capability()


def _report(rule: Rule, offered: int, kept: int) -> None:
    """Count one kernel, and print the process's line when it is the last of them."""
    complete_before = len(_counts) == len(RULES)
    _counts[rule] = (offered, kept)
    if complete_before or len(_counts) < len(RULES):
        return
    state = "forced" if _is_forced() else "active" if _is_active() else "inactive"
    capability = ".".join(map(str, _capability() or ("none",)))
    versions = f"triton={_version('triton')} fla={_version('fla')}"
    counts = " ".join(f"{rule.kernel}={_counts[rule][0]}->{_counts[rule][1]}" for rule in RULES)
    print(f"[fla-guard] {state} capability={capability} {versions} {counts}", flush=True)


def _version(package: str) -> str:
    return getattr(sys.modules.get(package), "__version__", "unknown")


class _BeforeFla:
    """An import hook that finds nothing: it only wraps the autotuner when the import of FLA's kernels begins."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "fla.ops":
            _wrap_autotuner()


if "fla.ops" in sys.modules:
    raise GuardError(
        "[fla-guard] too late: FLA was imported before fla_blackwell_guard, so its kernels are already built; "
        "load the guard from a .pth file or sitecustomize.py, as patches/README.md shows"
    )
sys.meta_path.insert(0, _BeforeFla)
