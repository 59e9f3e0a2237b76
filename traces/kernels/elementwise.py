"""Elementwise operators over rows of 128: SiLU, and a step of AdamW. Shapes are [rows, columns]."""

import math

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

ROWS = 128
RATE, BETA1, BETA2, EPSILON, DECAY, STEP = 1e-3, 0.9, 0.999, 1e-8, 0.01, 10
MEAN_SCALE, SQUARE_SCALE = 1.0 / (1.0 - BETA1**STEP), 1.0 / (1.0 - BETA2**STEP)


def silu_reference(x):
    """By the definition."""
    return x / (1.0 + np.exp(-x))


def adamw_reference(p, g, m, v):
    """By the definition: decayed parameters less the rate times the corrected step."""
    mean = BETA1 * m + (1.0 - BETA1) * g
    square = BETA2 * v + (1.0 - BETA2) * g * g
    step = (mean * MEAN_SCALE) / (np.sqrt(square * SQUARE_SCALE) + EPSILON)
    return p * (1.0 - RATE * DECAY) - RATE * step


def load(src):
    """A copy of a part of HBM in a new SBUF tile."""
    tile = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src)
    return tile


def like(tile):
    return nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)


@nki.jit
def silu(x):
    """x * sigmoid(x), the sigmoid on the Scalar engine and the product on the Vector engine."""
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, rows, ROWS):
        part = slice(r, min(r + ROWS, rows))
        tile = load(x[part, :])
        gate = like(tile)
        nisa.activation(dst=gate, op=nl.sigmoid, data=tile)
        result = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=result, data1=tile, data2=gate, op=nl.multiply)
        nisa.dma_copy(dst=out[part, :], src=result)
    return out


@nki.jit
def adamw(p, g, m, v):
    """New parameters from parameters, gradients and both moments; the moments are not stored.

    The Scalar engine scales, squares and takes the root, the Vector engine does what has two inputs.
    """
    rows, columns = p.shape
    out = nl.ndarray((rows, columns), dtype=p.dtype, buffer=nl.shared_hbm)
    for r in range(0, rows, ROWS):
        part = slice(r, min(r + ROWS, rows))
        p_tile, g_tile, m_tile, v_tile = [load(x[part, :]) for x in (p, g, m, v)]
        new_m, new_v = like(g_tile), like(g_tile)
        nisa.activation(dst=new_m, op=nl.copy, data=g_tile, scale=1.0 - BETA1)
        nisa.activation(dst=new_v, op=nl.square, data=g_tile, scale=math.sqrt(1.0 - BETA2))
        mean, square = like(g_tile), like(g_tile)
        for dst, old, beta, new in ((mean, m_tile, BETA1, new_m), (square, v_tile, BETA2, new_v)):
            nisa.scalar_tensor_tensor(
                dst=dst, data=old, op0=nl.multiply, operand0=beta, op1=nl.add, operand1=new
            )
        root = like(g_tile)
        nisa.activation(dst=root, op=nl.sqrt, data=square, scale=SQUARE_SCALE)
        below = like(g_tile)
        nisa.tensor_scalar(
            dst=below,
            data=root,
            op0=nl.add,
            operand0=EPSILON,
            op1=nl.multiply,
            operand1=-1.0 / (RATE * MEAN_SCALE),
        )
        step = like(g_tile)
        nisa.tensor_tensor(dst=step, data1=mean, data2=below, op=nl.divide)
        result = nl.ndarray(p_tile.shape, dtype=p.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=result,
            data=p_tile,
            op0=nl.multiply,
            operand0=1.0 - RATE * DECAY,
            op1=nl.add,
            operand1=step,
        )
        nisa.dma_copy(dst=out[part, :], src=result)
    return out
