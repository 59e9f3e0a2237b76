"""Where tensors live: the buffers of nki.language and the allocators of nki.compiler."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from trnsim.dtypes import DType, dtype_of
from trnsim.errors import fail
from trnsim.index import ParDim
from trnsim.session import current
from trnsim.tensor import Tensor, Tiles

__all__ = ["Allocator", "Buffer", "hbm", "private_hbm", "psum", "sbuf", "shared_hbm"]

SBUF_PARTITION_BYTES = 212984  # what kernels may use of a partition; see nl.tile_size
PSUM_BANK_BYTES = 2048


class Buffer:
    """A memory as kernels name it. It equals its name and, in HBM, the buffers of its kind."""

    def __init__(self, name: str, memory: str, shared: bool = False) -> None:
        self.name = name
        self.memory = memory
        self.shared = shared

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other == self.name
        if isinstance(other, Buffer):
            return self.name == other.name or (
                self.memory == other.memory == "hbm" and "any_hbm" in (self.name, other.name)
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.memory)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def view(self, dtype: Any, shape: Any, name: str = "") -> Tensor:
        """A tensor in this memory, where there is room: `sbuf.view(dtype, shape)`."""
        call = f"{self.name}.view"
        where = shared_hbm if self.memory == "hbm" else self
        return make(shape, dtype_of(dtype, call), where, name=name, call=call)

    def __getitem__(self, key: Any) -> Region:
        """A part of SBUF or PSUM by partitions and bytes: `sbuf[0:32, 0:512]`."""
        if self.memory not in _BYTES:
            fail(f"{self.name}[...]", "memory", self.name, "sbuf or psum")
        return Region(self.memory, (0, 0), (128, _BYTES[self.memory]))[key]


class Region:
    """Partitions and bytes of SBUF or PSUM; a view of it is a tensor that begins there."""

    def __init__(self, memory: str, start: tuple[int, int], size: tuple[int, int]) -> None:
        self.memory = memory
        self.start = start  # partition, byte
        self.size = size

    def __getitem__(self, key: Any) -> Region:
        keys = key if isinstance(key, tuple) else (key, slice(None))
        if len(keys) != 2:
            fail(f"{self.memory}[...]", "index", key, "partitions and bytes")
        bounds = []
        for what, part, size in zip(("partitions", "bytes"), keys, self.size):
            part = slice(None) if part is None else part
            if not isinstance(part, slice) or part.step not in (None, 1):
                fail(f"{self.memory}[...]", what, part, "a slice without a step")
            low = 0 if part.start is None else int(part.start)
            high = size if part.stop is None else int(part.stop)
            if not 0 <= low < high <= size:
                fail(
                    f"{self.memory}[...]",
                    what,
                    f"{low}:{high}",
                    f"bounds within 0:{size}",
                )
            bounds.append((low, high - low))
        (row, rows), (byte, count) = bounds
        return Region(self.memory, (self.start[0] + row, self.start[1] + byte), (rows, count))

    def view(self, dtype: Any, shape: Any, name: str = "") -> Tensor:
        """A tensor at the start of the region, which holds all of it."""
        call = f"{self.memory}[...].view"
        kind = dtype_of(dtype, call)
        sizes = [int(size) for size in shape]
        needed = math.prod(sizes[1:]) * kind.itemsize
        if not sizes or sizes[0] > self.size[0] or needed > self.size[1]:
            limit = f"at most {self.size[0]} partitions and {self.size[1]} bytes in each"
            fail(call, "shape", f"{sizes} of {kind}", limit)
        buffer = _BY_NAME[self.memory]
        return make(sizes, kind, buffer, name=name, address=self.start, call=call)

    def __repr__(self) -> str:
        (row, byte), (rows, count) = self.start, self.size
        return f"{self.memory}[{row}:{row + rows}, {byte}:{byte + count}]"


sbuf = Buffer("sbuf", "sbuf")
psum = Buffer("psum", "psum")
hbm = Buffer("hbm", "hbm")
private_hbm = Buffer("private_hbm", "hbm")
shared_hbm = Buffer("shared_hbm", "hbm", shared=True)
_any_hbm = Buffer("any_hbm", "hbm")
_BY_NAME = {b.name: b for b in (sbuf, psum, hbm, private_hbm, shared_hbm)}
_BYTES = {"sbuf": SBUF_PARTITION_BYTES, "psum": 8 * PSUM_BANK_BYTES}  # of a partition
# What the first compiler of the newer API knew without an import.
GLOBAL_NAMES = {"sbuf": sbuf, "psum": psum, "hbm": hbm}


def of(memory: str) -> Buffer:
    """The buffer that a tensor's memory is."""
    return _any_hbm if memory == "hbm" else _BY_NAME[memory]


class Allocator:
    """`ncc.sbuf.alloc(f)` and its kin: f(block indices, partitions, bytes) gives an address."""

    def __init__(self, memory: str, place: Callable[..., Any] | None) -> None:
        self.memory = memory
        self.place = place

    def address(
        self, block: tuple[int, ...], partitions: int, size_bytes: int
    ) -> tuple[int, int] | None:
        """(partition, byte) of one block; None lets the builder choose."""
        if self.place is None:
            return None
        made = tuple(int(n) for n in self.place(block, partitions, size_bytes))
        if self.memory == "sbuf":
            if len(made) != 2:
                fail("ncc.sbuf.alloc", "func", made, "(start partition, byte)")
            return made[0], made[1]
        if len(made) != 3:
            fail("ncc.psum.alloc", "func", made, "(bank, start partition, byte)")
        return made[1], made[0] * PSUM_BANK_BYTES + made[2]


def _modulo(tiles: Any, block: tuple[int, ...]) -> int:
    """Which of `tiles` physical tiles a block uses, counted row by row."""
    sizes = tuple(tiles) if isinstance(tiles, (tuple, list)) else (tiles,) if tiles else ()
    at = 0
    for d, index in enumerate(block):
        size = int(sizes[d]) if d < len(sizes) else 1
        at = at * size + index % size
    return at


class _Sbuf:
    """`ncc.sbuf`."""

    memory = "sbuf"

    @staticmethod
    def alloc(func: Callable[..., Any]) -> Allocator:
        return Allocator("sbuf", func)

    @staticmethod
    def mod_alloc(
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> Allocator:
        def place(block: tuple[int, ...], partitions: int, size_bytes: int) -> tuple[int, int]:
            return (
                base_partition + _modulo(num_par_tiles, block) * partitions,
                base_addr + _modulo(num_free_tiles, block) * size_bytes,
            )

        return Allocator("sbuf", place)

    @staticmethod
    def auto_alloc() -> Buffer:
        return sbuf


class _Psum:
    """`ncc.psum`."""

    memory = "psum"

    @staticmethod
    def alloc(func: Callable[..., Any]) -> Allocator:
        return Allocator("psum", func)

    @staticmethod
    def mod_alloc(
        *,
        base_bank: int = 0,
        base_addr: int = 0,
        base_partition: int = 0,
        num_bank_tiles: Any = (),
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> Allocator:
        def place(block: tuple[int, ...], partitions: int, size_bytes: int) -> tuple[int, int, int]:
            return (
                base_bank + _modulo(num_bank_tiles, block),
                base_partition + _modulo(num_par_tiles, block) * partitions,
                base_addr + _modulo(num_free_tiles, block) * size_bytes,
            )

        return Allocator("psum", place)

    @staticmethod
    def auto_alloc() -> Buffer:
        return psum


ncc_sbuf = _Sbuf()
ncc_psum = _Psum()


_automatic: list[bool] = []


@contextmanager
def automatic() -> Iterator[None]:
    """Inside, the builder places what the kernel's allocators would place."""
    _automatic.append(True)
    try:
        yield
    finally:
        _automatic.pop()


def buffer_of(what: Any, call: str) -> Buffer | Allocator:
    if isinstance(what, (Buffer, Allocator)):
        return what
    if what is None:
        return sbuf
    if isinstance(what, (_Sbuf, _Psum)):
        return _BY_NAME[what.memory]
    if isinstance(what, str) and what in _BY_NAME:
        return _BY_NAME[what]
    fail(call, "buffer", repr(what), "nl.sbuf, nl.psum, nl.hbm, nl.private_hbm or nl.shared_hbm")


def make(
    shape: Any, dtype: DType, buffer: Any, *, name: str = "", address: Any = None, call: str
) -> Tensor:
    """An uninitialised tensor."""
    where = buffer_of(buffer, call)
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)) and not hasattr(shape, "__iter__"):
        fail(call, "shape", repr(shape), "a tuple of ints")
    if not isinstance(name or "", str):
        fail(call, "name", repr(name), "text")
    sizes = []
    partition = 0
    for d, size in enumerate(shape):
        if isinstance(size, ParDim):
            partition = d
        try:
            whole = int(size)
        except (TypeError, ValueError):
            fail(call, "shape", size, "an int")
        if whole != size:
            fail(call, "shape", size, "an int")
        sizes.append(whole)
    if any(size < 1 for size in sizes):
        fail(call, "shape", sizes, "sizes of at least 1")
    session = current()
    if where.memory == "hbm":
        assert isinstance(where, Buffer)
        view = session.hbm_tensor(sizes, dtype.isa, name=name or "", shared=where.shared)
        return Tensor(view, dtype)
    if sizes and sizes[partition] > 128:
        fail(call, f"shape[{partition}]", sizes[partition], "at most 128 partitions")
    if isinstance(where, Allocator) and not _automatic:
        return _placed(sizes, partition, dtype, where, name or "")
    place = None
    if address is not None:
        try:
            row, byte = address
            place = (int(row or 0), int(byte))
        except (TypeError, ValueError):
            fail(call, "address", repr(address), "(partition, byte)")
    if partition > 0 and place is None and where.memory == "sbuf":
        if dtype.itemsize * math.prod(sizes) // sizes[partition] > SBUF_PARTITION_BYTES:
            return _apart(sizes, partition, dtype, name or "")
    view = session.builder.tensor(
        where.memory, sizes, dtype.isa, name=name or "", partition_dim=partition, address=place
    )
    return Tensor(view, dtype, where.memory)


def _apart(sizes: list[int], partition: int, dtype: DType, name: str) -> Tensor:
    """Blocks that together are more than SBUF: a tile each, of which the builder spills some."""
    builder = current().builder
    blocks = tuple(sizes[:partition])
    table = {
        tuple(block): builder.tensor("sbuf", sizes[partition:], dtype.isa, name=name)
        for block in np.ndindex(*blocks)
    }
    return _of_tiles(table, blocks, sizes, dtype, "sbuf")


def _placed(sizes: list[int], partition: int, dtype: DType, where: Allocator, name: str) -> Tensor:
    builder = current().builder
    blocks, tile = tuple(sizes[:partition]), sizes[partition:]
    size_bytes = dtype.itemsize
    for size in tile[1:]:
        size_bytes *= size
    table: dict[tuple[int, ...], Any] = {}
    made: dict[Any, Any] = {}
    first = None
    in_a_row = True
    for n, block in enumerate(np.ndindex(*blocks)):
        address = where.address(tuple(block), tile[0], size_bytes)
        first = address if n == 0 else first
        if address is None or first is None:
            in_a_row = False
        else:
            in_a_row = in_a_row and address == (first[0], first[1] + n * size_bytes)
        table[tuple(block)] = address
    if in_a_row or first is None:
        return Tensor(
            builder.tensor(
                where.memory, sizes, dtype.isa, name=name, partition_dim=partition, address=first
            ),
            dtype,
        )
    for block, address in table.items():
        if address not in made:
            made[address] = builder.tensor(
                where.memory, tile, dtype.isa, name=name, address=address
            )
        table[block] = made[address]
    return _of_tiles(table, blocks, sizes, dtype, where.memory)


def _of_tiles(
    table: dict[tuple[int, ...], Any],
    blocks: tuple[int, ...],
    sizes: list[int],
    dtype: DType,
    memory: str,
) -> Tensor:
    tensor = Tensor.__new__(Tensor)
    tensor._origin = None
    tensor._memory = memory
    tensor._view = None
    tensor._dtype = dtype
    tensor._shape = tuple(sizes)
    tensor._late = Tiles(table, blocks, ())
    return tensor
