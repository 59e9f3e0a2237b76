"""`neuronxcc.nki._private_kernels.RoPE`."""

from trnsim.library.rope import RoPE_sbuf  # noqa: F401
