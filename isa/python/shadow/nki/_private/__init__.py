"""Private names that public kernels use."""
