"""Kernels that functions make, and that dictionaries and classes hold."""

import nki
import nki.isa as nisa
import nki.language as nl


def scaled(factor, rows=128):
    @nki.jit
    def made(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((rows, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[:rows])
        nisa.tensor_scalar(tile, tile, nl.multiply, factor)
        nisa.dma_copy(dst=out[:rows], src=tile)
        return out

    return made


def plain():
    def made(a):
        return doubled(a)

    return nki.jit(made)


def launcher(factor):
    made = scaled(factor)

    @nki.jit
    def kernel(a):
        return made(a)

    def launch(a):
        return kernel[1](a)

    return launch, factor


def both():
    first, second = scaled(1.0), scaled(2.0)
    return first, second


def calls(a):
    @nki.jit
    def made(a):
        return doubled(a)

    return made(a)


doubled = scaled(2.0)
KERNELS = {"tripled": scaled(3.0), "number": 3}


class Holder:
    kernel = doubled

    @staticmethod
    @nki.jit
    def own(a):
        return doubled(a)
