"""`neuronxcc.nki.language.iterators`."""

from trnsim.loops import affine_range, sequential_range, static_range  # noqa: F401
from trnsim.private import sync_program  # noqa: F401
