"""`neuronxcc.nki.language.constants`."""

from trnsim.dtypes import sizeinbytes  # noqa: F401
