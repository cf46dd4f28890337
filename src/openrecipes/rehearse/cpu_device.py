"""Let the CPU stand in for the CUDA device that Megatron-Core expects.

Megatron-Core reaches for CUDA in three ways that matter here: it asks `torch.cuda` for a device, it
names the device in a factory call (`device="cuda"`), and it picks kernels of packages that need a GPU
(Transformer Engine, flash-linear-attention). Each function below replaces one such use and says what it
stands for. The numerics stay Megatron's own: what is replaced is where tensors live, or a kernel by
the plain PyTorch form of the same formula.

Call `stand_in()` once, before anything from `megatron` is imported. It was proven on one release and
refuses every other, because a substitution that silently no longer applies would rehearse something else.
"""

from __future__ import annotations

import functools
import importlib.metadata
import logging
from typing import Any

import torch

from openrecipes.errors import MissingToolError

PROVEN_MEGATRON = "0.16.1"

# The pure-torch gated delta rule loops over the tokens of a chunk. The default of 64 suits long rows;
# for rows of 64 to 128 tokens 16 gives the same result with a quarter of the operations.
GATED_DELTA_CHUNK = 16

CPU = torch.device("cpu")


def stand_in() -> None:
    """Install every substitution.

    Raises:
        MissingToolError: Megatron-Core is not installed, or is a release this was not proven on.
    """
    require_proven_megatron()
    _device_queries()
    _device_random_state()
    _streams()
    _device_in_factory_calls()
    _device_in_tensor_types()
    _uneven_collectives()
    _jit_fusion()
    _checkpoint_random_state()
    _sequence_parallel_norm()
    _split_sizes_of_the_dispatcher()
    _router_matmul()
    _gated_delta_net_kernels()


def require_proven_megatron() -> None:
    """Refuse a Megatron-Core release other than the proven one.

    Raises:
        MissingToolError: naming the release found and how to install the proven one.
    """
    remedy = f'install it with: pip install "megatron-core=={PROVEN_MEGATRON}"'
    try:
        found = importlib.metadata.version("megatron-core")
    except importlib.metadata.PackageNotFoundError:
        raise MissingToolError(
            f"a rehearsal needs megatron-core {PROVEN_MEGATRON}, which is missing; {remedy}"
        ) from None
    if found != PROVEN_MEGATRON:
        raise MissingToolError(
            f"found megatron-core {found}, but the CPU substitutions are proven on {PROVEN_MEGATRON} only; {remedy}"
        )


def _device_queries() -> None:
    """Stands for the current CUDA device: buffers are allocated on the CPU."""
    torch.cuda.current_device = lambda: CPU  # type: ignore[assignment]


def _device_random_state() -> None:
    """Stands for the CUDA generator, whose state Megatron records per region: the CPU generator has one too."""
    torch.cuda.get_rng_state = lambda *_, **__: torch.get_rng_state()


class _Queue:
    """The CPU's only queue of work: what was put on it has finished when the call returns."""

    def wait_stream(self, other: _Queue) -> None:
        """Nothing is left to wait for."""

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def record_event(self) -> _Queue:
        """An event that has happened already."""
        return self


def _streams() -> None:
    """Stands for CUDA streams and events, which the token dispatcher orders its host copies with."""
    queue = _Queue()
    torch.cuda.Stream = lambda *_, **__: queue  # type: ignore[assignment,misc]
    torch.cuda.current_stream = lambda *_: queue  # type: ignore[assignment]
    torch.cuda.synchronize = lambda *_: None


def _device_in_factory_calls() -> None:
    """Stands for `device="cuda"` written out in factory calls, as in the token count of the schedules."""
    for name in ("tensor", "zeros", "ones"):
        setattr(torch, name, _on_cpu(getattr(torch, name)))


def _on_cpu(factory: Any) -> Any:
    @functools.wraps(factory)
    def on_cpu(*args: Any, **kwargs: Any) -> torch.Tensor:
        if kwargs.get("device") == "cuda":
            kwargs["device"] = CPU
        return factory(*args, **kwargs)

    return on_cpu


def _device_in_tensor_types() -> None:
    """Stands for the type names that the optimizers compare with, such as `torch.cuda.FloatTensor`."""
    tensor_type = torch.Tensor.type

    def as_if_on_cuda(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        found = tensor_type(self, *args, **kwargs)
        return found.replace("torch.", "torch.cuda.", 1) if isinstance(found, str) else found

    torch.Tensor.type = as_if_on_cuda  # type: ignore[method-assign]


def _uneven_collectives() -> None:
    """Stands for NCCL, which gathers and scatters parts of unequal length: gloo gets them padded to the longest.

    Experts with ETP exchange as many tokens as were routed to each rank.
    """
    all_gather, reduce_scatter = torch.distributed.all_gather, torch.distributed.reduce_scatter

    def gather(parts: list[torch.Tensor], mine: torch.Tensor, group: Any = None) -> None:
        longest = max(map(len, parts))
        padded = [_padded(part, longest) for part in parts]
        all_gather(padded, _padded(mine, longest), group=group)
        for part, found in zip(parts, padded, strict=True):
            part.copy_(found[: len(part)])

    def scatter(mine: torch.Tensor, parts: list[torch.Tensor], group: Any = None) -> None:
        longest = max(map(len, parts))
        summed = _padded(mine, longest)
        reduce_scatter(summed, [_padded(part, longest) for part in parts], group=group)
        mine.copy_(summed[: len(mine)])

    torch.distributed.all_gather = gather
    torch.distributed.reduce_scatter = scatter


def _padded(tensor: torch.Tensor, length: int) -> torch.Tensor:
    """The tensor with zeros after it along the first dimension, in memory of its own."""
    padded = tensor.new_zeros(length, *tensor.shape[1:])
    padded[: len(tensor)] = tensor
    return padded


def _jit_fusion() -> None:
    """Stands for `torch.compile`, Megatron's fuser: the same functions run uncompiled."""
    torch.compile = lambda function=None, **_: function  # type: ignore[assignment]


def _checkpoint_random_state() -> None:
    """Stands for the generator state that recompute saves and restores around a layer."""
    from megatron.core.tensor_parallel import random

    random._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    random._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    # It warns when the CPU generator moves inside a CUDA region; here the two are one.
    logging.getLogger(random.__name__).setLevel(logging.ERROR)


def _sequence_parallel_norm() -> None:
    """Stands for the fused norm, the only one Megatron lets run with sequence parallel.

    PyTorch's norm computes the same. What it lacks is the mark that makes Megatron sum the gradient
    of the weight over TP, so the mark is set here.
    """
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    build = WrappedTorchNorm.__new__

    def build_marked(cls: type, config: Any, *args: Any, **kwargs: Any) -> torch.nn.Module:
        sequence_parallel = config.sequence_parallel
        config.sequence_parallel = False
        try:
            norm = build(cls, config, *args, **kwargs)
        finally:
            config.sequence_parallel = sequence_parallel
        for weight in norm.parameters():
            setattr(weight, "sequence_parallel", sequence_parallel)  # noqa: B010 - Megatron's own mark
        return norm

    WrappedTorchNorm.__new__ = staticmethod(build_marked)  # type: ignore[assignment]


def _split_sizes_of_the_dispatcher() -> None:
    """Stands for the copy of the all-to-all split sizes from the device to the host."""
    from megatron.core.transformer.moe import token_dispatcher

    def on_host(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
        return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor

    token_dispatcher.maybe_move_tensor_to_cpu = on_host


def _router_matmul() -> None:
    """Stands for Transformer Engine's matrix product in the router: None selects PyTorch's."""
    from megatron.core.transformer.moe import moe_utils

    moe_utils.te_general_gemm = None  # type: ignore[attr-defined]


def _gated_delta_net_kernels() -> None:
    """Stands for flash-linear-attention: Megatron's own pure-torch gated delta rule, and an l2 norm."""
    from megatron.core.ssm import gated_delta_net

    gated_delta_net.HAVE_FLA = True
    gated_delta_net.chunk_gated_delta_rule = functools.partial(
        gated_delta_net.torch_chunk_gated_delta_rule, chunk_size=GATED_DELTA_CHUNK
    )
    gated_delta_net.l2norm = l2norm  # type: ignore[attr-defined]


def l2norm(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """x / sqrt(sum(x^2) + eps) over the last dimension, as flash-linear-attention's `l2norm` defines it."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)
