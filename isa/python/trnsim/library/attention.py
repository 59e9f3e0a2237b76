"""Attention: flash attention forward and backward, and that of Stable Diffusion's small heads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trnsim import nisa, nl
from trnsim.errors import fail
from trnsim.jit import jit
from trnsim.library.tiles import (
    CHUNK,
    TILE,
    expect,
    loaded,
    multiple,
    psum,
    sbuf,
    share,
    transposed,
)

MASKED = -30000.0  # exp() of it is 0 at any maximum
GROUP = 8  # tiles of queries that share what is loaded of keys and values
KEPT = 8192  # the longest sequence whose tiles the backward pass keeps in SBUF
SMALL_HEAD_SCALE = 0.125


@dataclass(frozen=True)
class FlashConfig:
    """How flash_fwd works: `seq_tile_size` keys at a time; with `training`, the log-sum-exp too.

    should_transpose_v: v comes as [d, seq] and is transposed on chip. lse_dtype: of the
    log-sum-exp, fp32 when empty. attn_core_tile_size is accepted and changes nothing here.
    """

    seq_tile_size: int = 2048
    attn_core_tile_size: int = 256
    training: bool = True
    should_transpose_v: bool = False
    lse_dtype: Any = ""


@dataclass(frozen=True)
class Work:
    """How scores become weights. operand: what the Tensor engine takes; inner: scores' type."""

    scale: float
    causal: bool
    operand: Any
    inner: Any
    dropout: float = 0.0
    seed: Any = None


def heads_of_reference(q: Any, k: Any, v: Any, scale: float, causal: bool, bias: Any) -> Any:
    """(weights, sums of exponentials' logarithms, results) of q [.., m, d], k, v [.., n, d]."""
    scores = scale * q @ np.swapaxes(k, -1, -2)
    if bias is not None:
        scores = scores + bias
    if causal:
        m, n = scores.shape[-2:]
        scores = np.where(np.arange(m)[:, None] >= np.arange(n)[None, :], scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / total, (top + np.log(total))[..., 0], weights / total @ v


def lse_tiles(lse: Any) -> Any:
    """[.., seq] as [.., 128, seq / 128]: a column holds 128 consecutive rows."""
    return np.swapaxes(lse.reshape(*lse.shape[:-1], -1, TILE), -1, -2)


def flash_fwd_reference(
    q: Any,
    k: Any,
    v: Any,
    logit_bias: Any = None,
    softmax_scale: Any = None,
    use_causal_mask: bool = True,
    config: Any = None,
) -> Any:
    """flash_fwd without dropout."""
    config = config or FlashConfig()
    scale = 1.0 / math.sqrt(q.shape[2]) if softmax_scale is None else softmax_scale
    group = q.shape[1] // k.shape[1]
    rows = np.swapaxes(v, 2, 3) if config.should_transpose_v else v
    keys, rows = (np.repeat(t, group, axis=1) for t in (np.swapaxes(k, 2, 3), rows))
    queries = np.swapaxes(q, 2, 3)
    _, lse, out = heads_of_reference(queries, keys, rows, scale, use_causal_mask, logit_bias)
    return (out, lse_tiles(lse)) if config.training else out


@jit
def flash_fwd(
    q: Any,
    k: Any,
    v: Any,
    seed: Any,
    logit_bias: Any = None,
    softmax_scale: Any = None,
    use_causal_mask: bool = True,
    mixed_precision: bool = True,
    dropout_p: float = 0.0,
    config: Any = None,
) -> Any:
    """Attention of q [b, heads, d, m] over k [b, kv heads, d, n] and v [b, kv heads, n, d].

    Returns o [b, heads, m, d] and, with config.training, the rows' log-sum-exp
    [b, heads, 128, m / 128]; otherwise o alone. d is at most 128, m and n are multiples of 128,
    and kv heads divide heads: a KV head serves consecutive query heads. v is [b, kv heads, d, n]
    with config.should_transpose_v. logit_bias [b, heads, m, n] is added to the scaled scores; with
    a causal mask, query i sees keys 0 to i. softmax_scale: 1 / sqrt(d) when None.

    mixed_precision: products take bf16 and the rest is fp32, else both have the type of q.
    seed [1]: of dropout, which is drawn for each 128 x 512 scores with a seed of their own, so
    that the backward pass can draw the same; needed only when dropout_p is not 0.

    The programs of a grid, such as [b, kv heads], share the pairs of batch and KV head.
    """
    call = "flash_fwd"
    config = config or FlashConfig()
    batch, heads, d, rows = q.shape
    kv_heads, columns = k.shape[1], k.shape[3]
    expect(call, "k", k, (batch, kv_heads, d, columns))
    turn = config.should_transpose_v
    expect(call, "v", v, (batch, kv_heads, *((d, columns) if turn else (columns, d))))
    if logit_bias is not None:
        expect(call, "logit_bias", logit_bias, (batch, heads, rows, columns))
    _check(call, d, heads, kv_heads, dropout_p)
    multiple(call, "seq_q", rows)
    multiple(call, "seq_k", columns)
    multiple(call, "config.seq_tile_size", config.seq_tile_size, CHUNK)
    work = Work(
        1.0 / math.sqrt(d) if softmax_scale is None else softmax_scale,
        use_causal_mask,
        nl.bfloat16 if mixed_precision else q.dtype,
        nl.float32 if mixed_precision else q.dtype,
        dropout_p,
        _seed(call, seed, dropout_p),
    )
    out = nl.ndarray((batch, heads, rows, d), dtype=q.dtype, buffer=nl.shared_hbm)
    lse = None
    if config.training:
        kind = config.lse_dtype or nl.float32
        lse = nl.ndarray((batch, heads, TILE, rows // TILE), dtype=kind, buffer=nl.shared_hbm)
    for piece in share(batch * kv_heads):
        b, kv = divmod(piece, kv_heads)
        for h in range(kv * heads // kv_heads, (kv + 1) * heads // kv_heads):
            attend(
                columns_of(q[b, h], work.operand),
                columns_of(k[b, kv], work.operand),
                rows_of(v[b, kv], work.operand, turn),
                out[b, h],
                None if lse is None else lse[b, h],
                None if logit_bias is None else logit_bias[b, h],
                d,
                columns,
                min(config.seq_tile_size, columns),
                (b * heads + h) * (rows // TILE) * -(-columns // CHUNK),
                work,
            )
    return out if lse is None else (out, lse)


def _check(call: str, d: int, heads: int, kv_heads: int, dropout: float) -> None:
    if d > TILE:
        fail(call, "d", d, f"at most {TILE}")
    if heads % kv_heads:
        fail(call, "k", f"{kv_heads} heads", f"a number that divides the {heads} of q")
    if not 0.0 <= dropout < 1.0:
        fail(call, "dropout_p", dropout, "a number from 0 to below 1")


def _seed(call: str, seed: Any, dropout: float) -> Any:
    """The seed in SBUF, [1, 1], when there is dropout."""
    if dropout == 0.0:
        return None
    if seed is None:
        fail(call, "seed", seed, "a tensor [1], since there is dropout")
    return loaded(seed.reshape((1, 1)), seed.dtype)


# The parts that a head's attention is made from: functions of (start, size) that give tiles.

Part = Callable[[int, int], Any]


def columns_of(head: Any, dtype: Any) -> Part:
    """Of a head [d, seq] in HBM: [d, size]."""
    return lambda start, size: loaded(head[:, start : start + size], dtype)


def rows_of(head: Any, dtype: Any, turn: bool = False) -> Part:
    """Of a head [seq, d] in HBM (or [d, seq], turned on chip): [128, size / 128 * d]."""

    def part(start: int, size: int) -> Any:
        if turn:
            return transposed(loaded(head[:, start : start + size], dtype), dtype)
        blocks, d = size // TILE, head.shape[1]
        rows = head[start : start + size, :].reshape((blocks, TILE, d)).permute((1, 0, 2))
        return loaded(rows, dtype).reshape((TILE, blocks * d))

    return part


def attend(
    queries: Part,
    keys: Part,
    values: Part,
    out: Any,
    lse: Any,
    bias: Any,
    d: int,
    columns: int,
    block: int,
    number: int,
    work: Work,
) -> None:
    """One head: out [m, d], and its log-sum-exp [128, m / 128].

    A group of query tiles goes over the keys, `block` at a time. number: of the head's first
    piece of dropout.
    """
    rows = out.shape[0]
    for first in range(0, rows, GROUP * TILE):
        group = range(first, min(first + GROUP * TILE, rows), TILE)
        tiles = {row: queries(row, TILE) for row in group}
        states: dict[int, Any] = {}
        for start in range(0, columns, block):
            if work.causal and start > group[-1]:
                break
            size = min(block, columns - start)
            key_block, value_block = keys(start, size), values(start, size)
            for row in group:
                seen = min(size, row + TILE - start) if work.causal else size
                if seen <= 0:
                    continue
                if work.dropout:  # drawn for whole chunks, as the backward pass does
                    seen = min(size, -(-seen // CHUNK) * CHUNK)
                scores = scores_of(tiles[row], key_block, bias, row, start, seen, work)
                at = number + row // TILE * -(-columns // CHUNK) + start // CHUNK
                states[row] = add_block(states.get(row), scores, value_block, d, at, work)
        logs = None if lse is None else sbuf((TILE, len(group)), lse.dtype)
        for place, row in enumerate(group):
            negative_top, total, result = states[row]
            inverse = sbuf((TILE, 1))
            nisa.reciprocal(dst=inverse, data=total)
            final = sbuf((TILE, d), out.dtype)
            nisa.tensor_scalar(
                dst=final,
                data=result,
                op0=nl.multiply,
                operand0=inverse,
                op1=nl.multiply,
                operand1=1.0 / (1.0 - work.dropout),
            )
            nisa.dma_copy(dst=out[row : row + TILE, :], src=final)
            if logs is not None:
                log = sbuf((TILE, 1))
                nisa.activation(dst=log, op=nl.log, data=total)
                nisa.tensor_tensor(
                    dst=logs[:, place : place + 1], data1=log, data2=negative_top, op=nl.subtract
                )
        if logs is not None:
            nisa.dma_copy(
                dst=lse[:, first // TILE : first // TILE + len(group)],
                src=logs,
            )


def scores_of(query: Any, keys: Any, bias: Any, row: int, start: int, seen: int, work: Work) -> Any:
    """Scaled, biased and masked scores of 128 queries and the first `seen` keys of a block."""
    scores = sbuf((TILE, seen), work.inner)
    for column in range(0, seen, CHUNK):
        size = min(CHUNK, seen - column)
        part = scores[:, column : column + size]
        product = psum((TILE, size))
        nisa.nc_matmul(dst=product, stationary=query, moving=keys[:, column : column + size])
        add_bias(part, product, bias, row, start + column, work)
        if work.causal and start + column + size - 1 > row:
            mask_above(part, row - start - column, MASKED)
    return scores


def add_bias(dst: Any, product: Any, bias: Any, row: int, column: int, work: Work) -> None:
    """dst = product * scale + the bias of its places, if there is one."""
    if bias is None:
        nisa.activation(dst=dst, op=nl.copy, data=product, scale=work.scale)
        return
    added = loaded(bias[row : row + TILE, column : column + dst.shape[1]], bias.dtype)
    nisa.scalar_tensor_tensor(
        dst=dst,
        data=product,
        op0=nl.multiply,
        operand0=work.scale,
        op1=nl.add,
        operand1=added,
    )


def mask_above(tile: Any, offset: int, value: float) -> None:
    """Sets what is right of the diagonal, where column = row + offset."""
    nisa.affine_select(
        dst=tile,
        pattern=[[-1, tile.shape[1]]],
        offset=offset,
        channel_multiplier=1,
        on_true_tile=tile,
        on_false_value=value,
        cmp_op=nl.greater_equal,
    )


def add_block(before: Any, scores: Any, values: Any, d: int, number: int, work: Work) -> Any:
    """(negated maxima, sums, results) of 128 rows after one more block of scores."""
    seen = scores.shape[1]
    negative_top = sbuf((TILE, 1))
    nisa.tensor_reduce(dst=negative_top, op=nl.maximum, data=scores, axis=1, negate=True)
    if before is not None:
        block_top = negative_top
        negative_top = sbuf((TILE, 1))
        nisa.tensor_tensor(dst=negative_top, data1=before[0], data2=block_top, op=nl.minimum)
    weights = sbuf((TILE, seen), work.operand)
    total = sbuf((TILE, 1))
    nisa.activation_reduce(
        dst=weights,
        op=nl.exp,
        data=scores,
        bias=negative_top,
        reduce_op=nl.add,
        reduce_res=total,
    )
    if work.dropout:
        for column in range(0, seen, CHUNK):
            part = weights[:, column : column + min(CHUNK, seen - column)]
            drop(part, part, number + column // CHUNK, work)
    product = psum((TILE, d))
    turned = transposed(weights, work.operand)
    for i in range(seen // TILE):
        nisa.nc_matmul(
            dst=product,
            stationary=turned[:, i * TILE : (i + 1) * TILE],
            moving=values[:, i * d : (i + 1) * d],
        )
    if before is None:
        result = sbuf((TILE, d))
        nisa.tensor_copy(dst=result, src=product)
        return negative_top, total, result
    shrink = sbuf((TILE, 1))
    nisa.activation(dst=shrink, op=nl.exp, data=before[0], scale=-1.0, bias=negative_top)
    return (
        negative_top,
        add_scaled(before[1], shrink, total),
        add_scaled(before[2], shrink, product),
    )


def add_scaled(old: Any, scale: Any, data: Any) -> Any:
    """old * scale + data, scale [128, 1]."""
    made = sbuf(old.shape)
    nisa.scalar_tensor_tensor(
        dst=made, data=old, op0=nl.multiply, operand0=scale, op1=nl.add, operand1=data
    )
    return made


def drop(dst: Any, data: Any, number: int, work: Work) -> None:
    """Zeroes elements at random, by the seed of the piece with this number."""
    seed = sbuf((1, 1), work.seed.dtype)
    nisa.tensor_scalar(dst=seed, data=work.seed, op0=nl.add, operand0=number)
    nl.random_seed(seed)
    nisa.dropout(dst=dst, data=data, prob=work.dropout)


# The backward pass.


def flash_attn_bwd_reference(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    dy_ref: Any,
    logit_bias_ref: Any = None,
    use_causal_mask: bool = False,
    softmax_scale: Any = None,
) -> Any:
    """By the definition, without dropout; o_ref and lse_ref follow from the rest."""
    scale = 1.0 / math.sqrt(q_ref.shape[2]) if softmax_scale is None else softmax_scale
    q, k, v, dy = (np.swapaxes(t, 2, 3) for t in (q_ref, k_ref, v_ref, dy_ref))
    weights, _, out = heads_of_reference(q, k, v, scale, use_causal_mask, logit_bias_ref)
    d_weights = dy @ np.swapaxes(v, 2, 3)
    delta = (dy * out).sum(axis=-1, keepdims=True)
    d_scores = weights * (d_weights - delta) * scale
    d_scores_T, weights_T = (np.swapaxes(t, 2, 3) for t in (d_scores, weights))
    return tuple(np.swapaxes(t, 2, 3) for t in (d_scores @ k, d_scores_T @ q, weights_T @ dy))


@jit
def flash_attn_bwd(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    o_ref: Any,
    dy_ref: Any,
    lse_ref: Any,
    seed_ref: Any,
    logit_bias_ref: Any = None,
    use_causal_mask: bool = False,
    mixed_precision: bool = False,
    dropout_p: float = 0.0,
    softmax_scale: Any = None,
) -> Any:
    """The gradients (dq, dk, dv) of flash_fwd, where dy is that of its result o.

    All of q, k, v, o, dy, dq, dk, dv are [b, heads, d, seq]: o of flash_fwd is transposed before.
    lse is flash_fwd's [b, heads, 128, seq / 128]; d is at most 128, seq a multiple of 128. Bias,
    mask, scale, precision and dropout are as there. The bias gets no gradient.

    The weights are computed again from the scores and lse. 512 keys at a time go over all queries;
    dk and dv add up in PSUM, dq in SBUF. The programs of a grid, such as [b, heads], share the
    heads.
    """
    call = "flash_attn_bwd"
    batch, heads, d, seq = q_ref.shape
    for name, tensor in (("k", k_ref), ("v", v_ref), ("o", o_ref), ("dy", dy_ref)):
        expect(call, f"{name}_ref", tensor, (batch, heads, d, seq))
    expect(call, "lse_ref", lse_ref, (batch, heads, TILE, seq // TILE))
    if logit_bias_ref is not None:
        expect(call, "logit_bias_ref", logit_bias_ref, (batch, heads, seq, seq))
    _check(call, d, heads, heads, dropout_p)
    multiple(call, "seq", seq)
    work = Work(
        1.0 / math.sqrt(d) if softmax_scale is None else softmax_scale,
        use_causal_mask,
        nl.bfloat16 if mixed_precision else q_ref.dtype,
        nl.float32 if mixed_precision else q_ref.dtype,
        dropout_p,
        _seed(call, seed_ref, dropout_p),
    )
    results = tuple(
        nl.ndarray((batch, heads, d, seq), dtype=q_ref.dtype, buffer=nl.shared_hbm)
        for _ in range(3)
    )
    for piece in share(batch * heads):
        b, h = divmod(piece, heads)
        inputs = [t[b, h] for t in (q_ref, k_ref, v_ref, o_ref, dy_ref, lse_ref)]
        bias = None if logit_bias_ref is None else logit_bias_ref[b, h]
        number = piece * (seq // TILE) * -(-seq // CHUNK)
        differentiate(inputs, [t[b, h] for t in results], bias, number, work)
    return results


def differentiate(
    inputs: list[Any], results: list[Any], bias: Any, number: int, work: Work
) -> None:
    """One head of flash_attn_bwd."""
    q, k, v, o, dy, lse = inputs
    d, seq = q.shape
    negative_lse = sbuf((TILE, seq // TILE))
    nisa.tensor_scalar(
        dst=negative_lse, data=loaded(lse, lse.dtype), op0=nl.multiply, operand0=-1.0
    )
    deltas = row_products(dy, o, work)
    dq = sbuf((d, seq))
    ones = None
    if work.dropout:
        ones = sbuf((TILE, min(CHUNK, seq)), work.operand)
        nisa.memset(dst=ones, value=1.0)
    kept: dict[int, Any] = {}
    for column in range(0, seq, CHUNK):
        size = min(CHUNK, seq - column)
        keys = loaded(k[:, column : column + size], work.operand)
        values = loaded(v[:, column : column + size], work.operand)
        keys_T = transposed(keys, work.operand)
        dk, dv = psum((d, size)), psum((d, size))
        for row in range(column if work.causal else 0, seq, TILE):
            tiles = kept.get(row) or both_ways(q, dy, row, work)
            if seq <= KEPT:
                kept[row] = tiles
            query, query_T, gradient, gradient_T = tiles
            at = row // TILE
            weights = weights_of(query, keys, bias, negative_lse[:, at : at + 1], row, column, work)
            slope = psum((TILE, size))
            nisa.nc_matmul(dst=slope, stationary=gradient, moving=values)
            dropped = weights
            if ones is not None:
                kept_ones = sbuf((TILE, size), work.operand)
                drop(
                    kept_ones,
                    ones[:, 0:size],
                    number + at * -(-seq // CHUNK) + column // CHUNK,
                    work,
                )
                dropped = sbuf((TILE, size), work.operand)
                nisa.tensor_tensor(dst=dropped, data1=weights, data2=kept_ones, op=nl.multiply)
                whole = slope
                slope = sbuf((TILE, size))
                nisa.scalar_tensor_tensor(
                    dst=slope,
                    data=whole,
                    op0=nl.multiply,
                    operand0=1.0 / (1.0 - work.dropout),
                    op1=nl.multiply,
                    operand1=kept_ones,
                )
            d_scores = sbuf((TILE, size), work.operand)
            nisa.scalar_tensor_tensor(
                dst=d_scores,
                data=slope,
                op0=nl.subtract,
                operand0=deltas[:, at : at + 1],
                op1=nl.multiply,
                operand1=weights,
            )
            nisa.nc_matmul(dst=dv, stationary=gradient_T, moving=dropped)
            nisa.nc_matmul(dst=dk, stationary=query_T, moving=d_scores)
            add_dq(dq[:, row : row + TILE], keys_T, d_scores, column == 0, work)
        store_scaled(results[1][:, column : column + size], dk, work.scale)
        store_scaled(results[2][:, column : column + size], dv, 1.0 / (1.0 - work.dropout))
    store_scaled(results[0], dq, work.scale)


def both_ways(q: Any, dy: Any, row: int, work: Work) -> Any:
    """128 queries and their gradients, [d, 128] and [128, d] of each."""
    query = loaded(q[:, row : row + TILE], work.operand)
    gradient = loaded(dy[:, row : row + TILE], work.operand)
    return query, transposed(query, work.operand), gradient, transposed(gradient, work.operand)


def row_products(dy: Any, o: Any, work: Work) -> Any:
    """The sums over d of dy * o, [128, seq / 128]: a product with ones adds over partitions."""
    d, seq = dy.shape
    ones = sbuf((d, 1), work.operand)
    nisa.memset(dst=ones, value=1.0)
    result = sbuf((TILE, seq // TILE))
    for column in range(0, seq, CHUNK):
        size = min(CHUNK, seq - column)
        left = loaded(dy[:, column : column + size], dy.dtype)
        right = loaded(o[:, column : column + size], o.dtype)
        product = sbuf((d, size), work.operand)
        nisa.tensor_tensor(dst=product, data1=left, data2=right, op=nl.multiply)
        sums = psum((TILE, size // TILE))
        for i in range(size // TILE):
            nisa.nc_matmul(
                dst=sums[:, i : i + 1],
                stationary=product[:, i * TILE : (i + 1) * TILE],
                moving=ones,
            )
        at = column // TILE
        nisa.tensor_copy(dst=result[:, at : at + size // TILE], src=sums)
    return result


def weights_of(
    query: Any, keys: Any, bias: Any, negative_lse: Any, row: int, column: int, work: Work
) -> Any:
    """The softmax weights of 128 queries and a chunk of keys, from the rows' log-sum-exp."""
    size = keys.shape[1]
    product = psum((TILE, size))
    nisa.nc_matmul(dst=product, stationary=query, moving=keys)
    weights = sbuf((TILE, size), work.operand)
    if bias is None:
        nisa.activation(dst=weights, op=nl.exp, data=product, scale=work.scale, bias=negative_lse)
    else:
        scores = sbuf((TILE, size), work.inner)
        add_bias(scores, product, bias, row, column, work)
        nisa.activation(dst=weights, op=nl.exp, data=scores, bias=negative_lse)
    if work.causal and column + size - 1 > row:
        mask_above(weights, row - column, 0.0)
    return weights


def add_dq(dst: Any, keys_T: Any, d_scores: Any, first: bool, work: Work) -> None:
    """dst [d, 128] (+)= the keys times the scores' gradients [128, n]."""
    d = dst.shape[0]
    turned = transposed(d_scores, work.operand)
    product = psum((d, TILE))
    for i in range(d_scores.shape[1] // TILE):
        nisa.nc_matmul(
            dst=product,
            stationary=keys_T[:, i * d : (i + 1) * d],
            moving=turned[:, i * TILE : (i + 1) * TILE],
        )
    if first:
        nisa.tensor_copy(dst=dst, src=product)
    else:
        nisa.tensor_tensor(dst=dst, data1=product, data2=dst, op=nl.add)


def store_scaled(dst: Any, data: Any, scale: float) -> None:
    """dst = data * scale, dst in HBM."""
    tile = sbuf(data.shape, dst.dtype)
    nisa.activation(dst=tile, op=nl.copy, data=data, scale=scale)
    nisa.dma_copy(dst=dst, src=tile)


# Small heads.


def fused_self_attn_for_SD_small_head_size_reference(
    q_ref: Any, k_ref: Any, v_ref: Any, use_causal_mask: bool = False
) -> Any:
    """By the definition, for both forms of the arguments."""
    q, k = (t if t.ndim == 2 else np.swapaxes(t, 1, 2) for t in (q_ref, k_ref))
    return heads_of_reference(q, k, v_ref, SMALL_HEAD_SCALE, use_causal_mask, None)[2]


@jit
def fused_self_attn_for_SD_small_head_size(
    q_ref: Any,
    k_ref: Any,
    v_ref: Any,
    use_causal_mask: bool = False,
    mixed_precision: bool = True,
    mixed_percision: Any = None,
) -> Any:
    """Attention of one head for each batch: q, k [b, d, seq], v [b, seq, d]; out [b, seq, d].

    One head without a batch is q, k, v [seq, d], out [seq, d]; its q and k are transposed on chip.
    d is at most 128, seq a multiple of 128. Scores are multiplied by 0.125, the scale of 64
    elements a head, as in the documentation's tutorial. The shapes with a batch are our reading. Whole rows of scores are held on chip (flash_fwd's
    way with one block), in bf16 products and fp32 sums with mixed_precision, else in q's type;
    the argument's name is also known as `mixed_percision`.

    The programs of a grid share the batch.
    """
    call = "fused_self_attn_for_SD_small_head_size"
    mixed = mixed_precision if mixed_percision is None else mixed_percision
    work = Work(
        SMALL_HEAD_SCALE,
        use_causal_mask,
        nl.bfloat16 if mixed else q_ref.dtype,
        nl.float32 if mixed else q_ref.dtype,
    )
    flat = len(q_ref.shape) == 2
    if flat:
        batch, (seq, d) = 1, q_ref.shape
    else:
        batch, d, seq = q_ref.shape
    expect(call, "k_ref", k_ref, tuple(q_ref.shape))
    expect(call, "v_ref", v_ref, (seq, d) if flat else (batch, seq, d))
    _check(call, d, 1, 1, 0.0)
    multiple(call, "seq", seq)
    out = nl.ndarray(v_ref.shape, dtype=q_ref.dtype, buffer=nl.shared_hbm)
    for b in share(batch):
        if flat:
            queries, keys = (turned_rows(t, work.operand) for t in (q_ref, k_ref))
            values, result = v_ref, out
        else:
            queries, keys = (columns_of(t[b], work.operand) for t in (q_ref, k_ref))
            values, result = v_ref[b], out[b]
        attend(
            queries,
            keys,
            rows_of(values, work.operand),
            result,
            None,
            None,
            d,
            seq,
            seq,
            0,
            work,
        )
    return out


def turned_rows(head: Any, dtype: Any) -> Part:
    """Of a head [seq, d] in HBM, turned on chip: [d, size]."""

    def part(start: int, size: int) -> Any:
        d = head.shape[1]
        rows = rows_of(head, dtype)(start, size)
        result = sbuf((d, size), dtype)
        for first in range(0, size, CHUNK):
            count = min(CHUNK, size - first)
            turned = psum((d, count), dtype)
            for i in range(0, count, TILE):
                block = (first + i) // TILE
                nisa.nc_transpose(
                    dst=turned[:, i : i + TILE], data=rows[:, block * d : (block + 1) * d]
                )
            nisa.tensor_copy(dst=result[:, first : first + count], src=turned)
        return result

    return part
