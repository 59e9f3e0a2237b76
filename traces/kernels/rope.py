"""Rotary position embedding of x[seq, heads, d] with cos, sin[seq, d / 2], halves rotated."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def reference(x, cos, sin):
    """First and second half of each head as real and imaginary part."""
    half = x.shape[2] // 2
    turned = (x[..., :half] + 1j * x[..., half:]) * (cos + 1j * sin)[:, None, :]
    return np.concatenate([turned.real, turned.imag], axis=2)


@nki.jit
def rope(x, cos, sin):
    """128 positions a tile, all heads; four products and two sums by head."""
    seq, heads, d = x.shape
    half = d // 2
    out = nl.ndarray((seq, heads, d), dtype=x.dtype, buffer=nl.shared_hbm)
    for s in range(0, seq, 128):
        size = min(128, seq - s)
        tile = nl.ndarray((size, heads, d), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[s : s + size, :, :])
        c = nl.ndarray((size, half), dtype=cos.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=c, src=cos[s : s + size, :])
        i = nl.ndarray((size, half), dtype=sin.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=i, src=sin[s : s + size, :])
        result = nl.ndarray((size, heads, d), dtype=x.dtype, buffer=nl.sbuf)
        for h in range(heads):
            real, imaginary = tile[:, h, 0:half], tile[:, h, half:d]
            first = nl.ndarray((size, half), dtype=nl.float32, buffer=nl.sbuf)
            second = nl.ndarray((size, half), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=first, data1=real, data2=c, op=nl.multiply)
            nisa.tensor_tensor(dst=second, data1=imaginary, data2=i, op=nl.multiply)
            nisa.tensor_tensor(dst=result[:, h, 0:half], data1=first, data2=second, op=nl.subtract)
            third = nl.ndarray((size, half), dtype=nl.float32, buffer=nl.sbuf)
            fourth = nl.ndarray((size, half), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=third, data1=imaginary, data2=c, op=nl.multiply)
            nisa.tensor_tensor(dst=fourth, data1=real, data2=i, op=nl.multiply)
            nisa.tensor_tensor(dst=result[:, h, half:d], data1=third, data2=fourth, op=nl.add)
        nisa.dma_copy(dst=out[s : s + size, :, :], src=result)
    return out
