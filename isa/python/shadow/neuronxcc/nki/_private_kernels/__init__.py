"""Private names of AWS's kernels: supported where a name says enough, else refused when used."""

from trnsim.private import NormType  # noqa: F401
