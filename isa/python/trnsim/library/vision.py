"""Images: nearest-neighbour resizing by DMA, and the gradient of a maximum pool."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from trnsim import nisa, nl
from trnsim.errors import fail
from trnsim.jit import jit
from trnsim.library.tiles import TILE, expect, sbuf

ACROSS = 65536  # bytes of a partition for a band of rows of an image


class Steps(NamedTuple):
    """Places of an axis: `count` times, `repeat` outputs in a row take one input."""

    out: int
    out_step: int
    source: int
    source_step: int
    count: int
    repeat: int


def nearest(size: int, out_size: int) -> list[int]:
    """Which input each output takes: the one below its place, floor(i * size / out_size)."""
    return [i * size // out_size for i in range(out_size)]


def steps_of(size: int, out_size: int) -> list[Steps]:
    """`nearest` in regular pieces: runs of evenly spaced inputs with equal repeats, or the
    places of its period; whichever are fewer."""
    places = nearest(size, out_size)
    runs: list[Steps] = []
    for source, repeat in Counter(places).items():
        last = runs[-1] if runs else Steps(0, 0, 0, 0, 0, 0)
        even = last.count == 1 or source == last.source + last.count * last.source_step
        if last.repeat == repeat and even:
            distance = (source - last.source) // last.count
            runs[-1] = last._replace(count=last.count + 1, source_step=distance)
        else:
            runs.append(Steps(places.index(source), repeat, source, 1, 1, repeat))
    count = math.gcd(size, out_size)
    period, source_period = out_size // count, size // count
    phases = [Steps(i, period, places[i], source_period, count, 1) for i in range(period)]
    return min(runs, phases, key=len)


def resize_nearest_fixed_dma_kernel_reference(data_tensor: Any, out_shape: Any) -> Any:
    """By the definition."""
    _, rows, columns, _ = data_tensor.shape
    _, out_rows, out_columns, _ = out_shape
    return data_tensor[:, nearest(rows, out_rows)][:, :, nearest(columns, out_columns)]


@jit
def resize_nearest_fixed_dma_kernel(data_tensor: Any, out_shape: Any) -> Any:
    """Images [b, h, w, c] resized to out_shape (b, out_h, out_w, c) by the nearest input.

    Output (y, x) is input (floor(y h / out_h), floor(x w / out_w)), as frameworks' `nearest` is;
    the documentation does not say how it rounds. Only DMA works: each transfer, from HBM to HBM,
    moves what is regular in rows and columns, c elements at a time.
    """
    call = "resize_nearest_fixed_dma_kernel"
    batch, rows, columns, channels = data_tensor.shape
    out_shape = tuple(int(size) for size in out_shape)
    if len(out_shape) != 4 or out_shape[0] != batch or out_shape[3] != channels:
        fail(call, "out_shape", out_shape, f"({batch}, out_h, out_w, {channels})")
    _, out_rows, out_columns, _ = out_shape
    out = nl.ndarray(out_shape, dtype=data_tensor.dtype, buffer=nl.shared_hbm)
    for b in range(batch):
        for down in steps_of(rows, out_rows):
            for across in steps_of(columns, out_columns):
                for repeat in range(down.repeat):
                    nisa.dma_copy(
                        dst=pieces(out, b, down, across, channels, repeat, True),
                        src=pieces(data_tensor, b, down, across, channels, 0, False),
                    )
    return out


def pieces(
    image: Any, b: int, down: Steps, across: Steps, channels: int, repeat: int, target: bool
) -> Any:
    """The places of an image that one transfer reads, or writes: [rows, columns, repeats, c]."""
    _, rows, columns, _ = image.shape
    line = columns * channels
    row, row_step = (
        (down.out + repeat, down.out_step) if target else (down.source, down.source_step)
    )
    column, column_step = (
        (across.out, across.out_step) if target else (across.source, across.source_step)
    )
    return image.ap(
        pattern=[
            [row_step * line, down.count],
            [column_step * channels, across.count],
            [channels if target else 0, across.repeat],
            [1, channels],
        ],
        offset=(b * rows + row) * line + column * channels,
    )


def select_and_scatter_kernel_reference(operand_tensor: Any, source_tensor: Any) -> Any:
    """Window by window: the first place of the maximum gets the source."""
    images, channels, rows, columns = operand_tensor.shape
    out = np.zeros(operand_tensor.shape, np.float32)
    for y in range(source_tensor.shape[2]):
        for x in range(source_tensor.shape[3]):
            top, left = max(0, 2 * y - 1), max(0, 2 * x - 1)
            bottom, right = min(rows, 2 * y + 2), min(columns, 2 * x + 2)
            window = operand_tensor[:, :, top:bottom, left:right].reshape(images, channels, -1)
            place = window.argmax(axis=2)
            for i in np.ndindex(images, channels):
                dy, dx = divmod(int(place[i]), right - left)
                out[i][top + dy, left + dx] += source_tensor[i][y, x]
    return out


@jit
def select_and_scatter_kernel(operand_tensor: Any, source_tensor: Any) -> Any:
    """The gradient of a maximum pool: each window's source goes to the place of its maximum.

    operand [n, c, h, w], source [n, c, (h + 1) / 2, (w + 1) / 2] (rounded down), out [n, c, h, w]
    with the sum of what each place gets. Windows are 3 x 3, two apart, with a padding of 1. Of
    equal values in a window the first in row order is taken, which the documentation leaves open.

    128 channels a tile, bands of rows; sums in fp32.
    """
    call = "select_and_scatter_kernel"
    images, channels, rows, columns = operand_tensor.shape
    source_rows, source_columns = (rows + 1) // 2, (columns + 1) // 2
    expect(call, "source_tensor", source_tensor, (images, channels, source_rows, source_columns))
    out = nl.ndarray(operand_tensor.shape, dtype=operand_tensor.dtype, buffer=nl.shared_hbm)
    band = max(1, min(source_rows, ACROSS // (16 * (2 * source_columns + 1))))
    for n in range(images):
        for channel in range(0, channels, TILE):
            some = slice(channel, min(channel + TILE, channels))
            carried = None
            for y in range(0, source_rows, band):
                sources = source_tensor[n, some, y : min(y + band, source_rows), :]
                carried = scatter_band(operand_tensor[n, some], sources, out[n, some], y, carried)
    return out


def scatter_band(operand: Any, source: Any, out: Any, y: int, carried: Any) -> Any:
    """Source rows from y on: stores the rows that are final, and returns the last one's sums.

    carried: what the band before has added to this one's first row. Tiles have a column of
    padding on each side; row 0 of a tile is row 2 y - 1 of the image.
    """
    channels, count, columns = source.shape
    rows, width = operand.shape[1:]
    height, wide = 2 * count + 1, 2 * columns + 1
    image = sbuf((channels, height, wide), operand.dtype)
    sums = sbuf((channels, height, wide))
    lowest = -65504.0 if operand.dtype == nl.float16 else -3.0e38
    nisa.memset(dst=image, value=lowest)  # padding is never a window's maximum
    nisa.memset(dst=sums, value=0.0)
    if carried is not None:
        nisa.tensor_copy(dst=sums[:, 0:1, :], src=carried)
    top, bottom = max(0, 2 * y - 1), min(rows, 2 * (y + count))
    inside = slice(top - (2 * y - 1), bottom - (2 * y - 1))
    nisa.dma_copy(dst=image[:, inside, 1 : width + 1], src=operand[:, top:bottom, :])
    left = sbuf((channels, count, columns))
    given = sbuf((channels, count, columns), source.dtype)
    nisa.dma_copy(dst=given, src=source)
    nisa.tensor_copy(dst=left, src=given)

    places = [
        (slice(dy, dy + 2 * count - 1, 2), slice(dx, dx + 2 * columns - 1, 2))
        for dy in range(3)
        for dx in range(3)
    ]
    highest = sbuf((channels, count, columns), operand.dtype)
    nisa.tensor_copy(dst=highest, src=image[:, places[0][0], places[0][1]])
    for down, across in places[1:]:
        nisa.tensor_tensor(dst=highest, data1=highest, data2=image[:, down, across], op=nl.maximum)
    for down, across in places:
        part = sbuf((channels, count, columns))
        nisa.tensor_tensor(dst=part, data1=image[:, down, across], data2=highest, op=nl.equal)
        nisa.tensor_tensor(dst=part, data1=part, data2=left, op=nl.multiply)
        nisa.tensor_tensor(dst=left, data1=left, data2=part, op=nl.subtract)
        target = sums[:, down, across]
        nisa.tensor_tensor(dst=target, data1=target, data2=part, op=nl.add)

    last = 2 * (y + count) - 1  # the row that the next band adds to as well
    stop = rows if last >= rows - 1 else last
    final = sbuf((channels, stop - top, width), out.dtype)
    first = top - (2 * y - 1)
    nisa.tensor_copy(dst=final, src=sums[:, first : first + stop - top, 1 : width + 1])
    nisa.dma_copy(dst=out[:, top:stop, :], src=final)
    carried = sbuf((channels, 1, wide))
    nisa.tensor_copy(dst=carried, src=sums[:, height - 1 : height, :])
    return carried
