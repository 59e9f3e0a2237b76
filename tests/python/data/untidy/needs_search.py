import nki.language as nl

from far_helper import copy_into


def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    copy_into(out, a)
    return out
