"""One layer of an MLP: GELU(lhsT[K, M].T @ rhs[K, N] + bias[1, N]), fused and in two passes.

The product loads both tiles for every 128 x 512 x 128 step. bias is spread over the partitions
once. The result has the dtype of lhsT.
"""

import math

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE_M, TILE_N, TILE_K = 128, 512, 128
ERF_SLOPE = 1.0 / math.sqrt(2.0 * math.pi)  # d/dx of the normal distribution at 0
TAYLOR = (ERF_SLOPE, -ERF_SLOPE / 6.0, ERF_SLOPE / 40.0, -ERF_SLOPE / 336.0)


def gelu_taylor_reference(x):
    """GELU from the series of erf at 0 up to x**8: right near 0 only."""
    square = x * x
    series = TAYLOR[3] * square
    for coefficient in (TAYLOR[2], TAYLOR[1], TAYLOR[0]):
        series = (series + coefficient) * square
    return 0.5 * x + series


def gelu_reference(x):
    """GELU by its definition."""
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def reference(lhsT, rhs, bias):
    """The layer by its definition."""
    return gelu_reference(lhsT.T @ rhs + bias)


def gelu_taylor_vector_reference(lhsT, rhs, bias):
    """The layer with the polynomial."""
    return gelu_taylor_reference(lhsT.T @ rhs + bias)


def spread_rows(row):
    """row[1, N] of HBM in every one of 128 partitions."""
    N = row.shape[1]
    tile = nl.ndarray((128, N), dtype=row.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=row.ap(pattern=[[0, 128], [1, N]]))
    return tile


def product_tile(lhsT, rhs, m, n):
    """One 128 x 512 tile of the product, in PSUM."""
    psum = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
    for k in range(0, lhsT.shape[0], TILE_K):
        lhs_tile = nl.ndarray((TILE_K, TILE_M), dtype=lhsT.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=lhs_tile, src=lhsT[k : k + TILE_K, m : m + TILE_M])
        rhs_tile = nl.ndarray((TILE_K, TILE_N), dtype=rhs.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rhs_tile, src=rhs[k : k + TILE_K, n : n + TILE_N])
        nisa.nc_matmul(dst=psum, stationary=lhs_tile, moving=rhs_tile)
    return psum


def product_with_bias(out, lhsT, rhs, bias, activate):
    """Product plus bias; `activate(dst, data)` makes of each tile what is stored."""
    bias_rows = spread_rows(bias)
    for m in range(0, lhsT.shape[1], TILE_M):
        for n in range(0, rhs.shape[1], TILE_N):
            psum = product_tile(lhsT, rhs, m, n)
            biased = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(
                dst=biased, data1=psum, data2=bias_rows[:, n : n + TILE_N], op=nl.add
            )
            tile = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            activate(tile, biased)
            nisa.dma_copy(dst=out[m : m + TILE_M, n : n + TILE_N], src=tile)


def gelu_on_scalar(dst, data):
    """GELU as one instruction of the Scalar engine."""
    nisa.activation(dst=dst, op=nl.gelu, data=data)


def gelu_on_vector(dst, data):
    """GELU as a polynomial, by the Vector engine alone."""
    square = nl.ndarray(data.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=square, data1=data, data2=data, op=nl.multiply)
    series = nl.ndarray(data.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=series, data=square, op0=nl.multiply, operand0=TAYLOR[3])
    for coefficient in (TAYLOR[2], TAYLOR[1], TAYLOR[0]):
        nisa.scalar_tensor_tensor(
            dst=series,
            data=series,
            op0=nl.add,
            operand0=coefficient,
            op1=nl.multiply,
            operand1=square,
        )
    nisa.scalar_tensor_tensor(
        dst=dst, data=data, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=series
    )


def keep(dst, data):
    """No activation: a copy in the dtype of dst."""
    nisa.tensor_copy(dst=dst, src=data)


def apply_gelu(out, x):
    """GELU of x[rows, n], 128 whole rows at a time."""
    for m in range(0, x.shape[0], TILE_M):
        tile = nl.ndarray((TILE_M, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[m : m + TILE_M, :])
        result = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.sbuf)
        gelu_on_scalar(result, tile)
        nisa.dma_copy(dst=out[m : m + TILE_M, :], src=result)


@nki.jit
def product(lhsT, rhs, bias):
    """The product plus bias alone: the first launch of the layer in two."""
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    product_with_bias(out, lhsT, rhs, bias, keep)
    return out


def product_reference(lhsT, rhs, bias):
    """By the definition."""
    return lhsT.T @ rhs + bias


@nki.jit
def gelu(x):
    """GELU of x[M, N] alone: the second launch."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    apply_gelu(out, x)
    return out


@nki.jit
def gelu_unfused(lhsT, rhs, bias):
    """Two passes: the biased product goes to HBM, is read again, and GELU is applied."""
    shape = (lhsT.shape[1], rhs.shape[1])
    biased = nl.ndarray(shape, dtype=lhsT.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(shape, dtype=lhsT.dtype, buffer=nl.shared_hbm)
    product_with_bias(biased, lhsT, rhs, bias, keep)
    apply_gelu(out, biased)
    return out


@nki.jit
def gelu_fused_scalar(lhsT, rhs, bias):
    """One pass: the Scalar engine applies GELU to each tile before it is stored."""
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    product_with_bias(out, lhsT, rhs, bias, gelu_on_scalar)
    return out


@nki.jit
def gelu_taylor_vector(lhsT, rhs, bias):
    """One pass, with GELU as a polynomial on the Vector engine."""
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    product_with_bias(out, lhsT, rhs, bias, gelu_on_vector)
    return out
