"""`neuronxcc.nki.typing`."""

from trnsim.kernel_types import *  # noqa: F401,F403
