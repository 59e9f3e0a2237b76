"""`neuronxcc.nki.language`."""

from trnsim import nl as _nl
from trnsim import packages as _packages

globals().update(_packages.names(_nl, _packages.LANGUAGE))
__getattr__ = _packages.unknown("neuronxcc.nki.language", _packages.LANGUAGE)
