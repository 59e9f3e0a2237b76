"""Row-wise quantisation to fp8 and the product of fp8 matrices at double rate."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

FP8_MAX = 240.0  # largest finite float8_e4m3
TILE_M, TILE_N, TILE_K = 128, 512, 256


def quantize_reference(x):
    """Scaled rows before rounding to fp8, and the scales that undo it, [rows, 1]."""
    top = np.abs(x).max(axis=1, keepdims=True)
    return x * (FP8_MAX / top), top / FP8_MAX


@nki.jit
def quantize(x):
    """x [rows, columns] to fp8 [rows, columns] and fp32 scales [rows, 1]: x = fp8 * scale."""
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=nl.float8_e4m3, buffer=nl.shared_hbm)
    scales = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for r in range(0, rows, 128):
        size = min(128, rows - r)
        tile = nl.ndarray((size, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[r : r + size, :])
        magnitudes = nl.ndarray((size, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=magnitudes, op=nl.abs, data=tile)
        top = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=magnitudes, axis=1)
        scale = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scale, data=top, op0=nl.multiply, operand0=1.0 / FP8_MAX)
        inverse = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=scale)
        result = nl.ndarray((size, columns), dtype=nl.float8_e4m3, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=tile, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[r : r + size, :], src=result)
        nisa.dma_copy(dst=scales[r : r + size, :], src=scale)
    return out, scales


def double_row_reference(lhsT, rhs):
    """The plain product, 256 rows of K at a time."""
    out = np.zeros((lhsT.shape[1], rhs.shape[1]), np.float32)
    for k in range(0, lhsT.shape[0], TILE_K):
        out += lhsT[k : k + TILE_K].T @ rhs[k : k + TILE_K]
    return out


def load_pairs(src):
    """[256, n] of HBM as [128, 2, n]: row p and row 128 + p in partition p."""
    tile = nl.ndarray((128, 2, src.shape[1]), dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src.reshape((2, 128, src.shape[1])).permute((1, 0, 2)))
    return tile


@nki.jit
def double_row(lhsT, rhs):
    """lhsT [K, M], rhs [K, N] in fp8; out [M, N] bf16. 256 rows of K a product (double row)."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    for m in range(0, M, TILE_M):
        lhs_tiles = [load_pairs(lhsT[k : k + TILE_K, m : m + TILE_M]) for k in range(0, K, TILE_K)]
        for n in range(0, N, TILE_N):
            psum = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for k in range(K // TILE_K):
                rows = slice(k * TILE_K, (k + 1) * TILE_K)
                nisa.nc_matmul(
                    dst=psum,
                    stationary=lhs_tiles[k],
                    moving=load_pairs(rhs[rows, n : n + TILE_N]),
                    perf_mode=nisa.matmul_perf_mode.double_row,
                )
            tile = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=psum)
            nisa.dma_copy(dst=out[m : m + TILE_M, n : n + TILE_N], src=tile)
    return out
