"""`nki.kernels.attention`."""

from trnsim.library.attention import (  # noqa: F401
    FlashConfig,
    flash_attn_bwd,
    flash_fwd,
    fused_self_attn_for_SD_small_head_size,
)
