"""`import nki`: the newer generation of NKI, traced by trn-sim."""

from trnsim.dtypes import DType as _DType
from trnsim.dtypes import ALL as _ALL
from trnsim.jit import baremetal, benchmark, jit, profile, simulate, simulate_kernel
from trnsim.jit import trace_decorator as trace
from trnsim.session import note_generation as _note_generation
from trnsim.tensor import Tensor as tensor
from trnsim.nl import NKIObject

_note_generation("new")

from . import collectives, compiler, isa, language, typing  # noqa: E402


class _Dtypes(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _DType)


class dtype(metaclass=_Dtypes):
    """`x: nki.dtype`, and the types by name."""


for _dtype in _ALL:
    setattr(dtype, str(_dtype), _dtype)
