"""../softmax.py in the older API: softmax over the last axis of x[rows, columns]."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def softmax(x):
    """128 rows a tile; a mask cuts the last one."""
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(columns)[None, :]
    for i in nl.affine_range((rows + 127) // 128):
        inside = i * 128 + p < rows
        tile = nl.load(x[i * 128 + p, f], mask=inside)
        negative_max = nisa.tensor_reduce(
            nl.max, tile, axis=[1], negate=True, keepdims=True, dtype=nl.float32, mask=inside
        )
        total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
        exponentials = nisa.activation_reduce(
            nl.exp,
            tile,
            reduce_op=nl.add,
            reduce_res=total,
            bias=negative_max,
            dtype=nl.float32,
            mask=inside,
        )
        inverse = nisa.reciprocal(total, mask=inside)
        result = nisa.tensor_scalar(
            exponentials, op0=nl.multiply, operand0=inverse, dtype=out.dtype, mask=inside
        )
        nl.store(out[i * 128 + p, f], value=result, mask=inside)
    return out
