"""AWS's vision kernels: refused when used."""

from trnsim.private import (  # noqa: F401
    resize_nearest_fixed_dma_kernel,
    select_and_scatter_kernel,
)
