import triton


@triton.heuristics({})
@triton.autotune(
    configs=[
        triton.Config({"BV": tile}, num_warps=warps, num_stages=stages)
        for warps in (2, 4)
        for stages in (2, 3, 4)
        for tile in (32, 64)
    ],
    key=["H"],
)
@triton.jit
def chunk_gated_delta_rule_fwd_kernel_h_blockdim64(k, v, w): ...
