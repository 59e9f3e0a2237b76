"""Products on the two cores of a logical core (LNC = 2): out[M, N] = lhsT[K, M].T @ rhs[K, N].

M is a multiple of 256, N of 512 and K of 256. Both cores write their rows of one shared result.
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE_M, TILE_N, TILE_K = 128, 512, 128


def reference(lhsT, rhs):
    """The plain product."""
    return lhsT.T @ rhs


def split_k_reference(lhsT, rhs):
    """The sum of the two halves of K."""
    half = lhsT.shape[0] // 2
    return lhsT[:half].T @ rhs[:half] + lhsT[half:].T @ rhs[half:]


def product(lhsT, rhs, m, n, first, last):
    """A tile of the product over rows first to last of K, in PSUM."""
    psum = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
    for k in range(first, last, TILE_K):
        lhs_tile = nl.ndarray((TILE_K, TILE_M), dtype=lhsT.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=lhs_tile, src=lhsT[k : k + TILE_K, m : m + TILE_M])
        rhs_tile = nl.ndarray((TILE_K, TILE_N), dtype=rhs.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rhs_tile, src=rhs[k : k + TILE_K, n : n + TILE_N])
        nisa.nc_matmul(dst=psum, stationary=lhs_tile, moving=rhs_tile)
    return psum


@nki.jit
def split_m(lhsT, rhs):
    """Each core makes half of the rows; a barrier ends it. Run as split_m[2](lhsT, rhs)."""
    K, M = lhsT.shape
    N = rhs.shape[1]
    core, cores = nl.program_id(0), nl.num_programs(0)
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    share = M // cores
    for m in range(core * share, (core + 1) * share, TILE_M):
        for n in range(0, N, TILE_N):
            psum = product(lhsT, rhs, m, n, 0, K)
            tile = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=psum)
            nisa.dma_copy(dst=out[m : m + TILE_M, n : n + TILE_N], src=tile)
    nisa.core_barrier(data=out, cores=(0, 1))
    return out


def split_m_reference(lhsT, rhs):
    """The two halves of the rows."""
    half = lhsT.shape[1] // 2
    return np.concatenate([lhsT[:, :half].T @ rhs, lhsT[:, half:].T @ rhs])


@nki.jit
def split_k(lhsT, rhs):
    """Each core sums over half of K; the cores swap partial tiles, and each adds half of them.

    Run as split_k[2](lhsT, rhs).
    """
    K, M = lhsT.shape
    N = rhs.shape[1]
    core = nl.program_id(0)
    assert nl.num_programs(0) == 2, "split_k is for two cores"
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    first, last = core * (K // 2), (core + 1) * (K // 2)
    for m in range(0, M, 2 * TILE_M):
        for n in range(0, N, TILE_N):
            partial = []
            for i in range(2):
                psum = product(lhsT, rhs, m + i * TILE_M, n, first, last)
                tile = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_copy(dst=tile, src=psum)
                partial.append(tile)
            received = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.sbuf)
            nisa.sendrecv(
                src=partial[1 - core],
                dst=received,
                send_to_rank=1 - core,
                recv_from_rank=1 - core,
                pipe_id=0,
            )
            total = nl.ndarray((TILE_M, TILE_N), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=total, data1=partial[core], data2=received, op=nl.add)
            row = m + core * TILE_M
            nisa.dma_copy(dst=out[row : row + TILE_M, n : n + TILE_N], src=total)
    nisa.core_barrier(data=out, cores=(0, 1))
    return out
