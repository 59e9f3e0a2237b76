"""Parts of the older compiler that kernels name."""
