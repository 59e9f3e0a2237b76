"""`nki.kernels`: kernels of ours under the names of AWS's."""

from .attention import (  # noqa: F401
    flash_attn_bwd,
    flash_fwd,
    fused_self_attn_for_SD_small_head_size,
)
from .vision import (  # noqa: F401
    resize_nearest_fixed_dma_kernel,
    select_and_scatter_kernel,
)
