"""The older API: a grid of two dimensions, and one spread over two cores."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def rows(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    j = nl.program_id(1) * 64 + nl.arange(64)[None, :]
    nl.store(out[i, j], nl.load(a[i, j]))
    return out


@nki.jit
def forgets_data(a):
    return nisa.activation(op=nl.exp)
