"""Mamba's selective scan, fused, in four orders of its loops; one batch, fp32.

u, delta [channels, length], A [channels, states], B, C [states, length]; the result is
[channels, length]. 128 channels are a tile. What is the same for all channels (a row of B or C) is
spread over the partitions by a product with ones, a PSUM bank at a time, and read from there.
length is a multiple of 512 or below it.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE = 128
BANK = 512  # fp32 elements of a PSUM bank


def reference(u, delta, A, B, C):
    """Step by step: h = exp(delta A) h + delta u B, y = sum over states of C h."""
    h = np.zeros(A.shape, np.float64)
    out = np.empty(u.shape, np.float32)
    for t in range(u.shape[1]):
        h = np.exp(delta[:, t : t + 1] * A) * h + (delta * u)[:, t : t + 1] * B[:, t]
        out[:, t] = h @ C[:, t]
    return out


def load(src):
    """A copy of a part of HBM in a new SBUF tile."""
    tile = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src)
    return tile


def new_tile(length):
    return nl.ndarray((TILE, length), dtype=nl.float32, buffer=nl.sbuf)


def row_of_ones():
    """What spreads a row: one partition, a column for each partition of the result."""
    ones = nl.ndarray((1, TILE), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    return ones


def product(tile_a, tile_b):
    """The elementwise product of two tiles."""
    result = new_tile(tile_a.shape[1])
    nisa.tensor_tensor(dst=result, data1=tile_a, data2=tile_b, op=nl.multiply)
    return result


def times_row(tile, row, ones):
    """Each partition of tile times row[1, length]."""
    length = tile.shape[1]
    result = new_tile(length)
    for at in range(0, length, BANK):
        part = slice(at, min(at + BANK, length))
        spread = nl.ndarray((TILE, part.stop - at), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=spread, stationary=ones, moving=row[:, part])
        nisa.tensor_tensor(dst=result[:, part], data1=tile[:, part], data2=spread, op=nl.multiply)
    return result


def one_state(total, delta, driven, A_column, B_row, C_row, ones, initial=0.0):
    """Adds the part of one state to total; returns the state's values at all steps."""
    length = delta.shape[1]
    decay = new_tile(length)
    nisa.activation(dst=decay, op=nl.exp, data=delta, scale=A_column)
    inputs = times_row(driven, B_row, ones)
    h = new_tile(length)
    nisa.tensor_tensor_scan(
        dst=h, data0=decay, data1=inputs, initial=initial, op0=nl.multiply, op1=nl.add
    )
    seen = times_row(h, C_row, ones)
    nisa.tensor_tensor(dst=total, data1=total, data2=seen, op=nl.add)
    return h


def zero_tile(length):
    tile = new_tile(length)
    nisa.memset(dst=tile, value=0.0)
    return tile


@nki.jit
def states_outside(u, delta, A, B, C):
    """Loops over states, then over channels: all is loaded again for each state."""
    channels, length = u.shape
    out = nl.ndarray((channels, length), dtype=u.dtype, buffer=nl.shared_hbm)
    ones = row_of_ones()
    totals = [zero_tile(length) for c in range(0, channels, TILE)]
    for s in range(A.shape[1]):
        for c in range(0, channels, TILE):
            rows = slice(c, c + TILE)
            delta_tile = load(delta[rows, :])
            driven = product(delta_tile, load(u[rows, :]))
            A_column = load(A[rows, s : s + 1])
            B_row, C_row = load(B[s : s + 1, :]), load(C[s : s + 1, :])
            one_state(totals[c // TILE], delta_tile, driven, A_column, B_row, C_row, ones)
    for c in range(0, channels, TILE):
        nisa.dma_copy(dst=out[c : c + TILE, :], src=totals[c // TILE])
    return out


@nki.jit
def channels_outside(u, delta, A, B, C):
    """Loops over channels, then over states: u and delta are loaded and multiplied once."""
    channels, length = u.shape
    out = nl.ndarray((channels, length), dtype=u.dtype, buffer=nl.shared_hbm)
    ones = row_of_ones()
    for c in range(0, channels, TILE):
        rows = slice(c, c + TILE)
        total = zero_tile(length)
        delta_tile = load(delta[rows, :])
        driven = product(delta_tile, load(u[rows, :]))
        for s in range(A.shape[1]):
            A_column = load(A[rows, s : s + 1])
            B_row, C_row = load(B[s : s + 1, :]), load(C[s : s + 1, :])
            one_state(total, delta_tile, driven, A_column, B_row, C_row, ones)
        nisa.dma_copy(dst=out[rows, :], src=total)
    return out


@nki.jit
def channels_outside_reload(u, delta, A, B, C):
    """`channels_outside`, but delta is loaded, and multiplied with u, again for each state."""
    channels, length = u.shape
    out = nl.ndarray((channels, length), dtype=u.dtype, buffer=nl.shared_hbm)
    ones = row_of_ones()
    for c in range(0, channels, TILE):
        rows = slice(c, c + TILE)
        total = zero_tile(length)
        u_tile = load(u[rows, :])
        for s in range(A.shape[1]):
            delta_tile = load(delta[rows, :])
            driven = product(delta_tile, u_tile)
            A_column = load(A[rows, s : s + 1])
            B_row, C_row = load(B[s : s + 1, :]), load(C[s : s + 1, :])
            one_state(total, delta_tile, driven, A_column, B_row, C_row, ones)
        nisa.dma_copy(dst=out[rows, :], src=total)
    return out


@nki.jit
def length_tiled(u, delta, A, B, C, tile=512):
    """`channels_outside` with the steps cut in tiles; a state's last value starts its next tile."""
    channels, length = u.shape
    out = nl.ndarray((channels, length), dtype=u.dtype, buffer=nl.shared_hbm)
    ones = row_of_ones()
    for c in range(0, channels, TILE):
        rows = slice(c, c + TILE)
        total = zero_tile(length)
        delta_tile = load(delta[rows, :])
        driven = product(delta_tile, load(u[rows, :]))
        for s in range(A.shape[1]):
            A_column = load(A[rows, s : s + 1])
            carry = 0.0
            for t in range(0, length, tile):
                part = slice(t, min(t + tile, length))
                B_row, C_row = load(B[s : s + 1, part]), load(C[s : s + 1, part])
                h = one_state(
                    total[:, part],
                    delta_tile[:, part],
                    driven[:, part],
                    A_column,
                    B_row,
                    C_row,
                    ones,
                    initial=carry,
                )
                carry = h[:, h.shape[1] - 1 : h.shape[1]]
        nisa.dma_copy(dst=out[rows, :], src=total)
    return out
