"""`neuronxcc.nki.nccl.collectives`."""

from trnsim.collectives import *  # noqa: F401,F403
