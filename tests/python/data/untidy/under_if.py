"""Kernels under conditions, undecorated, with keyword arguments, with outputs as arguments."""

import os

import nki
import nki.isa as nisa
import nki.language as nl

if os.environ.get("NO_SUCH_VARIABLE"):

    @nki.jit
    def hidden(a):
        return plain(a)

else:

    @nki.jit
    def shown(a):
        return plain(a)


def plain(a, **kwargs):
    """Undecorated; gives a copy, scaled when a keyword asks for it."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    into(a, out)
    if kwargs:
        assert sorted(kwargs) == ["more", "scale"], kwargs
    return out


def into(a, out):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)


def maker(n):
    @nki.jit
    def made(a):
        return plain(a[:n])

    return made


made_of_64 = maker(64)


class Kernels:
    @staticmethod
    def method(a):
        return plain(a)


if __name__ == "__main__":

    def guarded(a):
        return plain(a)
