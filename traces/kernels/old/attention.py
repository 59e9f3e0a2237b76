"""Fused attention of ../attention.py in the older API: softmax(q.T @ k) @ v.T, inputs [d, seq].

The result is [seq, d], d = 128, seq a multiple of 512; nothing is scaled.
"""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

TILE = 128
CHUNK = 512
BLOCKS = CHUNK // TILE


@nki.jit
def fused(q, k, v):
    """Groups of query tiles; first chunk's scores in PSUM, further chunks copied to SBUF."""
    d, seq = q.shape
    tiles, chunks = seq // TILE, seq // CHUNK
    group = min(tiles, max(1, min(4, 8192 // seq)))
    out = nl.ndarray((seq, d), dtype=q.dtype, buffer=nl.shared_hbm)
    v_tiles, q_tiles, k_tiles = nl.load(v), nl.load(q), nl.load(k)

    v_rows = nl.ndarray((chunks, nl.par_dim(TILE), CHUNK), dtype=nl.float32, buffer=nl.sbuf)
    for c in nl.affine_range(chunks):
        psum = nl.ndarray((nl.par_dim(TILE), CHUNK), dtype=v.dtype, buffer=nl.psum)
        for i in nl.affine_range(BLOCKS):
            psum[:, nl.ds(i * TILE, TILE)] = nisa.nc_transpose(
                v_tiles[:, nl.ds(c * CHUNK + i * TILE, TILE)]
            )
        v_rows[c] = nl.copy(psum, dtype=nl.float32)

    results = nl.ndarray((nl.par_dim(TILE), tiles, d), dtype=nl.float32, buffer=nl.sbuf)
    for first in nl.affine_range(tiles // group):
        scores = nl.ndarray((group, nl.par_dim(TILE), CHUNK), dtype=nl.float32, buffer=nl.psum)
        further = nl.ndarray(
            (group, max(1, chunks - 1), nl.par_dim(TILE), CHUNK), dtype=nl.float32, buffer=nl.sbuf
        )
        maxima = nl.ndarray((nl.par_dim(TILE), group, chunks), dtype=nl.float32, buffer=nl.sbuf)
        for c in range(chunks - 1, -1, -1):
            for r in nl.affine_range(group):
                columns = nl.ds(first * group * TILE + r * TILE, TILE)
                product = nisa.nc_matmul(q_tiles[:, columns], k_tiles[:, nl.ds(c * CHUNK, CHUNK)])
                if c == 0:
                    scores[r] = product
                else:
                    further[r, c - 1] = nl.copy(product)
        for r in nl.affine_range(group):
            for c in range(chunks):
                part = scores[r] if c == 0 else further[r, c - 1]
                maxima[:, r, nl.ds(c, 1)] = nisa.tensor_reduce(
                    nl.max, part, axis=[1], keepdims=True
                )
        negative_max = nisa.tensor_reduce(nl.max, maxima, axis=[2], negate=True)

        weights = nl.ndarray((group, nl.par_dim(TILE), seq), dtype=nl.float32, buffer=nl.sbuf)
        sums = nl.ndarray((nl.par_dim(TILE), group, chunks), dtype=nl.float32, buffer=nl.sbuf)
        for r in nl.affine_range(group):
            for c in range(chunks):
                part = scores[r] if c == 0 else further[r, c - 1]
                weights[r, :, nl.ds(c * CHUNK, CHUNK)] = nisa.activation(
                    nl.exp, part, bias=negative_max[:, nl.ds(r, 1)], scale=1.0
                )
        for r in nl.affine_range(group):
            for c in range(chunks):
                sums[:, r, nl.ds(c, 1)] = nisa.tensor_reduce(
                    nl.add, weights[r, :, nl.ds(c * CHUNK, CHUNK)], axis=[1], keepdims=True
                )
        inverse = nisa.reciprocal(nisa.tensor_reduce(nl.add, sums, axis=[2]))

        turned = nl.ndarray((group, chunks, nl.par_dim(TILE), CHUNK), nl.float32, buffer=nl.sbuf)
        for r in nl.affine_range(group):
            for c in nl.affine_range(chunks):
                psum = nl.ndarray((nl.par_dim(TILE), CHUNK), dtype=nl.float32, buffer=nl.psum)
                for i in nl.affine_range(BLOCKS):
                    psum[:, nl.ds(i * TILE, TILE)] = nisa.nc_transpose(
                        weights[r, :, nl.ds(c * CHUNK + i * TILE, TILE)]
                    )
                turned[r, c] = nl.copy(psum)
        for r in nl.affine_range(group):
            values = nl.zeros((nl.par_dim(TILE), d), dtype=nl.float32, buffer=nl.psum)
            for c in nl.affine_range(chunks):
                for i in nl.affine_range(BLOCKS):
                    block = nl.ds(i * TILE, TILE)
                    values += nisa.nc_matmul(turned[r, c, :, block], v_rows[c, :, block])
            results[:, first * group + r, :] = nisa.tensor_scalar(
                values, op0=nl.multiply, operand0=inverse[:, nl.ds(r, 1)]
            )
    p = nl.arange(TILE)[:, None, None]
    t = nl.arange(tiles)[None, :, None]
    f = nl.arange(d)[None, None, :]
    nl.store(out[t * TILE + p, f], value=results[p, t, f])
    return out
