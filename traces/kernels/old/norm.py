"""RMSNorm of ../norm.py in the older API: x[rows, features], gamma[1, features]."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def rmsnorm(x, gamma, eps=1e-6):
    """128 rows a tile; a mask cuts the last one. gamma is loaded into every partition."""
    rows, features = x.shape
    out = nl.ndarray((rows, features), dtype=x.dtype, buffer=nl.shared_hbm)
    p = nl.arange(128)[:, None]
    f = nl.arange(features)[None, :]
    weights = nl.load(gamma.broadcast_to((128, features)))
    for i in nl.affine_range((rows + 127) // 128):
        inside = i * 128 + p < rows
        tile = nl.load(x[i * 128 + p, f], mask=inside)
        total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            nl.square, tile, reduce_op=nl.add, reduce_res=total, dtype=nl.float32, mask=inside
        )
        inverse = nisa.activation(nl.rsqrt, total, scale=1.0 / features, bias=eps, mask=inside)
        scaled = nisa.tensor_scalar(
            tile, op0=nl.multiply, operand0=inverse, dtype=nl.float32, mask=inside
        )
        result = nisa.tensor_tensor(scaled, weights, op=nl.multiply, dtype=out.dtype, mask=inside)
        nl.store(out[i * 128 + p, f], value=result, mask=inside)
    return out
