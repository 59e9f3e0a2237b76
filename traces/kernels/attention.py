"""Attention of one head: softmax(q.T @ k) @ v.T with q, k, v of shape [d, seq], d = 128.

The result is [seq, d]. There is no scaling, as in the profiled programs: scale q beforehand.
Rows of 128 queries are a tile, 512 keys a chunk (one PSUM bank). seq is a multiple of 512.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE = 128
CHUNK = 512


def reference(q, k, v):
    """By the definition."""
    scores = q.T @ k
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ v.T


def fused_reference(q, k, v):
    """As the kernel: divides by the row sums after the second product."""
    scores = q.T @ k
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights @ v.T) * (1.0 / weights.sum(axis=1, keepdims=True))


def load_whole(src):
    """A [d, seq] input in SBUF."""
    tile = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src)
    return tile


def transposed(src):
    """[128, 128 n] in SBUF as fp32 tiles [128, n, 128]: block i is src[:, block i] transposed.

    Four transposes share a PSUM bank and are copied out at once.
    """
    blocks = src.shape[1] // TILE
    result = nl.ndarray((TILE, blocks, TILE), dtype=nl.float32, buffer=nl.sbuf)
    for first in range(0, blocks, CHUNK // TILE):
        psum = nl.ndarray((TILE, CHUNK // TILE, TILE), dtype=src.dtype, buffer=nl.psum)
        for i in range(CHUNK // TILE):
            column = (first + i) * TILE
            nisa.nc_transpose(dst=psum[:, i, :], data=src[:, column : column + TILE])
        nisa.tensor_copy(dst=result[:, first : first + CHUNK // TILE, :], src=psum)
    return result


def scores_of(q_tiles, k_tiles, row, chunk):
    """The scores of one tile of queries and one chunk of keys, in PSUM."""
    psum = nl.ndarray((TILE, CHUNK), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(
        dst=psum,
        stationary=q_tiles[:, row * TILE : (row + 1) * TILE],
        moving=k_tiles[:, chunk * CHUNK : (chunk + 1) * CHUNK],
    )
    return psum


def weighted_values(weights_T, v_rows):
    """weights[128, seq] @ v in PSUM, the weights given as blocks that `transposed` made."""
    psum = nl.ndarray((TILE, TILE), dtype=nl.float32, buffer=nl.psum)
    for i in range(v_rows.shape[1]):
        nisa.nc_matmul(dst=psum, stationary=weights_T[:, i, :], moving=v_rows[:, i, :])
    return psum


def reduce_groups(data, op, negate=False):
    """data[128, rows, chunks] reduced over its chunks."""
    result = nl.ndarray(data.shape[:2], dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=result, op=op, data=data, axis=2, negate=negate)
    return result


def exponentials(scores, weights, negative_max):
    """weights = exp(scores - max), chunk by chunk, for the tiles of a group; returns row sums."""
    rows, chunks = len(scores), len(scores[0])
    sums = nl.ndarray((TILE, rows, chunks), dtype=nl.float32, buffer=nl.sbuf)
    for r in range(rows):
        for c in range(chunks):
            part = weights[r][:, c * CHUNK : (c + 1) * CHUNK]
            nisa.activation(
                dst=part, op=nl.exp, data=scores[r][c], bias=negative_max[:, r : r + 1], scale=1.0
            )
    for r in range(rows):
        for c in range(chunks):
            part = weights[r][:, c * CHUNK : (c + 1) * CHUNK]
            nisa.tensor_reduce(dst=sums[:, r, c : c + 1], op=nl.add, data=part, axis=1)
    return reduce_groups(sums, nl.add)


def maxima(scores):
    """The negated row maxima of a group of tiles, [128, rows]."""
    rows, chunks = len(scores), len(scores[0])
    result = nl.ndarray((TILE, rows, chunks), dtype=nl.float32, buffer=nl.sbuf)
    for r in range(rows):
        for c in range(chunks):
            nisa.tensor_reduce(
                dst=result[:, r, c : c + 1], op=nl.maximum, data=scores[r][c], axis=1
            )
    return reduce_groups(result, nl.maximum, negate=True)


def row_view(hbm, tiles):
    """An HBM tensor [128 tiles, n] as [128, tiles, n]: one transfer moves several row tiles."""
    return hbm.reshape((tiles, TILE, hbm.shape[1])).permute((1, 0, 2))


@nki.jit
def fused(q, k, v):
    """Scores and weights stay on chip.

    Works on groups of query tiles (four, less when rows are long). The first chunk's scores stay
    in PSUM, those of further chunks are copied to SBUF. The result is stored at once at the end.
    """
    d, seq = q.shape
    tiles, chunks = seq // TILE, seq // CHUNK
    group = min(tiles, max(1, min(4, 8192 // seq)))
    out = nl.ndarray((seq, d), dtype=q.dtype, buffer=nl.shared_hbm)
    v_tiles, q_tiles, k_tiles = load_whole(v), load_whole(q), load_whole(k)
    v_rows = transposed(v_tiles)
    results = nl.ndarray((TILE, tiles, d), dtype=nl.float32, buffer=nl.sbuf)
    for first in range(0, tiles, group):
        rows = range(first, first + group)
        scores = [[None] * chunks for r in rows]
        for c in range(chunks - 1, -1, -1):
            for r in range(group):
                scores[r][c] = scores_of(q_tiles, k_tiles, first + r, c)
                if c > 0:
                    copy = nl.ndarray((TILE, CHUNK), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=copy, src=scores[r][c])
                    scores[r][c] = copy
        negative_max = maxima(scores)
        weights = [nl.ndarray((TILE, seq), dtype=nl.float32, buffer=nl.sbuf) for r in rows]
        sums = exponentials(scores, weights, negative_max)
        inverse = nl.ndarray((TILE, group), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=sums)
        weights_T = [transposed(weights[r]) for r in range(group)]
        for r in range(group):
            psum = weighted_values(weights_T[r], v_rows)
            nisa.tensor_scalar(
                dst=results[:, first + r, :],
                data=psum,
                op0=nl.multiply,
                operand0=inverse[:, r : r + 1],
            )
    nisa.dma_copy(dst=row_view(out, tiles), src=results)
    return out


@nki.jit
def unfused(q, k, v):
    """Three passes through HBM: scores are stored, read and made weights, read again.

    Short rows travel two tiles a transfer (512 KiB). fp32 in between, whatever the input.
    """
    d, seq = q.shape
    tiles, chunks = seq // TILE, seq // CHUNK
    pair = max(1, 1024 // seq)
    group = max(1, min(4, 2048 // seq))
    out = nl.ndarray((seq, d), dtype=q.dtype, buffer=nl.shared_hbm)
    between = nl.ndarray((seq, seq), dtype=nl.float32, buffer=nl.private_hbm)
    q_tiles, k_tiles, v_tiles = load_whole(q), load_whole(k), load_whole(v)

    def part(first):
        return row_view(between[first * TILE : (first + pair) * TILE, :], pair)

    for first in range(0, tiles, pair):
        rows = nl.ndarray((TILE, pair, seq), dtype=nl.float32, buffer=nl.sbuf)
        for r in range(pair):
            for c in range(chunks):
                psum = scores_of(q_tiles, k_tiles, first + r, c)
                nisa.tensor_copy(dst=rows[:, r, c * CHUNK : (c + 1) * CHUNK], src=psum)
        nisa.dma_copy(dst=part(first), src=rows)
    v_rows = transposed(v_tiles)

    for first in range(0, tiles, group):
        scores = []
        for start in range(first, first + group, pair):
            rows = nl.ndarray((TILE, pair, seq), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=rows, src=part(start))
            for r in range(pair):
                scores.append([rows[:, r, c * CHUNK : (c + 1) * CHUNK] for c in range(chunks)])
        negative_max = maxima(scores)
        weights = [nl.ndarray((TILE, seq), dtype=nl.float32, buffer=nl.sbuf) for r in range(group)]
        sums = exponentials(scores, weights, negative_max)
        inverse = nl.ndarray((TILE, group), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=sums)
        for start in range(0, group, pair):
            rows = nl.ndarray((TILE, pair, seq), dtype=nl.float32, buffer=nl.sbuf)
            for r in range(pair):
                for c in range(chunks):
                    columns = slice(c * CHUNK, (c + 1) * CHUNK)
                    nisa.tensor_scalar(
                        dst=rows[:, r, columns],
                        data=weights[start + r][:, columns],
                        op0=nl.multiply,
                        operand0=inverse[:, start + r : start + r + 1],
                    )
            nisa.dma_copy(dst=part(first + start), src=rows)

    results = nl.ndarray((TILE, tiles, d), dtype=q.dtype, buffer=nl.sbuf)
    waiting = []  # a product comes after the next transposes, which wait for nothing
    for first in range(0, tiles, pair):
        rows = nl.ndarray((TILE, pair, seq), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=part(first))
        waiting += [(first + r, transposed(rows[:, r, :])) for r in range(pair)]
        while len(waiting) > (1 if first + pair < tiles else 0):
            row, weights_T = waiting.pop(0)
            psum = weighted_values(weights_T, v_rows)
            nisa.tensor_copy(dst=results[:, row, :], src=psum)
    nisa.dma_copy(dst=row_view(out, tiles), src=results)
    return out
