import triton

from fla.ops.utils.cache import fla_cache_autotune


@triton.heuristics({})
@fla_cache_autotune(
    configs=[triton.Config({"BK": 16 * w, "BV": 16 * w}, num_warps=w, num_stages=3) for w in (8, 4, 2)], key=["H"]
)
@triton.jit
def chunk_fwd_kernel_o(q, k, v): ...


@triton.autotune(
    configs=[triton.Config({}, num_warps=w, num_stages=s) for w in (2, 4, 8) for s in (2, 3, 4)], key=["H"]
)
@triton.jit
def chunk_bwd_kernel_dv_local(q, k, g): ...


@triton.autotune(configs=[triton.Config({}, num_warps=w, num_stages=3) for w in (2, 4, 8)], key=["H"])
@triton.jit
def chunk_bwd_kernel_dqkwg(q, k, v): ...
