"""AWS's kernels: refused when used."""
