"""AWS's private kernels: refused when used."""

from trnsim.private import NormType  # noqa: F401
