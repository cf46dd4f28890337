"""Another kernel of the same name as the guarded one, in another module."""

import triton


@triton.autotune(
    configs=[triton.Config({}, num_warps=w, num_stages=s) for w in (2, 4, 8) for s in (2, 3, 4)], key=["H"]
)
@triton.jit
def prepare_wy_repr_bwd_kernel(k, v, beta): ...
