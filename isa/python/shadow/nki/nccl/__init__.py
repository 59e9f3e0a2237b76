"""`nki.nccl`: collectives under an older name."""

from trnsim.collectives import *  # noqa: F401,F403
