"""What the kernels of the library share: tiles, loads, transposes, and their part of a grid."""

from __future__ import annotations

from typing import Any

from trnsim import nisa, nl
from trnsim.errors import fail

TILE = 128  # partitions, and columns of a stationary tile
CHUNK = 512  # fp32 elements of a PSUM bank


def expect(call: str, operand: str, tensor: Any, shape: tuple[int, ...]) -> None:
    """A tensor has the shape that the others give it."""
    if tuple(tensor.shape) != shape:
        fail(call, operand, list(tensor.shape), str(list(shape)))


def multiple(call: str, operand: str, size: int, unit: int = TILE) -> None:
    """A size is a multiple of a tile's."""
    if size % unit:
        fail(call, operand, size, f"a multiple of {unit}")


def share(count: int) -> range:
    """Which of `count` pieces of work this program does: consecutive ones, all without a grid.

    A grid whose dimensions are those of the work gives each program the piece of its indices.
    """
    place, programs = 0, 1
    for axis in range(nl.program_ndim()):
        place = place * nl.num_programs(axis) + nl.program_id(axis)
        programs *= nl.num_programs(axis)
    return range(place * count // programs, (place + 1) * count // programs)


def sbuf(shape: tuple[int, ...], dtype: Any = nl.float32) -> Any:
    """A tile in SBUF."""
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def psum(shape: tuple[int, ...], dtype: Any = nl.float32) -> Any:
    """A tile in PSUM."""
    return nl.ndarray(shape, dtype=dtype, buffer=nl.psum)


def loaded(src: Any, dtype: Any) -> Any:
    """Part of an HBM tensor in SBUF, of another type if asked."""
    tile = sbuf(src.shape, src.dtype)
    nisa.dma_copy(dst=tile, src=src)
    if src.dtype == dtype:
        return tile
    cast = sbuf(src.shape, dtype)
    nisa.tensor_copy(dst=cast, src=tile)
    return cast


def transposed(tile: Any, dtype: Any) -> Any:
    """[p, 128 n] as [128, n p]: blocks of 128 columns, each transposed, side by side."""
    rows, columns = tile.shape
    blocks = columns // TILE
    result = sbuf((TILE, blocks * rows), dtype)
    together = CHUNK // rows
    for first in range(0, blocks, together):
        count = min(together, blocks - first)
        turned = psum((TILE, count * rows), dtype)
        for i in range(count):
            block = tile[:, (first + i) * TILE : (first + i + 1) * TILE]
            nisa.nc_transpose(dst=turned[:, i * rows : (i + 1) * rows], data=block)
        part = result[:, first * rows : (first + count) * rows]
        nisa.tensor_copy(dst=part, src=turned)
    return result
