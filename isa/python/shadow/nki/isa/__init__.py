"""`nki.isa`."""

from trnsim import nisa as _isa
from trnsim import packages as _packages

globals().update(_packages.names(_isa, _packages.ISA))
__getattr__ = _packages.unknown("nki.isa", _packages.ISA)
