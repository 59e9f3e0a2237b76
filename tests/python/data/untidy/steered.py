"""Contents, functions, dtypes, tuples and texts that steer a kernel."""

import nki
import nki.isa as nisa
import nki.language as nl

WIDTH = 32


@nki.jit
def loops(a, counts, op=None, dtype=None, sizes=(1, 2), name="x", flag=False):
    out = nl.ndarray(a.shape, dtype=dtype or a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=dtype or a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    for _ in range(int(counts[0])):
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=op or nl.multiply)
    if counts[1] > 2 and flag:
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out
