"""More than PSUM or SBUF holds."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def psum(a):
    """Nine banks, all in use until the end."""
    out = nl.ndarray((128, 9, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = []
    for _ in range(9):
        tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.memset(dst=tile, value=1.0)
        tiles.append(tile)
    for place in range(9):
        copy = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=copy, src=tiles[place])
        nisa.dma_copy(dst=out[:, place, :], src=copy)
    return out


@nki.jit
def spills(a):
    """Nine tiles of 32 KiB a partition, all in use until the end."""
    out = nl.ndarray((128, 9, 16384), dtype=a.dtype, buffer=nl.shared_hbm)
    tiles = []
    for _ in range(9):
        tile = nl.ndarray((128, 16384), dtype=a.dtype, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=1.0)
        tiles.append(tile)
    for place in range(9):
        nisa.dma_copy(dst=out[:, place, :], src=tiles[place])
    return out
