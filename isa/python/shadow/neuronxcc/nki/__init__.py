"""`import neuronxcc.nki`: the older generation of NKI, traced by trn-sim."""

from trnsim.jit import baremetal, benchmark, jit, profile, simulate, simulate_kernel
from trnsim.jit import trace_decorator as trace
from trnsim.session import note_generation as _note_generation
from trnsim.tensor import Tensor as tensor

_note_generation("old")

from . import compiler, isa, language, nccl, typing  # noqa: E402
