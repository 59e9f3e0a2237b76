"""Recurrences along the free axis by the Vector engine's scan."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CHUNK = 2048


def cumsum_reference(x):
    """Chunk by chunk, each starting at the last sum of the one before."""
    out = np.empty_like(x)
    carry = np.zeros((x.shape[0], 1), x.dtype)
    for c in range(0, x.shape[1], CHUNK):
        out[:, c : c + CHUNK] = np.cumsum(x[:, c : c + CHUNK], axis=1) + carry
        carry = out[:, c : c + CHUNK][:, -1:]
    return out


@nki.jit
def cumsum(x):
    """Cumulative sum over the last axis of x[rows, n]: 128 rows, chunks of 2048 columns."""
    rows, n = x.shape
    out = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, min(CHUNK, n)), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    for r in range(0, rows, 128):
        height = min(128, rows - r)
        carry = 0.0
        for c in range(0, n, CHUNK):
            size = min(CHUNK, n - c)
            tile = nl.ndarray((height, size), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[r : r + height, c : c + size])
            sums = nl.ndarray((height, size), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(
                dst=sums,
                data0=ones[0:height, 0:size],
                data1=tile,
                initial=carry,
                op0=nl.multiply,
                op1=nl.add,
            )
            carry = sums[:, size - 1 : size]
            result = nl.ndarray((height, size), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=sums)
            nisa.dma_copy(dst=out[r : r + height, c : c + size], src=result)
    return out


def selective_scan_reference(u, delta, A, B, C):
    """Step by step: h = exp(delta A) h + delta u B, y = sum over states of C h."""
    channels, length = u.shape
    h = np.zeros(A.shape, np.float64)
    out = np.empty((channels, length), np.float32)
    for t in range(length):
        h = np.exp(delta[:, t : t + 1] * A) * h + (delta * u)[:, t : t + 1] * B[:, t]
        out[:, t] = h @ C[:, t]
    return out


@nki.jit
def selective_scan(u, delta, A, B, C):
    """Mamba's scan: u, delta [channels, length], A [channels, states], B, C [states, length].

    128 channels a tile, one scan a state over the whole length; out [channels, length]. Rows of B
    and C are spread over the partitions when they are loaded.
    """
    channels, length = u.shape
    states = A.shape[1]
    out = nl.ndarray((channels, length), dtype=u.dtype, buffer=nl.shared_hbm)

    def spread(x, state):
        tile = nl.ndarray((128, length), dtype=x.dtype, buffer=nl.sbuf)
        pattern = [[0, 128], [1, length]]
        nisa.dma_copy(dst=tile, src=x.ap(pattern=pattern, offset=state * length))
        return tile

    for c in range(0, channels, 128):
        u_tile = nl.ndarray((128, length), dtype=u.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=u_tile, src=u[c : c + 128, :])
        delta_tile = nl.ndarray((128, length), dtype=delta.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=delta_tile, src=delta[c : c + 128, :])
        A_tile = nl.ndarray((128, states), dtype=A.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=A_tile, src=A[c : c + 128, :])
        drive = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=drive, data1=delta_tile, data2=u_tile, op=nl.multiply)
        total = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=total, value=0.0)
        for state in range(states):
            decay = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(
                dst=decay, op=nl.exp, data=delta_tile, scale=A_tile[:, state : state + 1]
            )
            driven = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=driven, data1=drive, data2=spread(B, state), op=nl.multiply)
            h = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(
                dst=h, data0=decay, data1=driven, initial=0.0, op0=nl.multiply, op1=nl.add
            )
            seen = nl.ndarray((128, length), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=seen, data1=h, data2=spread(C, state), op=nl.multiply)
            nisa.tensor_tensor(dst=total, data1=total, data2=seen, op=nl.add)
        result = nl.ndarray((128, length), dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out[c : c + 128, :], src=result)
    return out
