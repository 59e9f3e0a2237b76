"""Transfers alone: what a transfer of a given size costs."""

import nki
import nki.isa as nisa
import nki.language as nl


def reference(x):
    """The last tile."""
    return x[-1]


@nki.jit
def loads(x):
    """x [count, 128, n] to SBUF, one transfer of 128 rows each; the last one is stored again."""
    count, partitions, n = x.shape
    out = nl.ndarray((partitions, n), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = None
    for i in range(count):
        tile = nl.ndarray((partitions, n), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i])
    nisa.dma_copy(dst=out, src=tile)
    return out
