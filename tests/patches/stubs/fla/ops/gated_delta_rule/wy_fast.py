import triton


@triton.heuristics({})
@triton.autotune(configs=[triton.Config({}, num_warps=w, num_stages=s) for w in (2, 4) for s in (2, 3, 4)], key=["H"])
@triton.jit
def prepare_wy_repr_bwd_kernel(k, v, beta): ...
