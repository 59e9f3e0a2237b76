"""AWS's attention kernels: refused when used."""

from trnsim.private import (  # noqa: F401
    flash_attn_bwd,
    flash_fwd,
    fused_self_attn_for_SD_small_head_size,
)
