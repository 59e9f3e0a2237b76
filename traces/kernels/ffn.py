"""A gated feed-forward layer of three blocked products: (silu(x Wg) * x Wu) Wd.

x [tokens, hidden], w_gate, w_up [hidden, intermediate], w_down [intermediate, hidden]. Between the
products everything goes through HBM, as where a graph compiler joins separate kernels. Sizes are
multiples of 512 and of the blocks.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

from matmul import blocked_product

TILE = 128
CHUNK = 512


def blocked_reference(x, w_gate, w_up, w_down, tiles_m=4, tiles_n=2, tiles_k=8):
    """The layer by its definition."""
    gate = x @ w_gate
    return (gate / (1.0 + np.exp(-gate)) * (x @ w_up)) @ w_down


def load_rows(src, column):
    """All rows of 512 columns of src, [128, rows / 128, 512]."""
    groups = src.shape[0] // TILE
    tile = nl.ndarray((TILE, groups, CHUNK), dtype=src.dtype, buffer=nl.sbuf)
    part = src[:, column : column + CHUNK].reshape((groups, TILE, CHUNK))
    nisa.dma_copy(dst=tile, src=part.permute((1, 0, 2)))
    return tile


def store_transposed(dst, rows, column):
    """rows [128, groups, 512] transposed into rows `column` and on of dst [columns, tokens]."""
    groups = rows.shape[1]
    for c in range(0, CHUNK, TILE):
        tile = nl.ndarray((TILE, groups * TILE), dtype=dst.dtype, buffer=nl.sbuf)
        for first in range(0, groups, 4):
            count = min(4, groups - first)
            psum = nl.ndarray((TILE, count * TILE), dtype=rows.dtype, buffer=nl.psum)
            for i in range(count):
                nisa.nc_transpose(
                    dst=psum[:, i * TILE : (i + 1) * TILE], data=rows[:, first + i, c : c + TILE]
                )
            nisa.tensor_copy(dst=tile[:, first * TILE : (first + count) * TILE], src=psum)
        nisa.dma_copy(dst=dst[column + c : column + c + TILE, :], src=tile)


@nki.jit
def blocked(x, w_gate, w_up, w_down, tiles_m=4, tiles_n=2, tiles_k=8):
    """The blocks (in tiles of 128 x 512 x 128) are those of all three products."""
    tokens, hidden = x.shape
    intermediate = w_gate.shape[1]

    def between(shape):
        return nl.ndarray(shape, dtype=x.dtype, buffer=nl.private_hbm)

    x_T = between((hidden, tokens))
    for column in range(0, hidden, CHUNK):
        store_transposed(x_T, load_rows(x, column), column)
    gate, up = between((tokens, intermediate)), between((tokens, intermediate))
    blocked_product(gate, x_T, w_gate, tiles_m, tiles_n, tiles_k)
    blocked_product(up, x_T, w_up, tiles_m, tiles_n, tiles_k)

    inner_T = between((intermediate, tokens))
    for column in range(0, intermediate, CHUNK):
        gate_rows, up_rows = load_rows(gate, column), load_rows(up, column)
        activated = nl.ndarray(gate_rows.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=activated, op=nl.silu, data=gate_rows)
        inner = nl.ndarray(gate_rows.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=inner, data1=activated, data2=up_rows, op=nl.multiply)
        store_transposed(inner_T, inner, column)

    out = nl.ndarray((tokens, hidden), dtype=x.dtype, buffer=nl.shared_hbm)
    blocked_product(out, inner_T, w_down, tiles_m, tiles_n, tiles_k)
    return out
