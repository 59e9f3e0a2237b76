"""Relative imports without any __init__ file; a neighbour goes further up than this file does."""

import nki.language as nl

from .helper import copy_into


def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    copy_into(out, a)
    return out
