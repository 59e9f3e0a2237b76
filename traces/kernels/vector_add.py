"""Sum of two vectors or matrices in HBM, in pieces of several shapes."""

import nki
import nki.isa as nisa
import nki.language as nl


def reference(a, b):
    """The plain sum."""
    return a + b


def add_part(dst, a, b):
    """dst = a + b for one tile's part of each."""
    left = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    total = nl.ndarray(a.shape, dtype=dst.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
    nisa.dma_copy(dst=dst, src=total)


@nki.jit
def streamed(a, b, partitions=128, free=200):
    """a, b [elements]: pieces of partitions x free elements, one after the other."""
    elements = a.shape[0]
    pieces = elements // (partitions * free)
    assert pieces * partitions * free == elements, "pieces must fit the vector"
    out = nl.ndarray((elements,), dtype=a.dtype, buffer=nl.shared_hbm)
    shape = (pieces, partitions, free)
    a, b, result = a.reshape(shape), b.reshape(shape), out.reshape(shape)
    for i in range(pieces):
        add_part(result[i], a[i], b[i])
    return out


@nki.jit
def rows(a, b):
    """a, b [rows, columns]: 128 whole rows at a time."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for r in range(0, a.shape[0], 128):
        last = min(r + 128, a.shape[0])
        add_part(out[r:last, :], a[r:last, :], b[r:last, :])
    return out


@nki.jit
def tiles(a, b, columns=512):
    """a, b [rows, n]: tiles of 128 rows and `columns` columns."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for r in range(0, a.shape[0], 128):
        last = min(r + 128, a.shape[0])
        for c in range(0, a.shape[1], columns):
            end = min(c + columns, a.shape[1])
            add_part(out[r:last, c:end], a[r:last, c:end], b[r:last, c:end])
    return out
