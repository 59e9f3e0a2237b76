"""`nki.language`."""

from trnsim import nl as _nl
from trnsim import packages as _packages

globals().update(_packages.names(_nl, _packages.LANGUAGE))
__getattr__ = _packages.unknown("nki.language", _packages.LANGUAGE)
