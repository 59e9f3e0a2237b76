"""`nki.kernels.vision`."""

from trnsim.library.vision import (  # noqa: F401
    resize_nearest_fixed_dma_kernel,
    select_and_scatter_kernel,
)
