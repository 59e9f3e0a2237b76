"""`nki.isa.neuron_isa`: the instructions under an older name."""

from . import *  # noqa: F401,F403
