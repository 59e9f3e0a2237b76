"""`nki.isa`."""

from trnsim import by_value as _by_value
from trnsim import packages as _packages

globals().update(_by_value.calls())
__getattr__ = _packages.unknown("nki.isa", _packages.ISA)
