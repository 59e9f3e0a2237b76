"""Matrix products: out[M, N] = lhsT[K, M].T @ rhs[K, N], both operands in HBM.

Each variant keeps more on chip than the one before it: `tiled` loads both tiles for every product,
`hoisted` loads the tiles of lhsT once for a row of results, `blocked_free` shares loads between
2 x 2 tiles, `blocked_all` blocks K as well and adds the blocks in SBUF. Sizes must be multiples of
the tiles (128 x 512 x 128 in M, N, K) and of the blocks.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE_M, TILE_N, TILE_K = 128, 512, 128


def reference(lhsT, rhs):
    """The plain product."""
    return lhsT.T @ rhs


def load(src, dge_mode=nisa.dge_mode.unknown):
    """A copy of a part of HBM, two-dimensional, in a new SBUF tile."""
    tile = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src, dge_mode=dge_mode)
    return tile


def store(dst, psum):
    """Takes a finished tile out of PSUM, in the dtype of dst, and stores it."""
    tile = nl.ndarray(dst.shape, dtype=dst.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=psum)
    nisa.dma_copy(dst=dst, src=tile)


@nki.jit
def tiled(lhsT, rhs, tile_m=TILE_M, tile_n=TILE_N, tile_k=TILE_K):
    """Loads a tile of each operand for every product. The result has the dtype of lhsT."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in range(0, M, tile_m):
        for n in range(0, N, tile_n):
            psum = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, K, tile_k):
                lhs_tile = load(lhsT[k : k + tile_k, m : m + tile_m])
                rhs_tile = load(rhs[k : k + tile_k, n : n + tile_n])
                nisa.nc_matmul(dst=psum, stationary=lhs_tile, moving=rhs_tile)
            store(out[m : m + tile_m, n : n + tile_n], psum)
    return out


def tiled_reference(lhsT, rhs, tile_m=TILE_M, tile_n=TILE_N, tile_k=TILE_K):
    """Tile by tile, as the kernel does it."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = np.zeros((M, N), np.float32)
    for m in range(0, M, tile_m):
        for n in range(0, N, tile_n):
            for k in range(0, K, tile_k):
                rows = slice(k, k + tile_k)
                part = lhsT[rows, m : m + tile_m].T @ rhs[rows, n : n + tile_n]
                out[m : m + tile_m, n : n + tile_n] += part
    return out


def row_of_tiles(out, lhsT, rhs, tile_m, tile_n, tile_k):
    """All rows of out, the tiles of lhsT loaded once for each row of tiles."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    for m in range(0, M, tile_m):
        lhs_tiles = [load(lhsT[k : k + tile_k, m : m + tile_m]) for k in range(0, K, tile_k)]
        for n in range(0, N, tile_n):
            psum = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.psum)
            for k in range(K // tile_k):
                rhs_tile = load(rhs[k * tile_k : (k + 1) * tile_k, n : n + tile_n])
                nisa.nc_matmul(dst=psum, stationary=lhs_tiles[k], moving=rhs_tile)
            store(out[m : m + tile_m, n : n + tile_n], psum)


@nki.jit
def hoisted(lhsT, rhs):
    """Loads the tiles of lhsT once for each row of tiles, outside the loop over N."""
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    row_of_tiles(out, lhsT, rhs, TILE_M, TILE_N, TILE_K)
    return out


@nki.jit
def hoisted_lhs(lhsT, rhs, tile_m=TILE_M, tile_n=TILE_N, tile_k=TILE_K):
    """`hoisted` with tile sizes of one's own."""
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    row_of_tiles(out, lhsT, rhs, tile_m, tile_n, tile_k)
    return out


@nki.jit
def blocked_free(lhsT, rhs, tiles_m=2, tiles_n=2):
    """Blocks of tiles_m x tiles_n result tiles, at most 8, share what is loaded for them.

    The tiles of lhsT stay for all blocks of N; a tile of rhs serves the tiles_m rows of its block.
    """
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in range(0, M, tiles_m * TILE_M):
        lhs_tiles = [
            [
                load(lhsT[k : k + TILE_K, m + i * TILE_M : m + (i + 1) * TILE_M])
                for i in range(tiles_m)
            ]
            for k in range(0, K, TILE_K)
        ]
        for n in range(0, N, tiles_n * TILE_N):
            psums = [
                [
                    nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
                    for j in range(tiles_n)
                ]
                for i in range(tiles_m)
            ]
            for k in range(K // TILE_K):
                rows = slice(k * TILE_K, (k + 1) * TILE_K)
                for j in range(tiles_n):
                    rhs_tile = load(rhs[rows, n + j * TILE_N : n + (j + 1) * TILE_N])
                    for i in range(tiles_m):
                        nisa.nc_matmul(dst=psums[i][j], stationary=lhs_tiles[k][i], moving=rhs_tile)
            for i in range(tiles_m):
                for j in range(tiles_n):
                    row, column = m + i * TILE_M, n + j * TILE_N
                    store(out[row : row + TILE_M, column : column + TILE_N], psums[i][j])
    return out


def load_block(src, row, tiles, column, columns, dge_mode=nisa.dge_mode.unknown):
    """`tiles` tiles of 128 rows and `columns` columns of src, one DMA each."""
    return [
        load(src[row + i * TILE_K : row + (i + 1) * TILE_K, column : column + columns], dge_mode)
        for i in range(tiles)
    ]


def block_tile(lhs_block, rhs_block, tile_m, tile_n):
    """The product of one tile of a block, accumulated over the K tiles of the block in PSUM."""
    psum = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
    for lhs_tile, rhs_tile in zip(lhs_block, rhs_block):
        nisa.nc_matmul(
            dst=psum,
            stationary=lhs_tile[:, tile_m * TILE_M : (tile_m + 1) * TILE_M],
            moving=rhs_tile[:, tile_n * TILE_N : (tile_n + 1) * TILE_N],
        )
    return psum


def columns(j):
    """The columns of result tile j in a row of a block."""
    return slice(j * TILE_N, (j + 1) * TILE_N)


def store_row(dst, row):
    """Packs one row of results, tile by tile, in the dtype of dst and stores it at once."""
    packed = nl.ndarray(dst.shape, dtype=dst.dtype, buffer=nl.sbuf)
    for j in range(dst.shape[1] // TILE_N):
        nisa.tensor_copy(dst=packed[:, columns(j)], src=row[:, columns(j)])
    nisa.dma_copy(dst=dst, src=packed)


def blocked_product(out, lhsT, rhs, tiles_m, tiles_n, tiles_k):
    """out = lhsT.T @ rhs by blocks: N outside, then K, then M (see blocked_all).

    The tiles of lhsT come by Sync's hardware descriptors, those of rhs by software: so the times of
    published grids, and how long their DMA engines are active, come out best (docs/accuracy.md).
    """
    K, M = lhsT.shape
    N = rhs.shape[1]
    block_m, block_n, block_k = tiles_m * TILE_M, tiles_n * TILE_N, tiles_k * TILE_K
    assert M % block_m == 0 and N % block_n == 0 and K % block_k == 0, "blocks must fit the sizes"
    for n in range(0, N, block_n):
        results = [
            nl.ndarray((TILE_M, block_n), dtype=nl.float32, buffer=nl.sbuf)
            for i in range(M // TILE_M)
        ]
        for row in results:
            nisa.memset(dst=row, value=0.0)
        for k in range(0, K, block_k):
            rhs_block = load_block(rhs, k, tiles_k, n, block_n)
            for m in range(M // block_m):
                lhs_block = load_block(lhsT, k, tiles_k, m * block_m, block_m, nisa.dge_mode.hwdge)
                for j in range(tiles_n):
                    for i in range(tiles_m):
                        psum = block_tile(lhs_block, rhs_block, i, j)
                        result = results[m * tiles_m + i][:, columns(j)]
                        nisa.tensor_tensor(dst=result, data1=result, data2=psum, op=nl.add)
        for i in range(M // TILE_M):
            store_row(out[i * TILE_M : (i + 1) * TILE_M, n : n + block_n], results[i])


@nki.jit
def blocked_all(lhsT, rhs, tiles_m=16, tiles_n=2, tiles_k=8):
    """Blocks in all dimensions: N blocks outside, then K blocks, then M blocks.

    The K tiles of a block accumulate in PSUM; the Vector engine adds blocks into fp32 results in
    SBUF, which hold all of M for one block of N. Whole rows of a block are stored.
    """
    out = nl.ndarray((lhsT.shape[1], rhs.shape[1]), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    blocked_product(out, lhsT, rhs, tiles_m, tiles_n, tiles_k)
    return out


def blocked_all_reference(lhsT, rhs, tiles_m=16, tiles_n=2, tiles_k=8):
    """Block by block in the order of the kernel."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    block_m, block_n, block_k = tiles_m * TILE_M, tiles_n * TILE_N, tiles_k * TILE_K
    out = np.empty((M, N), np.float32)
    for n in range(0, N, block_n):
        results = np.zeros((M, block_n), np.float32)
        for k in range(0, K, block_k):
            rhs_block = rhs[k : k + block_k, n : n + block_n]
            for m in range(0, M, block_m):
                results[m : m + block_m] += lhsT[k : k + block_k, m : m + block_m].T @ rhs_block
        out[:, n : n + block_n] = results
    return out


def transposed_block(lhs, row, tiles_m, column, tiles_k):
    """A block of lhs[M, K] as K tiles of lhsT, transposed on the Tensor engine."""
    rows = [
        load(lhs[row + i * TILE_M : row + (i + 1) * TILE_M, column : column + tiles_k * TILE_K])
        for i in range(tiles_m)
    ]
    block = []
    for k in range(tiles_k):
        psum = nl.ndarray((TILE_K, tiles_m * TILE_M), dtype=lhs.dtype, buffer=nl.psum)
        for i in range(tiles_m):
            nisa.nc_transpose(
                dst=psum[:, i * TILE_M : (i + 1) * TILE_M],
                data=rows[i][:, k * TILE_K : (k + 1) * TILE_K],
            )
        tile = nl.ndarray(psum.shape, dtype=lhs.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=tile, src=psum)
        block.append(tile)
    return block


@nki.jit
def blocked_order(lhs, rhs, order="MNK", tiles_m=4, tiles_n=2, tiles_k=4, transpose_lhs=0):
    """Blocks in all dimensions, nested as `order` says from the outside in.

    lhs is lhsT[K, M], or lhs[M, K] when transpose_lhs is 1. A block is loaded again only when its
    indices change; transposed blocks stay while the loops outside N do. Results stay in SBUF (fp32)
    from a block's first K block to its last.
    """
    K, N = rhs.shape
    M = lhs.shape[0] if transpose_lhs else lhs.shape[1]
    block = {"M": tiles_m * TILE_M, "N": tiles_n * TILE_N, "K": tiles_k * TILE_K}
    count = {"M": M // block["M"], "N": N // block["N"], "K": K // block["K"]}
    assert sorted(order) == ["K", "M", "N"], "order must be a permutation of M, N and K"
    out = nl.ndarray((M, N), dtype=rhs.dtype, buffer=nl.shared_hbm)

    lhs_at, lhs_block, rhs_at, rhs_block = None, None, None, None
    outside = order[: order.index("N")]
    kept_at, kept = None, {}
    results = {}
    for step in range(count["M"] * count["N"] * count["K"]):
        rest, inner = divmod(step, count[order[2]])
        outer, middle = divmod(rest, count[order[1]])
        at = {order[0]: outer, order[1]: middle, order[2]: inner}
        m, n, k = at["M"], at["N"], at["K"]
        if lhs_at != (m, k):
            lhs_at = (m, k)
            if transpose_lhs:
                keep_at = [at[loop] for loop in outside] if outside else step
                if kept_at != keep_at:
                    kept_at, kept = keep_at, {}
                name = f"{m},{k}"
                if name not in kept:
                    kept[name] = transposed_block(
                        lhs, m * block["M"], tiles_m, k * block["K"], tiles_k
                    )
                lhs_block = kept[name]
            else:
                lhs_block = load_block(lhs, k * block["K"], tiles_k, m * block["M"], block["M"])
        if rhs_at != (n, k):
            rhs_at = (n, k)
            rhs_block = load_block(rhs, k * block["K"], tiles_k, n * block["N"], block["N"])
        first, last = k == 0, k == count["K"] - 1
        for i in range(tiles_m):
            row = m * tiles_m + i
            if last:
                packed = nl.ndarray((TILE_M, block["N"]), dtype=out.dtype, buffer=nl.sbuf)
            for j in range(tiles_n):
                psum = block_tile(lhs_block, rhs_block, i, j)
                key = f"{row},{n},{j}"
                if last:
                    result = packed[:, j * TILE_N : (j + 1) * TILE_N]
                elif first:
                    result = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
                    results[key] = result
                else:
                    result = results[key]
                if first:
                    nisa.tensor_copy(dst=result, src=psum)
                else:
                    nisa.tensor_tensor(dst=result, data1=results[key], data2=psum, op=nl.add)
            if last:
                columns = slice(n * block["N"], (n + 1) * block["N"])
                nisa.dma_copy(dst=out[row * TILE_M : (row + 1) * TILE_M, columns], src=packed)
    return out


def blocked_order_reference(lhs, rhs, transpose_lhs=0):
    """The plain product; the order of blocks changes only the order of additions."""
    return lhs @ rhs if transpose_lhs else lhs.T @ rhs
