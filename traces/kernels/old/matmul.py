"""The products of ../matmul.py in the older API (neuronxcc.nki): the same loops and transfers.

out[M, N] = lhsT[K, M].T @ rhs[K, N] in the dtype of lhsT; tiles are 128 x 512 x 128 in M, N, K.
References are those of ../matmul.py.
"""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

TILE_M, TILE_N, TILE_K = 128, 512, 128


@nki.jit
def tiled(lhsT, rhs, tile_m=TILE_M, tile_n=TILE_N, tile_k=TILE_K):
    """Loads a tile of each operand for every product."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // tile_m):
        for n in nl.affine_range(N // tile_n):
            psum = nl.zeros((tile_m, tile_n), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // tile_k):
                lhs_tile = nl.load(lhsT[nl.ds(k * tile_k, tile_k), nl.ds(m * tile_m, tile_m)])
                rhs_tile = nl.load(rhs[nl.ds(k * tile_k, tile_k), nl.ds(n * tile_n, tile_n)])
                psum += nl.matmul(lhs_tile, rhs_tile, transpose_x=True)
            tile = nl.copy(psum, dtype=out.dtype)
            nl.store(out[nl.ds(m * tile_m, tile_m), nl.ds(n * tile_n, tile_n)], value=tile)
    return out


@nki.jit
def hoisted(lhsT, rhs):
    """Loads the tiles of lhsT once for each row of tiles, into one block tensor."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // TILE_M):
        lhs_tiles = nl.ndarray(
            (K // TILE_K, nl.par_dim(TILE_K), TILE_M), dtype=lhsT.dtype, buffer=nl.sbuf
        )
        for k in nl.affine_range(K // TILE_K):
            lhs_tiles[k] = nl.load(lhsT[nl.ds(k * TILE_K, TILE_K), nl.ds(m * TILE_M, TILE_M)])
        for n in nl.affine_range(N // TILE_N):
            psum = nl.zeros((TILE_M, TILE_N), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // TILE_K):
                rhs_tile = nl.load(rhs[nl.ds(k * TILE_K, TILE_K), nl.ds(n * TILE_N, TILE_N)])
                psum += nl.matmul(lhs_tiles[k], rhs_tile, transpose_x=True)
            tile = nl.copy(psum, dtype=out.dtype)
            nl.store(out[nl.ds(m * TILE_M, TILE_M), nl.ds(n * TILE_N, TILE_N)], value=tile)
    return out


@nki.jit
def blocked_free(lhsT, rhs, tiles_m=2, tiles_n=2):
    """Blocks of tiles_m x tiles_n result tiles, at most 8, share what is loaded for them."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    block_m, block_n = tiles_m * TILE_M, tiles_n * TILE_N
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // block_m):
        lhs_tiles = nl.ndarray(
            (K // TILE_K, tiles_m, nl.par_dim(TILE_K), TILE_M), dtype=lhsT.dtype, buffer=nl.sbuf
        )
        for k in nl.affine_range(K // TILE_K):
            for i in nl.affine_range(tiles_m):
                lhs_tiles[k, i] = nl.load(
                    lhsT[nl.ds(k * TILE_K, TILE_K), nl.ds(m * block_m + i * TILE_M, TILE_M)]
                )
        for n in nl.affine_range(N // block_n):
            psum = nl.zeros(
                (tiles_m, tiles_n, nl.par_dim(TILE_M), TILE_N), nl.float32, buffer=nl.psum
            )
            for k in nl.affine_range(K // TILE_K):
                for j in nl.affine_range(tiles_n):
                    rhs_tile = nl.load(
                        rhs[nl.ds(k * TILE_K, TILE_K), nl.ds(n * block_n + j * TILE_N, TILE_N)]
                    )
                    for i in nl.affine_range(tiles_m):
                        psum[i, j] += nl.matmul(lhs_tiles[k, i], rhs_tile, transpose_x=True)
            for i in nl.affine_range(tiles_m):
                for j in nl.affine_range(tiles_n):
                    tile = nl.copy(psum[i, j], dtype=out.dtype)
                    rows = nl.ds(m * block_m + i * TILE_M, TILE_M)
                    nl.store(out[rows, nl.ds(n * block_n + j * TILE_N, TILE_N)], value=tile)
    return out


@nki.jit
def blocked_all(lhsT, rhs, tiles_m=16, tiles_n=2, tiles_k=8):
    """Blocks in all dimensions: N blocks outside, then K blocks (in order), then M blocks."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    block_m, block_n, block_k = tiles_m * TILE_M, tiles_n * TILE_N, tiles_k * TILE_K
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    p, f_m = nl.mgrid[0:TILE_K, 0:block_m]
    p_n, f_n = nl.mgrid[0:TILE_K, 0:block_n]
    for n in nl.affine_range(N // block_n):
        results = nl.zeros(
            (M // TILE_M, nl.par_dim(TILE_M), block_n), dtype=nl.float32, buffer=nl.sbuf
        )
        for k in nl.sequential_range(K // block_k):
            rhs_block = nl.ndarray(
                (tiles_k, nl.par_dim(TILE_K), block_n), dtype=rhs.dtype, buffer=nl.sbuf
            )
            for i in nl.affine_range(tiles_k):
                rhs_block[i, p_n, f_n] = nl.load(
                    rhs[(k * tiles_k + i) * TILE_K + p_n, n * block_n + f_n]
                )
            for m in nl.affine_range(M // block_m):
                lhs_block = nl.ndarray(
                    (tiles_k, nl.par_dim(TILE_K), block_m), dtype=lhsT.dtype, buffer=nl.sbuf
                )
                for i in nl.affine_range(tiles_k):
                    lhs_block[i, p, f_m] = nl.load(
                        lhsT[(k * tiles_k + i) * TILE_K + p, m * block_m + f_m]
                    )
                for j in nl.affine_range(tiles_n):
                    for i in nl.affine_range(tiles_m):
                        psum = nl.zeros((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
                        for t in nl.affine_range(tiles_k):
                            psum += nisa.nc_matmul(
                                lhs_block[t, 0:TILE_K, nl.ds(i * TILE_M, TILE_M)],
                                rhs_block[t, 0:TILE_K, nl.ds(j * TILE_N, TILE_N)],
                            )
                        columns = nl.ds(j * TILE_N, TILE_N)
                        results[m * tiles_m + i, 0:TILE_M, columns] += psum
        for row in nl.affine_range(M // TILE_M):
            packed = nl.ndarray((nl.par_dim(TILE_M), block_n), dtype=out.dtype, buffer=nl.sbuf)
            for j in nl.affine_range(tiles_n):
                columns = nl.ds(j * TILE_N, TILE_N)
                packed[:, columns] = nl.copy(results[row, 0:TILE_M, columns], dtype=out.dtype)
            nl.store(out[nl.ds(row * TILE_M, TILE_M), nl.ds(n * block_n, block_n)], value=packed)
    return out
