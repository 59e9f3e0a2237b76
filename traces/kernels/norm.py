"""Normalisations over the last axis of x[rows, features]; any number of rows.

gamma and beta are [1, features] and are spread over the partitions once.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

STATS = 512  # elements that one bn_stats takes


def rmsnorm_reference(x, gamma, eps=1e-6):
    """x / rms(x) * gamma."""
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + eps) * gamma


def layernorm_reference(x, gamma, beta, eps=1e-5):
    """Mean and variance merged from pieces of 512, as bn_aggr does it."""
    pieces = np.split(x, range(STATS, x.shape[1], STATS), axis=1)
    count = np.array([p.shape[1] for p in pieces])
    means = np.stack([p.mean(axis=1) for p in pieces])
    squares = np.stack([(p * p).mean(axis=1) for p in pieces])
    mean = (count @ means / x.shape[1])[:, None]
    variance = (count @ squares / x.shape[1])[:, None] - mean * mean
    return (x - mean) / np.sqrt(variance + eps) * gamma + beta


def spread_rows(row):
    """row[1, n] of HBM in every one of 128 partitions."""
    n = row.shape[1]
    tile = nl.ndarray((128, n), dtype=row.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=row.ap(pattern=[[0, 128], [1, n]]))
    return tile


@nki.jit
def rmsnorm(x, gamma, eps=1e-6):
    """The Scalar engine squares and sums in one pass; scaling by row and column follows."""
    rows, features = x.shape
    out = nl.ndarray((rows, features), dtype=x.dtype, buffer=nl.shared_hbm)
    weights = spread_rows(gamma)
    for r in range(0, rows, 128):
        size = min(128, rows - r)
        tile = nl.ndarray((size, features), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[r : r + size, :])
        squares = nl.ndarray((size, features), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total
        )
        inverse = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=inverse, op=nl.rsqrt, data=total, scale=1.0 / features, bias=eps)
        scaled = nl.ndarray((size, features), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=inverse)
        result = nl.ndarray((size, features), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=result, data1=scaled, data2=weights[0:size, :], op=nl.multiply)
        nisa.dma_copy(dst=out[r : r + size, :], src=result)
    return out


@nki.jit
def layernorm(x, gamma, beta, eps=1e-5):
    """Statistics by bn_stats in pieces of 512 and bn_aggr over the pieces."""
    rows, features = x.shape
    pieces = (features + STATS - 1) // STATS
    out = nl.ndarray((rows, features), dtype=x.dtype, buffer=nl.shared_hbm)
    weights, offsets = spread_rows(gamma), spread_rows(beta)
    for r in range(0, rows, 128):
        size = min(128, rows - r)
        tile = nl.ndarray((size, features), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[r : r + size, :])
        stats = nl.ndarray((size, 6 * pieces), dtype=nl.float32, buffer=nl.sbuf)
        for i in range(pieces):
            part = tile[:, i * STATS : min((i + 1) * STATS, features)]
            nisa.bn_stats(dst=stats[:, 6 * i : 6 * i + 6], data=part)
        moments = nl.ndarray((size, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.bn_aggr(dst=moments, data=stats)
        inverse = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=inverse, op=nl.rsqrt, data=moments[:, 1:2], bias=eps)
        centred = nl.ndarray((size, features), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=centred,
            data=tile,
            op0=nl.subtract,
            operand0=moments[:, 0:1],
            op1=nl.multiply,
            operand1=inverse,
        )
        scaled = nl.ndarray((size, features), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=scaled, data1=centred, data2=weights[0:size, :], op=nl.multiply)
        result = nl.ndarray((size, features), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=result, data1=scaled, data2=offsets[0:size, :], op=nl.add)
        nisa.dma_copy(dst=out[r : r + size, :], src=result)
    return out
