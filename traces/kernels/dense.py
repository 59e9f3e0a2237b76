"""Products of plain NKI programs, fp32 unless the arguments are not: one loop nest each.

Tiles are 128 rows of M, 128 of K and at most 512 columns of N. Results leave PSUM on the Scalar
engine. M and K are multiples of 128.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE, BANK = 128, 512


def load(src):
    """A copy of a part of HBM, two-dimensional, in a new SBUF tile."""
    tile = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src)
    return tile


def out_of_psum(psum, dtype):
    """A copy of a PSUM tile in SBUF, by the Scalar engine."""
    tile = nl.ndarray(psum.shape, dtype=dtype, buffer=nl.sbuf)
    nisa.activation(dst=tile, op=nl.copy, data=psum)
    return tile


def transposed(tile):
    """A tile of at most 128 x 128 transposed on the Tensor engine, in SBUF."""
    rows, columns = tile.shape
    psum = nl.ndarray((columns, rows), dtype=tile.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=psum, data=tile)
    return out_of_psum(psum, tile.dtype)


def columns_of(width, most=BANK):
    """Slices of at most `most` columns."""
    return [slice(n, min(n + most, width)) for n in range(0, width, most)]


def new_psum(columns, rows=TILE):
    return nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)


def product_reference(lhs, rhs):
    """The plain product."""
    return lhs @ rhs


@nki.jit
def product(lhs, rhs, block_n=1024):
    """lhs[M, K] @ rhs[K, N] by rows of 128 and blocks of block_n columns.

    For each K tile of each block, a tile of lhs is loaded and transposed, and a tile of rhs loaded.
    """
    M, K = lhs.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=rhs.dtype, buffer=nl.shared_hbm)
    for m in range(0, M, TILE):
        for n in range(0, N, block_n):
            parts = columns_of(min(block_n, N - n))
            psums = [new_psum(part.stop - part.start) for part in parts]
            for k in range(0, K, TILE):
                lhs_T = transposed(load(lhs[m : m + TILE, k : k + TILE]))
                rhs_tile = load(rhs[k : k + TILE, n : min(n + block_n, N)])
                for psum, part in zip(psums, parts):
                    nisa.nc_matmul(dst=psum, stationary=lhs_T, moving=rhs_tile[:, part])
            for psum, part in zip(psums, parts):
                tile = out_of_psum(psum, out.dtype)
                nisa.dma_copy(dst=out[m : m + TILE, n + part.start : n + part.stop], src=tile)
    return out


def transposed_product_reference(lhsT, rhs):
    """The plain product."""
    return lhsT.T @ rhs


@nki.jit
def transposed_product(lhsT, rhs, block_m=1024, tile_n=BANK):
    """lhsT[K, M].T @ rhs[K, N]: blocks of block_m rows stay on chip, rhs is loaded for each."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=rhs.dtype, buffer=nl.shared_hbm)
    for m in range(0, M, block_m):
        lhs_tiles = [load(lhsT[k : k + TILE, m : m + block_m]) for k in range(0, K, TILE)]
        for part in columns_of(N, tile_n):
            rhs_tiles = [load(rhs[k : k + TILE, part]) for k in range(0, K, TILE)]
            for i in range(0, block_m, TILE):
                psum = new_psum(part.stop - part.start)
                for lhs_tile, rhs_tile in zip(lhs_tiles, rhs_tiles):
                    nisa.nc_matmul(dst=psum, stationary=lhs_tile[:, i : i + TILE], moving=rhs_tile)
                tile = out_of_psum(psum, out.dtype)
                nisa.dma_copy(dst=out[m + i : m + i + TILE, part], src=tile)
    return out


def swiglu_reference(x, w_gate, w_up, w_down):
    """By the definition."""
    gate = x @ w_gate
    return (gate / (1.0 + np.exp(-gate)) * (x @ w_up)) @ w_down


@nki.jit
def swiglu(x, w_gate, w_up, w_down):
    """(silu(x Wg) * x Wu) Wd in three phases, each for all of x[T, H] before the next begins.

    x is transposed, then the hidden values are made, transposed as they come out, then the result;
    what a phase leaves stays in SBUF as far as it fits. Weights are loaded once. T and H are
    multiples of 512, the hidden size of 128.
    """
    T, H = x.shape
    hidden = w_gate.shape[1]
    out = nl.ndarray((T, H), dtype=x.dtype, buffer=nl.shared_hbm)
    tokens = columns_of(T)

    x_T = [[None] * len(tokens) for h in range(0, H, TILE)]
    for p, part in enumerate(tokens):
        rows = [load(x[t : t + TILE, :]) for t in range(part.start, part.stop, TILE)]
        for h in range(H // TILE):
            psum = new_psum(BANK)
            for i, row in enumerate(rows):
                nisa.nc_transpose(
                    dst=psum[:, i * TILE : (i + 1) * TILE], data=row[:, h * TILE : (h + 1) * TILE]
                )
            x_T[h][p] = out_of_psum(psum, x.dtype)

    hidden_T = []
    for n in range(0, hidden, TILE):
        gates = [load(w_gate[h : h + TILE, n : n + TILE]) for h in range(0, H, TILE)]
        ups = [load(w_up[h : h + TILE, n : n + TILE]) for h in range(0, H, TILE)]
        hidden_T.append([])
        for p in range(len(tokens)):
            gate, up = new_psum(BANK), new_psum(BANK)
            for h in range(H // TILE):
                nisa.nc_matmul(dst=gate, stationary=gates[h], moving=x_T[h][p])
            for h in range(H // TILE):
                nisa.nc_matmul(dst=up, stationary=ups[h], moving=x_T[h][p])
            activated = nl.ndarray(gate.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=activated, op=nl.silu, data=gate)
            tile = nl.ndarray(gate.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=tile, data1=activated, data2=up, op=nl.multiply)
            hidden_T[-1].append(tile)

    downs = [load(w_down[n : n + TILE, :]) for n in range(0, hidden, TILE)]
    for p, part in enumerate(tokens):
        for i in range(0, BANK, TILE):
            for columns in columns_of(H):
                psum = new_psum(BANK)
                for n in range(hidden // TILE):
                    nisa.nc_matmul(
                        dst=psum,
                        stationary=hidden_T[n][p][:, i : i + TILE],
                        moving=downs[n][:, columns],
                    )
                tile = out_of_psum(psum, out.dtype)
                row = part.start + i
                nisa.dma_copy(dst=out[row : row + TILE, columns], src=tile)
    return out


def product_softmax_reference(lhs, rhs):
    """By the definition, batch by batch."""
    scores = lhs @ rhs
    e = np.exp(scores - scores.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True)


@nki.jit
def product_softmax(lhs, rhs):
    """softmax(lhs[B, M, K] @ rhs[B, K, N]) over N, K at most 128.

    All scores of a batch are made before the first row is normalised; they stay in SBUF as far as
    they fit. N is a multiple of 512.
    """
    batches, M, K = lhs.shape
    N = rhs.shape[2]
    out = nl.ndarray((batches, M, N), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for b in range(batches):
        rhs_tile = load(rhs[b, :, :])
        rows = []
        for m in range(0, M, TILE):
            lhs_T = transposed(load(lhs[b, m : m + TILE, :]))
            scores = nl.ndarray((TILE, N), dtype=nl.float32, buffer=nl.sbuf)
            for part in columns_of(N):
                psum = new_psum(BANK)
                nisa.nc_matmul(dst=psum, stationary=lhs_T, moving=rhs_tile[:, part])
                nisa.activation(dst=scores[:, part], op=nl.copy, data=psum)
            rows.append(scores)
        for i, scores in enumerate(rows):
            negative_max = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=negative_max, op=nl.maximum, data=scores, axis=1, negate=True)
            weights = nl.ndarray((TILE, N), dtype=nl.float32, buffer=nl.sbuf)
            total = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(
                dst=weights,
                op=nl.exp,
                data=scores,
                bias=negative_max,
                reduce_op=nl.add,
                reduce_res=total,
            )
            inverse = nl.ndarray((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.reciprocal(dst=inverse, data=total)
            result = nl.ndarray((TILE, N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=result, data=weights, op0=nl.multiply, operand0=inverse)
            nisa.dma_copy(dst=out[b, i * TILE : (i + 1) * TILE, :], src=result)
    return out
