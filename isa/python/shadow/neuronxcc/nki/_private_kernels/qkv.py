"""Refused when used."""

from trnsim.private import NormType, rmsnorm_qkv_isa_kernel  # noqa: F401
