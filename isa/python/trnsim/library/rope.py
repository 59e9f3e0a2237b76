"""Rotary position embedding of what is in SBUF."""

from __future__ import annotations

from typing import Any

import numpy as np

from trnsim import nisa, nl
from trnsim.errors import fail
from trnsim.library.tiles import TILE, expect, sbuf


def RoPE_sbuf_reference(
    x_in_sb: Any, cos_sb: Any, sin_sb: Any, convert_from_interleaved: bool = False
) -> Any:
    """First and second half of a head (or even and odd elements) as real and imaginary part."""
    half = x_in_sb.shape[0] // 2
    if convert_from_interleaved:
        real, imaginary = x_in_sb[0::2], x_in_sb[1::2]
    else:
        real, imaginary = x_in_sb[:half], x_in_sb[half:]
    turned = (real + 1j * imaginary) * (cos_sb + 1j * sin_sb)[:, :, None, :]
    return np.concatenate([turned.real, turned.imag], axis=0)


def RoPE_sbuf(
    x_in_sb: Any,
    cos_sb: Any,
    sin_sb: Any,
    x_out_sb: Any = None,
    convert_from_interleaved: bool = False,
) -> Any:
    """Rotates x [d, batch, heads, seq] by cos, sin [d / 2, batch, seq], all in SBUF.

    Returns x_out_sb, a new tile when it is None. The first half of d goes with the second; with
    convert_from_interleaved, even elements go with odd ones, and the result has the even ones
    first. d is a multiple of 64, at most 128, so that both halves start where engines reach.

    No documentation of this function is known to us: its arguments, shapes and layout are our
    reading of what is documented of a later RoPE kernel, which also works within SBUF.
    """
    call = "RoPE_sbuf"
    d, batch, heads, seq = x_in_sb.shape
    half = d // 2
    if d % 64 or d > TILE:
        fail(call, "x_in_sb", list(x_in_sb.shape), "64 or 128 partitions")
    expect(call, "cos_sb", cos_sb, (half, batch, seq))
    expect(call, "sin_sb", sin_sb, (half, batch, seq))
    if x_out_sb is None:
        x_out_sb = sbuf((d, batch, heads, seq), x_in_sb.dtype)
    expect(call, "x_out_sb", x_out_sb, (d, batch, heads, seq))
    if convert_from_interleaved:
        evens_first = sbuf(x_in_sb.shape, x_in_sb.dtype)
        nisa.dma_copy(dst=evens_first[0:half], src=x_in_sb[0:d:2])
        nisa.dma_copy(dst=evens_first[half:d], src=x_in_sb[1:d:2])
        x_in_sb = evens_first
    for b in range(batch):
        for h in range(heads):
            x = x_in_sb[:, b, h, :]
            second = sbuf((half, seq), x.dtype)
            nisa.tensor_copy(dst=second, src=x[half:d, :])
            turn(x[0:half, :], second, cos_sb[:, b, :], sin_sb[:, b, :], x_out_sb[:, b, h, :])
    return x_out_sb


def turn(real: Any, imaginary: Any, cos: Any, sin: Any, out: Any) -> None:
    """out [d, seq] = (real + i imaginary) (cos + i sin), halves of d."""
    half, seq = real.shape
    products = []
    for part, factor in ((real, cos), (imaginary, sin), (imaginary, cos), (real, sin)):
        products.append(sbuf((half, seq)))
        nisa.tensor_tensor(dst=products[-1], data1=part, data2=factor, op=nl.multiply)
    first, second = out[0:half, :], out[half:, :]  # may be where real and imaginary were
    nisa.tensor_tensor(dst=first, data1=products[0], data2=products[1], op=nl.subtract)
    nisa.tensor_tensor(dst=second, data1=products[2], data2=products[3], op=nl.add)
