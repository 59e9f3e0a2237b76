"""`neuronxcc.nki.isa`."""

from trnsim import nisa_old as _isa
from trnsim import packages as _packages

globals().update(_packages.names(_isa, _packages.ISA_OLD))
globals().update(_packages.offloaded())
__getattr__ = _packages.unknown("neuronxcc.nki.isa", _packages.ISA_OLD)
