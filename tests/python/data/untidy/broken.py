"""Kernels that fail, each in its way."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def divides(a):
    return helper(a, 0)


def helper(a, n):
    return a.shape[0] // n


@nki.jit
def asserts(a):
    assert a.shape[0] == 1, f"expected one row, got {a.shape[0]}"
    return a


@nki.jit
def misspells(a):
    return nl.shared_hmb


@nki.jit
def forgets_dst(a):
    nisa.tensor_scalar(a, nl.add)


@nki.jit
def does_nothing(a):
    nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
