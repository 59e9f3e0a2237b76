"""Refused when used."""

from trnsim.private import RoPE_sbuf  # noqa: F401
