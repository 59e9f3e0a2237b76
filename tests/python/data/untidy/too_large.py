"""More than SBUF holds."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def explicit(a):
    """Each tile has its place, and the places overlap."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf, address=(0, 300000))
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
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
