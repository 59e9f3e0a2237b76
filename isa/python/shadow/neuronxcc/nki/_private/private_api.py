"""Private instructions and kernels: the first are supported, the second are refused."""

from trnsim.collectives import *  # noqa: F401,F403
from trnsim.private import (  # noqa: F401
    attention_kernel,
    cc_div,
    column_tiled_mm_kernel,
    core_barrier,
    do_while,
    mlp_fused_add_kernel,
    mlp_kernel,
    qkv_fused_add_kernel,
    qkv_kernel,
    row_tiled_mm_kernel,
    sendrecv,
)
