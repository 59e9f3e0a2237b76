"""Transposes of a matrix in HBM, x[rows, columns] to [columns, rows], by each unit that can.

Tiles are 128 x 128; rows and columns are multiples of 128. The descriptors of all transfers are
written when the kernel is loaded (dge_mode none): a software trigger for each tile would cost twice
the time that its bytes take, and the published profiles of this task (K-CSR-003) have no room for it.
"""

import nki
import nki.isa as nisa
import nki.language as nl

TILE = 128
BLOCK = 32  # what the Vector engine transposes at once


def reference(x):
    """The plain transpose."""
    return x.T


def load_tile(x, r, c):
    """The tile of x at row r and column c."""
    tile = nl.ndarray((TILE, TILE), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[r : r + TILE, c : c + TILE], dge_mode=nisa.dge_mode.none)
    return tile


def store_tile(out, r, c, tile):
    """A tile of the result, at row r and column c."""
    nisa.dma_copy(dst=out[r : r + TILE, c : c + TILE], src=tile, dge_mode=nisa.dge_mode.none)


@nki.jit
def tensor_tiles(x):
    """On the Tensor engine: a product with the identity, through PSUM. Tile by tile."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, rows, TILE):
        for c in range(0, columns, TILE):
            tile = load_tile(x, r, c)
            psum = nl.ndarray((TILE, TILE), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=psum, data=tile, engine=nisa.engine.tensor)
            result = nl.ndarray((TILE, TILE), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=psum)
            store_tile(out, c, r, result)
    return out


@nki.jit
def vector_blocks(x):
    """On the Vector engine: each tile as sixteen 32 x 32 blocks, SBUF to SBUF."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, rows, TILE):
        for c in range(0, columns, TILE):
            tile = load_tile(x, r, c)
            result = nl.ndarray((TILE, TILE), dtype=x.dtype, buffer=nl.sbuf)
            for i in range(0, TILE, BLOCK):
                for j in range(0, TILE, BLOCK):
                    nisa.nc_transpose(
                        dst=result[j : j + BLOCK, i : i + BLOCK],
                        data=tile[i : i + BLOCK, j : j + BLOCK],
                        engine=nisa.engine.vector,
                    )
            store_tile(out, c, r, result)
    return out


@nki.jit
def dma(x):
    """By the DMA engines, while the tile is loaded. x has two-byte elements."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, rows, TILE):
        for c in range(0, columns, TILE):
            result = nl.ndarray((TILE, TILE), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_transpose(dst=result, src=x[r : r + TILE, c : c + TILE])
            store_tile(out, c, r, result)
    return out
