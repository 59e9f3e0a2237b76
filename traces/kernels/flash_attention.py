"""Attention that never holds a whole row of scores: causal prefill, and decode with a KV cache."""

import math

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE = 128
CHUNK = 512
MASKED = -30000.0  # exp() of it is 0 at any maximum


def causal_plain_reference(q, k, v):
    """By the definition: query i sees keys 0 to i."""
    scores = q.T @ k / math.sqrt(q.shape[0])
    seq = scores.shape[0]
    scores = np.where(np.arange(seq)[:, None] >= np.arange(seq)[None, :], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ v


def causal_reference(q, k, v):
    """Chunk by chunk with running maximum and sum, as the kernel."""
    d, seq = q.shape
    out = np.empty((seq, v.shape[1]), np.float32)
    for row in range(0, seq, TILE):
        top = np.full((TILE, 1), MASKED)
        total = np.zeros((TILE, 1))
        result = np.zeros((TILE, v.shape[1]))
        for column in range(0, row + TILE, CHUNK):
            end = min(column + CHUNK, seq)
            scores = q[:, row : row + TILE].T @ k[:, column:end] / math.sqrt(d)
            seen = np.arange(row, row + TILE)[:, None] >= np.arange(column, end)[None, :]
            scores = np.where(seen, scores, MASKED)
            new_top = np.maximum(top, scores.max(axis=1, keepdims=True))
            weights = np.exp(scores - new_top)
            shrink = np.exp(top - new_top)
            total = total * shrink + weights.sum(axis=1, keepdims=True)
            result = result * shrink + weights @ v[column:end]
            top = new_top
        out[row : row + TILE] = result / total
    return out


@nki.jit
def causal(q, k, v):
    """q, k [d, seq], v [seq, d], d at most 128; out [seq, d]; scores are divided by sqrt(d).

    Tiles of 128 queries, chunks of 512 keys; chunks above the diagonal are left out and the one
    on it is masked. Scores and sums are fp32, the weights have the dtype of v.
    """
    d, seq = q.shape
    out = nl.ndarray((seq, d), dtype=q.dtype, buffer=nl.shared_hbm)
    for row in range(0, seq, TILE):
        q_tile = nl.ndarray((d, TILE), dtype=q.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=q_tile, src=q[:, row : row + TILE])
        negative_top = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=negative_top, value=-MASKED)
        total = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=total, value=0.0)
        result = nl.ndarray((TILE, d), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=result, value=0.0)
        for column in range(0, row + TILE, CHUNK):
            size = min(CHUNK, seq - column)
            k_tile = nl.ndarray((d, size), dtype=k.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=k_tile, src=k[:, column : column + size])
            v_tile = nl.ndarray((TILE, size // TILE, d), dtype=v.dtype, buffer=nl.sbuf)
            v_rows = v[column : column + size, :].reshape((size // TILE, TILE, d))
            nisa.dma_copy(dst=v_tile, src=v_rows.permute((1, 0, 2)))

            psum = nl.ndarray((TILE, size), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=psum, stationary=q_tile, moving=k_tile)
            scores = nl.ndarray((TILE, size), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=scores, op=nl.copy, data=psum, scale=1.0 / math.sqrt(d))
            if column + size > row:
                unmasked = scores
                scores = nl.ndarray((TILE, size), dtype=nl.float32, buffer=nl.sbuf)
                nisa.affine_select(
                    dst=scores,
                    pattern=[[-1, size]],
                    offset=row - column,
                    channel_multiplier=1,
                    on_true_tile=unmasked,
                    on_false_value=MASKED,
                    cmp_op=nl.greater_equal,
                )

            old_negative_top = negative_top
            chunk_top = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=chunk_top, op=nl.maximum, data=scores, axis=1, negate=True)
            negative_top = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(
                dst=negative_top, data1=old_negative_top, data2=chunk_top, op=nl.minimum
            )
            shrink = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(
                dst=shrink, op=nl.exp, data=old_negative_top, scale=-1.0, bias=negative_top
            )
            weights = nl.ndarray((TILE, size), dtype=v.dtype, buffer=nl.sbuf)
            chunk_total = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(
                dst=weights,
                op=nl.exp,
                data=scores,
                bias=negative_top,
                reduce_op=nl.add,
                reduce_res=chunk_total,
            )
            add_scaled(total, shrink, chunk_total)

            turned = nl.ndarray((TILE, size), dtype=v.dtype, buffer=nl.psum)
            for i in range(0, size, TILE):
                nisa.nc_transpose(dst=turned[:, i : i + TILE], data=weights[:, i : i + TILE])
            weights_T = nl.ndarray((TILE, size), dtype=v.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=weights_T, src=turned)
            values = nl.ndarray((TILE, d), dtype=nl.float32, buffer=nl.psum)
            for i in range(size // TILE):
                nisa.nc_matmul(
                    dst=values,
                    stationary=weights_T[:, i * TILE : (i + 1) * TILE],
                    moving=v_tile[:, i, :],
                )
            add_scaled(result, shrink, values)

        inverse = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)
        final = nl.ndarray((TILE, d), dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=final, data=result, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[row : row + TILE, :], src=final)
    return out


def add_scaled(target, scale, data):
    """target = target * scale + data, scale [128, 1]."""
    nisa.scalar_tensor_tensor(
        dst=target, data=target, op0=nl.multiply, operand0=scale, op1=nl.add, operand1=data
    )


def decode_reference(q, k_new, v_new, k_cache, v_cache, position):
    """Attention of the new token's heads over positions 0 to `position`."""
    keys = np.concatenate([k_cache[:, :position], k_new], axis=1)
    values = np.concatenate([v_cache[:position], v_new], axis=0)
    scores = q.T @ keys / math.sqrt(q.shape[0])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ values


@nki.jit
def decode(q, k_new, v_new, k_cache, v_cache, position):
    """One token of one KV head: q [d, heads], k_new [d, 1], v_new [1, d]; out [heads, d].

    k_cache [d, capacity] and v_cache [capacity, d] hold `position` tokens before, and the new one
    as well after; capacity is a multiple of 128. All query heads that share the KV head go
    together. What lies behind `position` in the last chunk is read and masked.
    """
    d, heads = q.shape
    length = (position // TILE + 1) * TILE
    out = nl.ndarray((heads, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_tile = nl.ndarray((d, heads), dtype=q.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=q_tile, src=q)
    nisa.dma_copy(dst=k_cache[:, position : position + 1], src=k_new)
    nisa.dma_copy(dst=v_cache[position : position + 1, :], src=v_new)

    scores = nl.ndarray((heads, length), dtype=nl.float32, buffer=nl.sbuf)
    for column in range(0, length, CHUNK):
        size = min(CHUNK, length - column)
        k_tile = nl.ndarray((d, size), dtype=k_cache.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=k_tile, src=k_cache[:, column : column + size])
        psum = nl.ndarray((heads, size), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=psum, stationary=q_tile, moving=k_tile)
        nisa.activation(
            dst=scores[:, column : column + size],
            op=nl.copy,
            data=psum,
            scale=1.0 / math.sqrt(d),
        )
    if position + 1 < length:
        nisa.memset(dst=scores[:, position + 1 : length], value=MASKED)

    negative_top = nl.ndarray((heads, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=negative_top, op=nl.maximum, data=scores, axis=1, negate=True)
    weights = nl.ndarray((heads, length), dtype=v_cache.dtype, buffer=nl.sbuf)
    total = nl.ndarray((heads, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(
        dst=weights, op=nl.exp, data=scores, bias=negative_top, reduce_op=nl.add, reduce_res=total
    )
    inverse = nl.ndarray((heads, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=total)

    values = nl.ndarray((heads, d), dtype=nl.float32, buffer=nl.psum)
    for row in range(0, length, TILE):
        v_tile = nl.ndarray((TILE, d), dtype=v_cache.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=v_tile, src=v_cache[row : row + TILE, :])
        turned = nl.ndarray((TILE, heads), dtype=v_cache.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=weights[:, row : row + TILE])
        weights_T = nl.ndarray((TILE, heads), dtype=v_cache.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=weights_T, src=turned)
        nisa.nc_matmul(dst=values, stationary=weights_T, moving=v_tile)
    result = nl.ndarray((heads, d), dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=values, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=out, src=result)
    return out
