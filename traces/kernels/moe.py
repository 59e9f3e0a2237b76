"""Rows of tokens collected for an expert and put back, by indirect DMA.

tokens [count, hidden], index [n, 1] int32, n a multiple of 128.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE = 128


def gather_reference(tokens, index):
    """Row i is the token of index i."""
    return tokens[index[:, 0]]


def scatter_reference(rows, index, count):
    """Row i goes to index i; rows that no index names are zero."""
    out = np.zeros((count, rows.shape[1]), rows.dtype)
    out[index[:, 0]] = rows
    return out


def expert_reference(tokens, index, weight, count):
    """The chosen tokens times the expert's weight, put back."""
    return scatter_reference(gather_reference(tokens, index) @ weight, index, count)


def load_index(index, i):
    """128 indices, one a partition."""
    tile = nl.ndarray((TILE, 1), dtype=index.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=index[i : i + TILE, :])
    return tile


def chosen(hbm, where):
    """The rows of hbm that `where` names, as an access pattern."""
    columns = hbm.shape[1]
    return hbm.ap(pattern=[[columns, TILE], [1, columns]], vector_offset=where, indirect_dim=0)


def clear(out):
    """Zeros in all of out, [rows, columns] in HBM."""
    zeros = nl.ndarray((TILE, out.shape[1]), dtype=out.dtype, buffer=nl.sbuf)
    nisa.memset(dst=zeros, value=0.0)
    for r in range(0, out.shape[0], TILE):
        size = min(TILE, out.shape[0] - r)
        nisa.dma_copy(dst=out[r : r + size, :], src=zeros[0:size, :])


@nki.jit
def gather(tokens, index):
    """out [n, hidden]: 128 rows a transfer, named by indices in SBUF."""
    n, hidden = index.shape[0], tokens.shape[1]
    out = nl.ndarray((n, hidden), dtype=tokens.dtype, buffer=nl.shared_hbm)
    for i in range(0, n, TILE):
        rows = nl.ndarray((TILE, hidden), dtype=tokens.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=chosen(tokens, load_index(index, i)))
        nisa.dma_copy(dst=out[i : i + TILE, :], src=rows)
    return out


@nki.jit
def scatter(rows, index, count):
    """out [count, hidden], zero but for rows that an index names."""
    n, hidden = rows.shape
    out = nl.ndarray((count, hidden), dtype=rows.dtype, buffer=nl.shared_hbm)
    clear(out)
    for i in range(0, n, TILE):
        tile = nl.ndarray((TILE, hidden), dtype=rows.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=rows[i : i + TILE, :])
        nisa.dma_copy(dst=chosen(out, load_index(index, i)), src=tile)
    return out


@nki.jit
def expert(tokens, index, weight, count):
    """Gather, times weight [hidden, width], scatter: out [count, width].

    hidden is a multiple of 128 and width of 512.
    """
    hidden, width = weight.shape
    out = nl.ndarray((count, width), dtype=tokens.dtype, buffer=nl.shared_hbm)
    clear(out)
    for i in range(0, index.shape[0], TILE):
        where = load_index(index, i)
        rows = nl.ndarray((TILE, hidden), dtype=tokens.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=chosen(tokens, where))
        columns = []
        for h in range(0, hidden, TILE):
            turned = nl.ndarray((TILE, TILE), dtype=tokens.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=rows[:, h : h + TILE])
            column = nl.ndarray((TILE, TILE), dtype=tokens.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=column, src=turned)
            columns.append(column)
        result = nl.ndarray((TILE, width), dtype=out.dtype, buffer=nl.sbuf)
        for w in range(0, width, 512):
            psum = nl.ndarray((TILE, 512), dtype=nl.float32, buffer=nl.psum)
            for h in range(len(columns)):
                weight_tile = nl.ndarray((TILE, 512), dtype=weight.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=weight_tile, src=weight[h * TILE : (h + 1) * TILE, w : w + 512])
                nisa.nc_matmul(dst=psum, stationary=columns[h], moving=weight_tile)
            nisa.tensor_copy(dst=result[:, w : w + 512], src=psum)
        nisa.dma_copy(dst=chosen(out, where), src=result)
    return out
