"""Tiles and tensors as kernels see them.

A Tensor is a view of the builder, and nothing is computed. Some tensors have no view yet: the
result of an instruction that was returned by value is emitted when its value is first used, or,
when it is assigned (`tile[...] = nl.load(...)`), straight into where it is assigned. At most one
result waits at a time, and any other instruction is emitted after it, so program order holds.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trnsim.dtypes import DType, dtype_of, of_isa
from trnsim.errors import fail, kernel_line, wrong
from trnsim.index import ArrayIndex, Index, LoopRange, Mask, ds
from trnsim.session import current, late_lines

if TYPE_CHECKING:
    from trnsim._frontend import Builder, View

__all__ = ["Tensor", "assign", "begin", "crop", "flush", "result"]

# The view of an operand that an instruction uses: all of it, or what a mask leaves.
Crop = Callable[["Tensor"], "View"]
Emit = Callable[["Builder", "View", Crop], None]

_waiting: Tensor | None = None


def begin() -> Builder:
    """The builder, after the result that waits was emitted. Each instruction starts with it."""
    if _waiting is not None:
        flush()
    return current().builder


def flush() -> None:
    """Emits the result that waits, if any."""
    global _waiting
    tensor = _waiting
    if tensor is not None:
        _waiting = None
        late = tensor._late
        if late is not None:
            # Held by nobody but us: the variable here and the argument there.
            if type(late) is Result and late.dropped and sys.getrefcount(tensor) == 2:
                late_lines.append(late.line)
                try:
                    wrong(late.dropped)
                finally:
                    late_lines.pop()
            late.view(tensor)


def forget() -> None:
    """Drops the result that waits; after a trace that failed."""
    global _waiting
    _waiting = None


def whole(tensor: Tensor) -> View:
    """An operand without a mask."""
    return tensor.view_


def _module(name: str) -> Any:
    """A module of this package that itself needs this one."""
    return sys.modules.get(f"trnsim.{name}") or importlib.import_module(f"trnsim.{name}")


class Late:
    """How a tensor without a view of its own gets one."""

    __slots__ = ()

    def view(self, tensor: Tensor) -> View:
        raise NotImplementedError

    def child(self, tensor: Tensor, view: View) -> Tensor:
        return Tensor(view, tensor._dtype)


class Result(Late):
    """An instruction that is not emitted yet."""

    __slots__ = (
        "emit", "memory", "memories", "dtype", "fixed", "line", "box", "accumulate", "dropped"
    )  # fmt: skip

    def __init__(
        self,
        emit: Emit,
        memory: str,
        memories: tuple[str, ...],
        dtype: DType,
        fixed: bool,
        box: list[tuple[int, int]] | None,
        accumulate: Emit | None,
    ) -> None:
        self.emit = emit
        self.memory = memory  # where it goes when nothing says otherwise
        self.memories = memories  # where it may go
        self.dtype = dtype
        self.fixed = fixed  # the result cannot have another type
        self.box = box
        self.accumulate = accumulate  # adds into PSUM instead
        self.line = kernel_line()
        self.dropped = ""  # what is wrong when the kernel drops it

    def into(self, view: View | None, emit: Emit, shape: Any = None) -> View:
        """Emits at the line of the call; without a view, into a tile made for it."""
        builder = current().builder
        builder.at(*self.line)
        if view is None:
            view = builder.tensor(self.memory, shape, self.dtype.isa)
        late_lines.append(self.line)
        try:
            if self.box is None:
                emit(builder, view, whole)
            else:
                box = self.box
                emit(builder, _crop(view, box), lambda t: crop(t, box))
        finally:
            late_lines.pop()
        builder.at("", 0)
        return view

    def view(self, tensor: Tensor) -> View:
        global _waiting
        if _waiting is tensor:
            _waiting = None
        tensor._late = None
        tensor._view = self.into(None, self.emit, tensor._shape)
        return tensor._view


class Zeroed(Late):
    """PSUM that is to be zero: a matmul that adds into it makes the memset needless."""

    __slots__ = ("whole", "done")

    def __init__(self, view: View) -> None:
        self.whole = view
        self.done = False

    def view(self, tensor: Tensor) -> View:
        if not self.done:
            self.done = True
            calls = _module("calls")
            calls.memset(begin(), calls.ZEROS, self.whole, 0.0)
        tensor._late = None
        return tensor._view

    def child(self, tensor: Tensor, view: View) -> Tensor:
        made = Tensor(view, tensor._dtype)
        if not self.done:
            made._late = self
        return made


class Outside(Late):
    """An access past the tensor's bounds; a mask must cut it."""

    __slots__ = ("parent", "base", "axes")

    def __init__(self, parent: View, base: list[int], axes: list[tuple[int, list[int]]]) -> None:
        self.parent = parent
        self.base = base
        self.axes = axes

    def view(self, tensor: Tensor) -> View:
        return self.parent.affine(self.base, self.axes)  # raises, and says what is outside

    def cut(self, box: list[tuple[int, int]]) -> View:
        base = list(self.base)
        axes = []
        for (_, steps), (low, high) in zip(self.axes, box):
            for d, step in enumerate(steps):
                base[d] += low * step
            axes.append((high - low, steps))
        return self.parent.affine(base, axes)


class Turned(Late):
    """A tile whose partitions are no longer first: DMA can follow, engines cannot."""

    __slots__ = ()

    def view(self, tensor: Tensor) -> View:
        wrong(
            "Tensor.permute: dims: expected the partitions to stay first where an engine reads or "
            f"writes, got them as dimension {tensor._view.partition_dim}; nl.transpose or "
            "nisa.nc_transpose turns a tile"
        )

    def child(self, tensor: Tensor, view: View) -> Tensor:
        made = Tensor(view, tensor._dtype)
        if view.partition_dim > 0:
            made._late = self
        return made


class Gathered(Late):
    """Rows that a tile of indices picks: `table[index_tile[i_p, 0], i_f]`, or `.ap(vector_offset=)`.

    `table` is restricted to the columns used and has all rows in front.
    """

    __slots__ = ("table", "index")

    def __init__(self, table: View, index: Tensor) -> None:
        self.table = table
        self.index = index

    def view(self, tensor: Tensor) -> View:
        wrong(
            "index: a tile of indices works in loads, stores and DMA only; "
            "copy the rows with nisa.dma_copy or nl.load first"
        )


class Tiles(Late):
    """Blocks with an address each (`ncc.sbuf.alloc`): a table of tiles by block indices."""

    __slots__ = ("table", "blocks", "at")

    def __init__(
        self, table: dict[tuple[int, ...], View], blocks: tuple[int, ...], at: tuple[int, ...]
    ) -> None:
        self.table = table
        self.blocks = blocks  # sizes of all block dimensions
        self.at = at  # indices given so far

    def view(self, tensor: Tensor) -> View:
        left = self.blocks[len(self.at) :]
        if all(size == 1 for size in left):
            view = self.table[self.at + (0,) * len(left)]
            for _ in left:
                view = view.expand_dim(0)
            return view
        wrong(
            f"index: blocks {list(left)} with an address each: expected an index for each of "
            "them, got the whole tensor"
        )

    def pick(self, tensor: Tensor, keys: tuple[Any, ...]) -> Tensor:
        left = len(self.blocks) - len(self.at)
        taken: list[int] = []
        for key in keys[:left]:
            if key is Ellipsis:
                break
            if isinstance(key, Index) and key.size == 1:
                key = key.base
            if isinstance(key, slice) and self.blocks[len(self.at) + len(taken)] == 1:
                key = 0
            if not isinstance(key, (int, np.integer)):
                wrong(f"index: a block with an address of its own: expected an int, got {key}")
            size = self.blocks[len(self.at) + len(taken)]
            at = int(key) + (size if key < 0 else 0)
            if not 0 <= at < size:
                wrong(f"index: block: expected 0..{size - 1}, got {key}")
            taken.append(at)
        at = self.at + tuple(taken)
        rest = keys[len(taken) :]
        if len(at) == len(self.blocks):
            tile = Tensor(self.table[at], tensor._dtype)
            return tile[rest] if rest else tile
        made = _blank()
        made._view = None
        made._dtype = tensor._dtype
        made._shape = tensor.shape[len(taken) :]
        made._late = Tiles(self.table, self.blocks, at)
        return made


_COMPARING = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


class Tensor:
    """A tensor or a part of one: a shape and a type over storage in HBM, SBUF or PSUM."""

    __slots__ = ("_view", "_dtype", "_shape", "_late", "_memory", "_origin", "__weakref__")

    _view: Any
    _dtype: DType | None
    _shape: tuple[int, ...] | None
    _late: Late | None
    _memory: str | None
    # The tensor and the key that an index expression was used with; of a comparison None, and
    # whether its two tiles are the same one.
    _origin: Any

    def __init__(self, view: View, dtype: DType | None = None, memory: str | None = None) -> None:
        self._view = view
        self._dtype = dtype
        self._shape = None
        self._late = None
        self._memory = memory
        self._origin = None

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if name in _module("packages").LANGUAGE:
            hint = f"; nl.{name} is a function: nl.{name}(tile, ...)"
        raise AttributeError(f"a tile has no attribute {name!r}{hint}", name=name, obj=self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's numbers take part as numbers do; its functions are not of tiles."""
        name = {"true_divide": "divide", "remainder": "mod"}.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and len(inputs) == 2 and not kwargs:
            left, right = inputs
            if not isinstance(left, Tensor) and np.ndim(left) == 0 and isinstance(right, Tensor):
                made = right._binary(name, left, True)
                if name in _COMPARING and isinstance(made, Tensor):
                    made._origin = (None, None)
                return made
        if any(isinstance(given, np.ndarray) and given.ndim for given in inputs):
            wrong(
                f"np.{ufunc.__name__}: expected a tile or a number beside a tile, got an array "
                f"(nl.load(nl.shared_constant(array)) makes a tile of one)"
            )
        instead = f"nl.{name}" if name in _module("packages").LANGUAGE else "a function of nl"
        wrong(f"np.{ufunc.__name__}: expected arrays or numbers, got a tile (use {instead})")

    def _came_from(self, parent: Tensor, key: Any) -> bool:
        origin = self._origin
        return origin is not None and origin[0] is parent and origin[1] is key

    # What it is.

    @property
    def view_(self) -> View:
        """The builder's view; emits the instruction that makes the value, if it waits."""
        late = self._late
        return self._view if late is None else late.view(self)

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self._shape
        if shape is None:
            shape = self._shape = self._view.shape
        return shape

    @property
    def dtype(self) -> DType:
        dtype = self._dtype
        if dtype is None:
            dtype = self._dtype = of_isa(self.view_.dtype)
        return dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def memory(self) -> str:
        """ "hbm", "sbuf" or "psum"."""
        memory = self._memory
        if memory is None:
            late = self._late
            kind = type(late)
            if kind is Result:
                memory = late.memory
            elif kind is Tiles:
                memory = next(iter(late.table.values())).memory
            elif kind is Outside:
                memory = late.parent.memory
            elif kind is Gathered:
                memory = late.table.memory
            else:
                memory = self._view.memory
            self._memory = memory
        return memory

    @property
    def buffer(self) -> Any:
        from trnsim import memory

        return memory.of(self.memory)

    @property
    def name(self) -> str:
        return self.view_.name

    @property
    def strides(self) -> tuple[int, ...]:
        return self.view_.strides

    @property
    def offset(self) -> int:
        return self.view_.offset

    @property
    def partition(self) -> int:
        return self.view_.partition

    @property
    def T(self) -> Tensor:
        """Dimensions reversed: a view in HBM; on chip a transposed copy, as nl.transpose makes."""
        if self.memory == "hbm":
            return self.permute(tuple(reversed(range(self.ndim))))
        shape = self.shape
        if len(shape) != 2 or max(shape) > 128:
            fail(
                "Tensor.T",
                "self",
                list(shape),
                "two dimensions of at most [128, 128] on chip",
            )
        return _module("nl_math").transpose(self, None, None)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Tensor({list(self.shape)}, {self.dtype}, {self.memory})"

    def is_contiguous(self) -> bool:
        return self.view_.contiguous

    def is_indirect(self) -> bool:
        return type(self._late) is Gathered

    has_dynamic_access = is_indirect

    def get_view(self) -> Tensor:
        return self

    as_tile = get_view

    def get_pattern(self) -> list[list[int]]:
        """[[stride, count], ...], the first of an on-chip tensor over partitions."""
        view = self.view_
        strides = list(view.strides)
        if view.partition_dim >= 0:
            strides[view.partition_dim] = view.storage_elements
        return [[stride, count] for stride, count in zip(strides, view.shape)]

    # Parts of it.

    def _of(self, view: View, dtype: DType | None = None) -> Tensor:
        late = self._late
        if late is None:
            return Tensor(view, self._dtype if dtype is None else dtype, self._memory)
        return late.child(self, view)

    def _raw(self) -> View:
        """The view to take parts of, without filling a PSUM tile that is to be zero."""
        late = self._late
        if late is None or type(late) is Zeroed or type(late) is Turned:
            return self._view
        return late.view(self)

    def __getitem__(self, key: Any) -> Tensor:
        late = self._late
        if late is not None:
            if type(late) is Tiles:
                return late.pick(self, key if type(key) is tuple else (key,))
            if type(late) is Result and _is_whole(key, len(self.shape)):
                return self  # stays unemitted: `nl.load(...)[...]`
            if type(late) is Gathered:
                wrong("index: rows picked by indices cannot be indexed again before a copy")
        if type(key) is tuple:
            for k in key:
                kind = type(k)
                if kind is not int and kind is not slice:
                    return self._indexed(key)
        elif key is Ellipsis:
            return self
        elif type(key) is not int and type(key) is not slice:
            return self._indexed((key,))
        if late is None:
            return Tensor(self._view[key], self._dtype, self._memory)
        return self._of(self._raw()[key])

    def _indexed(self, keys: tuple[Any, ...]) -> Tensor:
        """An index with something in it that is neither an int nor a slice."""
        partition = -1 if self.memory == "hbm" else self._raw().partition_dim
        shape = self.shape
        signature: list[Any] = [partition]
        for k in keys:
            if type(k) is Index:
                kind = k.kind
                signature.append(k.numbered() if kind is None else kind)
            elif isinstance(k, int):
                signature.append(-1)
            else:
                return self._indexed_slowly(keys)
        key = (shape, *signature)
        plan = _plans.get(key)
        if plan is None:
            plan = _plans[key] = _plan(partition, shape, keys)
        made = plan(self, keys) if plan else None
        if made is None:
            made = self._indexed_slowly(keys)
        made._origin = (self, keys)
        return made

    def _indexed_slowly(self, keys: tuple[Any, ...]) -> Tensor:
        plain = []
        moved: list[tuple[int, ds]] = []
        affine = False
        for k in keys:
            if isinstance(k, LoopRange):  # nl.affine_range(128) as an index
                k = k.numbers
            if isinstance(k, range):
                k = slice(k.start, k.stop, k.step)
            if isinstance(k, ds):
                start = k.start
                if isinstance(start, (int, np.integer)):
                    start = int(start)
                    stop = start + (int(k.size) - 1) * int(k.step) + 1
                    k = slice(start, stop, int(k.step))
                elif isinstance(start, Index):
                    affine = True
                    k = start[..., None] + Index((int(k.size),), 0, (int(k.step),))
                else:
                    moved.append((len(plain), k))
                    k = slice(0, int(k.size) * int(k.step), int(k.step))
            elif isinstance(k, (Index, Tensor)):
                affine = True
            elif isinstance(k, np.integer) or (type(k) is not int and isinstance(k, int)):
                k = int(k)
            elif isinstance(k, np.ndarray):
                if k.ndim == 0:
                    k = int(k)
                else:
                    affine = True
                    from trnsim.index import _of_array

                    k = _of_array(k)
            elif not (k is None or k is Ellipsis or isinstance(k, (int, slice))):
                if _is_register(k):
                    moved.append((len(plain), ds(k, 1)))
                    k = 0
                else:
                    wrong(f"index: expected ints, slices, nl.ds, nl.arange or tiles, got {k!r}")
            if isinstance(k, slice):
                k = _plain_slice(k)
                if k[1] is not None:
                    moved.append((len(plain), k[1]))
                k = k[0]
            plain.append(k)
        if affine:
            if moved:
                wrong("index: nl.arange and a register in one index are not supported")
            return self._affine(plain)
        if moved:
            return self._moved(plain, moved)
        return self._of(self._raw()[tuple(plain)])

    def _moved(self, keys: list[Any], moved: list[tuple[int, ds]]) -> Tensor:
        """A part whose place follows registers."""
        view = self.view_
        builder = begin()
        ndim = len(view.shape)
        if any(k is Ellipsis or k is None for k in keys):
            at = keys.index(Ellipsis) if Ellipsis in keys else len(keys)
            used = sum(1 for k in keys if k is not None and k is not Ellipsis)
            filled = [slice(None)] * (ndim - used)
            moved = [(d if d < at else d + len(filled) - 1, k) for d, k in moved]
            keys = keys[:at] + filled + keys[at + 1 :]
        part = view
        for d, k in moved:
            steps = [0] * ndim
            steps[d] = 1
            part = builder.dynamic(part, _register(k.start), steps)
        return Tensor(part[tuple(keys)], self._dtype)

    def _affine(self, keys: list[Any]) -> Tensor:
        """Index expressions: the axes of the result are those that the expressions share."""
        view = self._raw()
        sizes = view.shape
        ndim = len(sizes)
        used = sum(1 for k in keys if k is not None and k is not Ellipsis)
        if used > ndim:
            wrong(f"index: expected at most {ndim} dimensions, got {used}")
        if Ellipsis in [k for k in keys if not isinstance(k, (Index, Tensor))]:
            at = next(i for i, k in enumerate(keys) if k is Ellipsis)
            keys = keys[:at] + [slice(None)] * (ndim - used) + keys[at + 1 :]
        else:
            keys = keys + [slice(None)] * (ndim - used)
        keys = [k for k in keys if k is not None]
        indirect = [d for d, k in enumerate(keys) if isinstance(k, Tensor)]
        if indirect:
            return self._gathered(view, keys, indirect)
        rank = max(len(k.shape) for k in keys if isinstance(k, Index))
        base = [0] * ndim
        shared = [1] * rank  # sizes of the expressions' axes
        steps: list[list[int]] = [[0] * ndim for _ in range(rank)]
        slices: list[tuple[int, int, list[int]]] = []  # before which dimension, size, steps
        first = None
        for d, k in enumerate(keys):
            if isinstance(k, Index):
                if isinstance(k, ArrayIndex):
                    wrong(
                        "index: an expression with % or // is no affine pattern; "
                        "index with one nl.arange for each factor of the dimension"
                    )
                if first is None:
                    first = d
                base[d] = k.base
                lead = rank - len(k.shape)
                for a, size in enumerate(k.shape):
                    if size != 1:
                        if shared[lead + a] == 1:
                            shared[lead + a] = size
                        elif shared[lead + a] != size:
                            wrong(
                                f"index: expected shapes that broadcast, got {shared[lead + a]} "
                                f"and {size} in axis {lead + a}"
                            )
                        steps[lead + a][d] = k.steps[a]
            elif isinstance(k, slice):
                numbers = range(sizes[d])[k]
                base[d] = numbers.start
                along = [0] * ndim
                along[d] = numbers.step
                slices.append((d, len(numbers), along))
            else:
                base[d] = k + sizes[d] if k < 0 else k
        assert first is not None
        axes = [(n, along) for d, n, along in slices if d < first]
        axes += list(zip(shared, steps))
        axes += [(n, along) for d, n, along in slices if d > first]
        for d in range(ndim):
            low = high = base[d]
            for size, along in axes:
                reach = (size - 1) * along[d]
                if reach > 0:
                    high += reach
                else:
                    low += reach
            if low < 0 or high >= sizes[d]:
                made = _blank()
                made._view = None
                made._dtype = self._dtype or of_isa(view.dtype)
                made._shape = tuple([size for size, _ in axes])
                made._late = Outside(view, base, axes)
                return made
        return self._of(view.affine(base, axes))

    def _gathered(self, view: View, keys: list[Any], indirect: list[int]) -> Tensor:
        if len(indirect) > 1:
            wrong("index: expected one tile of indices, got several")
        d = indirect[0]
        index = keys[d]
        if index.size == 1:
            # One index for all: a register that moves the access.
            register = load_register(index)
            rest = list(keys)
            rest[d] = 0
            steps = [0] * len(view.shape)
            steps[d] = 1
            moved = Tensor(begin().dynamic(view, register, steps), self._dtype)
            return moved[tuple(rest)]
        if view.memory != "hbm":
            wrong("index: a tile of indices picks rows of tensors in HBM only")
        # All rows of the indexed dimension in front, the part of the other dimensions behind.
        others = list(keys)
        others[d] = slice(None)
        for e, k in enumerate(others):
            if isinstance(k, int) and not isinstance(k, bool):
                others[e] = slice(k, k + 1)
            elif isinstance(k, Index):
                used = [(s, n) for s, n in zip(k.steps, k.shape) if n > 1]
                if not used:
                    others[e] = slice(k.base, k.base + 1)
                elif len(used) == 1 and used[0][0] > 0:
                    stop = k.base + used[0][0] * (used[0][1] - 1) + 1
                    others[e] = slice(k.base, stop, used[0][0])
                else:
                    wrong("index: with a tile of indices, other dimensions take one axis each")
        table = view[tuple(others)]
        order = [d] + [e for e in range(len(keys)) if e != d]
        table = table.permute(order)
        made = _blank()
        made._view = None
        made._dtype = self._dtype or of_isa(view.dtype)
        made._shape = (index.shape[0],) + tuple(table.shape[1:])
        free = [k.shape for k in keys if isinstance(k, Index)]
        if free and len(made._shape) > 2:
            made._shape = (index.shape[0],) + tuple(s for s in made._shape[1:] if s != 1)
        made._late = Gathered(table, index)
        return made

    # Views.

    def reshape(self, *shape: Any) -> Tensor:
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._of(self._raw().reshape([int(s) for s in sizes]))

    def permute(self, *dims: Any) -> Tensor:
        order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        raw = self._raw()
        made = self._of(raw.permute([int(d) % self.ndim for d in order]))
        if made._late is None and raw.memory != "hbm":
            if raw.partition_dim == 0 != made._view.partition_dim:
                made._late = Turned()
        elif type(made._late) is Turned and made._view.partition_dim == 0:
            made._late = None
        return made

    def broadcast(self, dim: int, size: int) -> Tensor:
        """Dimension `dim`, of size 1, repeated `size` times."""
        shape = list(self.shape)
        shape[dim] = int(size)
        return self._of(self._raw().broadcast_to(shape))

    def broadcast_to(self, *shape: Any) -> Tensor:
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        from trnsim import nl

        return nl.broadcast_to(self, tuple(int(s) for s in sizes))

    def expand_dim(self, dim: int) -> Tensor:
        rank = self.ndim + 1
        return self._of(self._raw().expand_dim(int(dim) % rank))

    def expand_dims(self, dim: Any) -> Tensor:
        made = self
        for d in sorted(dim) if isinstance(dim, (tuple, list)) else (dim,):
            made = made.expand_dim(d)
        return made

    def squeeze_dim(self, dim: int) -> Tensor:
        return self._of(self._raw().squeeze_dim(int(dim) % self.ndim))

    def select(self, dim: int, index: Any) -> Tensor:
        """Dimension `dim` at an index: an int, a register, or a tile of one element."""
        dim = int(dim) % self.ndim
        if isinstance(index, (int, np.integer)):
            made = self[(slice(None),) * dim + (int(index),)]
            if made.ndim == self.ndim and self.memory != "hbm":
                return made
            return made
        if isinstance(index, Tensor):
            index = load_register(index)
        return self[(slice(None),) * dim + (index,)]

    def vector_select(self, dim: int, offsets: Tensor) -> Tensor:
        """Rows of dimension 0 that a tile of indices picks."""
        if dim != 0:
            fail("Tensor.vector_select", "dim", dim, "0")
        return self._gathered(self.view_, [offsets] + [slice(None)] * (self.ndim - 1), [0])

    def slice(self, dim: int, start: Any, end: Any = None, step: int = 1) -> Tensor:
        dim = int(dim) % self.ndim
        if isinstance(start, (int, np.integer)):
            return self[(slice(None),) * dim + (slice(int(start), end, step),)]
        return self[(slice(None),) * dim + (slice(start, end, step),)]

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> Tensor:
        """One dimension cut into several; one size may be -1."""
        dim = int(dim) % self.ndim
        sizes = [int(s) for s in shape]
        if -1 in sizes:
            known = 1
            for s in sizes:
                known *= s if s != -1 else 1
            sizes[sizes.index(-1)] = self.shape[dim] // known
        return self.reshape(list(self.shape[:dim]) + sizes + list(self.shape[dim + 1 :]))

    def flatten_dims(self, start: int = 0, end: int = -1) -> Tensor:
        """Dimensions start..end (included) joined."""
        start, end = int(start) % self.ndim, int(end) % self.ndim
        joined = 1
        for size in self.shape[start : end + 1]:
            joined *= size
        return self.reshape(list(self.shape[:start]) + [joined] + list(self.shape[end + 1 :]))

    def rearrange(
        self, source: Sequence[Any], target: Sequence[Any], sizes: dict[str, int] | None = None
    ) -> Tensor:
        """einops with tuples: `t.rearrange(("a", ("b", "c")), ("b", "a", "c"), {"c": 4})`."""
        known = dict(sizes or {})
        names: list[str] = []
        split: list[int] = []
        if len(source) != self.ndim:
            fail("Tensor.rearrange", "source", source, f"{self.ndim} dimensions")
        for entry, size in zip(source, self.shape):
            parts = list(entry) if isinstance(entry, (tuple, list)) else [entry]
            missing = [p for p in parts if p not in known]
            product = 1
            for p in parts:
                product *= known.get(p, 1)
            if len(missing) > 1:
                fail("Tensor.rearrange", "sizes", known, f"sizes for all but one of {parts}")
            if missing:
                known[missing[0]] = size // product
            for p in parts:
                names.append(p)
                split.append(known[p])
        made = self.reshape(split)
        order: list[str] = []
        joined: list[int] = []
        for entry in target:
            parts = list(entry) if isinstance(entry, (tuple, list)) else [entry]
            product = 1
            for p in parts:
                if p not in names:
                    fail("Tensor.rearrange", "target", p, f"names among {names}")
                order.append(p)
                product *= known[p]
            joined.append(product)
        return made.permute([names.index(p) for p in order]).reshape(joined)

    def view(self, dtype: Any) -> Tensor:
        """The same bits as another type."""
        wanted = dtype_of(dtype, "Tensor.view")
        view = self.view_.retype(wanted.isa)
        return Tensor(view, wanted)

    bitcast = view

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: Tensor | None = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> Tensor:
        """An access pattern over the whole storage: [[stride, count], ...], outermost first."""
        wanted = self.dtype if dtype is None else dtype_of(dtype, "Tensor.ap")
        source = self.view_
        pairs = [[int(s), int(n)] for s, n in pattern]
        start = None if offset is None else int(offset)
        if scalar_offset is not None and vector_offset is not None:
            fail("Tensor.ap", "vector_offset", "both", "scalar_offset or vector_offset")
        if vector_offset is not None:
            if indirect_dim != 0:
                fail("Tensor.ap", "indirect_dim", indirect_dim, "0 with vector_offset")
            if source.memory != "hbm":
                fail("Tensor.ap", "vector_offset", source.memory, "a tensor in HBM")
            # The indices replace the outermost count; they scale with the trailing dimensions.
            row = 1
            for size in self.shape[1:]:
                row *= size
            rows = max(1, (source.size - max(0, start or 0) % max(1, row)) // max(1, row))
            reach = sum(s * (n - 1) for s, n in pairs[1:])
            rows = max(1, min(rows, (source.size - 1 - reach) // max(1, row) + 1))
            table = source.ap([[row, rows]] + pairs[1:], start or 0, wanted.isa)
            made = _blank()
            made._view = None
            made._dtype = wanted
            made._shape = tuple([n for _, n in pairs])
            made._late = Gathered(table, vector_offset)
            return made
        if scalar_offset is None:
            return Tensor(source.ap(pairs, start, wanted.isa), wanted)
        if isinstance(scalar_offset, (int, np.integer)):
            limit = "a register or a tile of one element (a number is part of offset)"
            fail("Tensor.ap", "scalar_offset", scalar_offset, limit)
        register = _register(scalar_offset)
        steps = [0] * len(source.shape)
        steps[int(indirect_dim) % len(steps)] = 1
        moved = begin().dynamic(source, register, steps)
        return Tensor(moved.ap(pairs, start, wanted.isa), wanted)

    def astype(self, dtype: Any, **kwargs: Any) -> Tensor:
        from trnsim import nl

        return nl.copy(self, dtype=dtype)

    def tensor(self) -> Tensor:
        return self

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self  # copied plain classes hold the same tensors

    def copy(self) -> Tensor:
        from trnsim import nl

        return nl.copy(self)

    # Assignment and arithmetic.

    def __setitem__(self, key: Any, value: Any) -> None:
        if _is_whole(key, -1):
            assign(self, value)
        elif type(value) is Tensor and value._came_from(self, key):
            return  # `t[i, j] += ...` gives back what it was given
        else:
            assign(self[key], value)

    def _binary(self, op: str, other: Any, reverse: bool = False) -> Tensor:
        return _module("nl_math").operator(op, self, other, reverse)

    def _compared(self, op: str, other: Any) -> Any:
        made = self._binary(op, other)
        if isinstance(made, Tensor):
            same = None
            if isinstance(other, Tensor) and op in ("equal", "not_equal"):
                late = self._late is not None or other._late is not None
                same = not late and _same_view(self._view, other._view)
                same = same == (op == "equal")
            made._origin = (None, same)
        return made

    def __add__(self, other: Any) -> Tensor:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Tensor:
        return self._binary("add", other, True)

    def __sub__(self, other: Any) -> Tensor:
        return self._binary("subtract", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._binary("subtract", other, True)

    def __mul__(self, other: Any) -> Tensor:
        return self._binary("multiply", other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._binary("multiply", other, True)

    def __truediv__(self, other: Any) -> Tensor:
        return self._binary("divide", other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._binary("divide", other, True)

    def __pow__(self, other: Any) -> Tensor:
        return self._binary("power", other)

    def __rpow__(self, other: Any) -> Tensor:
        return self._binary("power", other, True)

    def __mod__(self, other: Any) -> Tensor:
        return self._binary("mod", other)

    def __and__(self, other: Any) -> Tensor:
        return self._binary("bitwise_and", other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Tensor:
        return self._binary("bitwise_or", other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Tensor:
        return self._binary("bitwise_xor", other)

    def __lshift__(self, other: Any) -> Tensor:
        return self._binary("left_shift", other)

    def __rshift__(self, other: Any) -> Tensor:
        return self._binary("right_shift", other)

    def __lt__(self, other: Any) -> Tensor:
        return self._compared("less", other)

    def __le__(self, other: Any) -> Tensor:
        return self._compared("less_equal", other)

    def __gt__(self, other: Any) -> Tensor:
        return self._compared("greater", other)

    def __ge__(self, other: Any) -> Tensor:
        return self._compared("greater_equal", other)

    def __eq__(self, other: Any) -> Any:  # type: ignore[override]
        if isinstance(other, (Tensor, int, float, np.number)):
            return True if other is self else self._compared("equal", other)
        return NotImplemented

    def __ne__(self, other: Any) -> Any:  # type: ignore[override]
        if isinstance(other, (Tensor, int, float, np.number)):
            return self._compared("not_equal", other)
        return NotImplemented

    __hash__ = object.__hash__

    def __neg__(self) -> Tensor:
        from trnsim import nl

        return nl.negative(self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        from trnsim import nl

        return nl.abs(self)

    def __invert__(self) -> Tensor:
        from trnsim import nl

        return nl.invert(self)

    def __matmul__(self, other: Any) -> Tensor:
        from trnsim import nl

        return nl.matmul(self, other)

    def _in_place(self, op: str, other: Any) -> Tensor:
        if op == "add" and isinstance(other, Tensor) and self.memory == "psum":
            late = other._late
            if type(late) is Result and late.accumulate is not None:
                accumulate(self, other)
                return self
        _module("nl_math").in_place(op, self, other)
        return self

    def __iadd__(self, other: Any) -> Tensor:
        return self._in_place("add", other)

    def __isub__(self, other: Any) -> Tensor:
        return self._in_place("subtract", other)

    def __imul__(self, other: Any) -> Tensor:
        return self._in_place("multiply", other)

    def __itruediv__(self, other: Any) -> Tensor:
        return self._in_place("divide", other)

    # Contents, which tracing does not have.

    def _no_contents(self, what: str) -> Any:
        wrong(
            f"{what} of a tensor {list(self.shape)} {self.dtype} in {self.memory}: tracing has no "
            "contents; values come with functional execution"
        )

    def __bool__(self) -> bool:
        compared = self._origin
        if compared is not None and compared[0] is None:
            return self._truth(compared[1])
        if self.size > 1:
            return True  # `if bias:` asks whether it was given; many values have no one truth
        return self._no_contents("bool()")

    def _truth(self, same: bool | None) -> bool:
        """Of a comparison of tiles: whether they are the same one; of values there is none."""
        global _waiting
        if same is None:
            wrong(
                f"bool() of a comparison of tiles {list(self.shape)}: tracing has no contents "
                "(nl.where, nl.maximum and nl.minimum choose element by element)"
            )
        if _waiting is self:
            _waiting = None  # nobody asked for the elements
        return same

    def __float__(self) -> float:
        return self._no_contents("float()")

    def __int__(self) -> int:
        return self._no_contents("int()")

    def __index__(self) -> int:
        return self._no_contents("an index")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self._no_contents("np.asarray()")

    def item(self) -> Any:
        return self._no_contents(".item()")

    def numpy(self) -> Any:
        return self._no_contents(".numpy()")

    def tolist(self) -> Any:
        return self._no_contents(".tolist()")

    def __iter__(self) -> Any:
        for i in range(self.shape[0]):
            yield self[i]


def _blank() -> Tensor:
    """A tensor whose attributes are set one by one."""
    made = Tensor.__new__(Tensor)
    made._memory = None
    made._origin = None
    return made


# How an index of ints and expressions becomes an access, by its shape: everything but the bases.
_plans: dict[tuple[Any, ...], Any] = {}


def _plan(partition_dim: int, sizes: tuple[int, ...], keys: tuple[Any, ...]) -> Any:
    """A function of (tensor, keys of this signature), or False when there is no quick way. It
    gives None for what reaches out of bounds."""
    ndim = len(sizes)
    if len(keys) != ndim or not any(type(k) is Index for k in keys):
        return False
    rank = max(len(k.shape) for k in keys if type(k) is Index)
    shared = [1] * rank
    steps: list[list[int]] = [[0] * ndim for _ in range(rank)]
    users: list[list[int]] = [[] for _ in range(rank)]
    for d, k in enumerate(keys):
        if type(k) is not Index:
            continue
        lead = rank - len(k.shape)
        for a, size in enumerate(k.shape):
            if size == 1:
                continue
            if shared[lead + a] not in (1, size):
                return False
            shared[lead + a] = size
            if k.steps[a]:
                steps[lead + a][d] = k.steps[a]
                users[lead + a].append(d)
    axes = list(zip(shared, steps))
    low = [sum(min(0, s[d] * (n - 1)) for n, s in axes) for d in range(ndim)]
    high = [sum(max(0, s[d] * (n - 1)) for n, s in axes) for d in range(ndim)]
    order = [used[0] if len(used) == 1 else -1 for used in users]
    simple = (
        -1 not in order
        and order == sorted(set(order))
        and all((d in order) == (type(k) is Index) for d, k in enumerate(keys))
        and (partition_dim < 0 or partition_dim in order)
        and all(steps[a][d] > 0 for a, d in enumerate(order))
    )
    if simple:
        parts: list[Any] = [None] * ndim
        for a, d in enumerate(order):
            parts[d] = (high[d], steps[a][d], sizes[d])

        def by_slices(tensor: Tensor, given: tuple[Any, ...]) -> Tensor | None:
            out = []
            for k, part in zip(given, parts):
                if part is None:
                    out.append(k)
                    continue
                reach, step, size = part
                start = k.base
                stop = start + reach + 1
                if start < 0 or stop > size:
                    return None
                out.append(slice(start, stop, step))
            view = tensor._raw()[tuple(out)]
            if tensor._late is None:
                return Tensor(view, tensor._dtype, tensor._memory)
            return tensor._of(view)

        return by_slices

    def by_pattern(tensor: Tensor, given: tuple[Any, ...]) -> Tensor | None:
        base = []
        for d, k in enumerate(given):
            start = k.base if type(k) is Index else k + sizes[d] if k < 0 else k
            if start + low[d] < 0 or start + high[d] >= sizes[d]:
                return None
            base.append(start)
        return tensor._of(tensor._raw().affine(base, axes))

    return by_pattern


def _is_whole(key: Any, rank: int) -> bool:
    if key is Ellipsis:
        return True
    if type(key) is slice:
        return key.start is None and key.stop is None and key.step is None and rank <= 1 != rank
    return False


def _plain_slice(k: Any) -> tuple[Any, Any]:
    """A slice with ints, or (slice, ds) when its start is a register."""
    start, stop, step = k.start, k.stop, k.step
    if _is_register(start):
        if isinstance(stop, _Sum) and stop.register is start:
            size = stop.plus
        else:
            wrong("index: a slice from a register: use nl.ds(register, size)")
        return slice(0, size, step), ds(start, size)
    if isinstance(start, Index) and start.size == 1:
        start = start.base
    if isinstance(stop, Index) and stop.size == 1:
        stop = stop.base
    return (
        slice(
            None if start is None else int(start),
            None if stop is None else int(stop),
            None if step is None else int(step),
        ),
        None,
    )


class Register:
    """A 32-bit register of the sequencers (`nisa.register_alloc`, a dynamic loop's variable)."""

    __slots__ = ("native",)

    def __init__(self, native: Any) -> None:
        self.native = native

    def _alu(self, op: str, other: Any, reverse: bool = False) -> Register:
        builder = begin()
        made = Register(builder.register())
        a, b = self.native, getattr(other, "native", other)
        if not isinstance(other, (Register, int, np.integer)):
            fail("register", "operand", other, "an int or a register")
        b = int(b) if isinstance(b, np.integer) else b
        builder.register_alu(op, made.native, *((b, a) if reverse else (a, b)))
        return made

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)):
            return _Sum(self, int(other))
        return self._alu("ADD", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Register:
        return self._alu("SUB", other)

    def __rsub__(self, other: Any) -> Register:
        return self._alu("SUB", other, True)

    def __mul__(self, other: Any) -> Register:
        return self._alu("MUL", other)

    __rmul__ = __mul__

    def __and__(self, other: Any) -> Register:
        return self._alu("AND", other)

    def __or__(self, other: Any) -> Register:
        return self._alu("OR", other)

    def __lshift__(self, other: Any) -> Register:
        return self._alu("SHL", other)

    def __rshift__(self, other: Any) -> Register:
        return self._alu("SHR", other)

    def _unknown(self, *_: Any) -> Any:
        wrong("register: its value is not known while tracing; use nl.ds, nl.fori_loop or .ap")

    __index__ = __int__ = __float__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _unknown

    def __eq__(self, other: Any) -> Any:
        if other is self:
            return True
        known = isinstance(other, (Register, int, float, np.number))
        return self._unknown() if known else NotImplemented

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        from trnsim import loops

        return loops.while_register(self)


class _Sum(Register):
    """register + constant: the end of a slice, or a register once it is used as one."""

    __slots__ = ("register", "plus", "_made")

    def __init__(self, register: Register, plus: int) -> None:
        self.register = register
        self.plus = plus
        self._made: Any = None

    @property
    def native(self) -> Any:  # type: ignore[override]
        if self._made is None:
            self._made = self.register._alu("ADD", self.plus).native
        return self._made


def _is_register(what: Any) -> bool:
    return isinstance(what, Register)


def load_register(tile: Tensor) -> Any:
    """The builder's register that holds a tile's one element."""
    builder = begin()
    register = builder.register()
    builder.register_load(register, tile.view_, known_value(tile, 0))
    return register


def known_value(tile: Tensor, otherwise: int) -> int:
    """The one element of an argument with contents; else what a run without contents assumes."""
    contents = getattr(tile, "contents", None)
    return otherwise if contents is None else int(np.asarray(contents).reshape(()))


def _register(what: Any) -> Any:
    if isinstance(what, Register):
        return what.native
    if isinstance(what, Tensor):
        if what.size != 1:
            fail("index", "scalar_offset", list(what.shape), "one element")
        return load_register(what)
    wrong(f"index: expected a register or a tile of one element, got {what!r}")


def _crop(view: View, box: list[tuple[int, int]]) -> View:
    shape = view.shape
    key = []
    rank = len(box)
    lead = len(shape) - rank
    for _ in range(max(0, lead)):
        key.append(slice(None))
    for (low, high), size in zip(box[max(0, -lead) :], shape[max(0, lead) :]):
        key.append(slice(None) if size == 1 else slice(low, min(high, size)))
    return view[tuple(key)]


def crop(tensor: Tensor, box: list[tuple[int, int]] | None) -> View:
    """The part of a tensor that a mask leaves; also of one that reaches out of bounds."""
    late = tensor._late
    if box is None:
        return tensor.view_
    if type(late) is Outside:
        if len(box) != len(late.axes):
            wrong(f"mask: expected {len(late.axes)} dimensions, got {len(box)}")
        return late.cut([b if n != 1 else (0, 1) for b, (n, _) in zip(box, late.axes)])
    return _crop(tensor.view_, box)


def mask_box(mask: Any, shape: Sequence[int]) -> tuple[bool, list[tuple[int, int]] | None]:
    """Whether anything is left, and the bounds when they are smaller than the shape."""
    if mask is None or mask is True:
        return True, None
    if mask is False:
        return False, None
    if not isinstance(mask, Mask):
        if isinstance(mask, np.bool_):
            return bool(mask), None
        fail("mask", "mask", mask, "a comparison of index expressions")
    box, _ = mask.box(shape)
    if box is None:
        return False, None
    if all(low == 0 and high == size for (low, high), size in zip(box, shape)):
        return True, None
    return True, box


def result(
    shape: Sequence[int],
    dtype: DType,
    emit: Emit,
    *,
    memory: str = "sbuf",
    memories: tuple[str, ...] = ("sbuf", "psum"),
    fixed: bool = False,
    mask: Any = None,
    dst: Tensor | None = None,
    accumulate: Emit | None = None,
) -> Tensor:
    """The value of an instruction: emitted into dst at once, or when it is used or assigned.

    emit(builder, dst, crop): crop gives the part of an operand that the mask leaves.
    """
    global _waiting
    builder = begin()
    some, box = mask_box(mask, shape) if mask is not None else (True, None)
    if dst is not None:
        if not isinstance(dst, Tensor):
            wrong(f"dst: expected a tile, got {dst!r}")
        if some:
            if box is None:
                emit(builder, dst.view_, whole)
            else:
                kept = box
                emit(builder, crop(dst, kept), lambda t: crop(t, kept))
        return dst
    made = _blank()
    made._view = None
    made._dtype = dtype
    made._shape = shape if type(shape) is tuple else tuple(shape)
    if not some:
        made._view = builder.tensor(memory, made._shape, dtype.isa)
        made._late = None
        return made
    made._late = Result(emit, memory, memories, dtype, fixed, box, accumulate)
    _waiting = made
    return made


def accumulate(target: Tensor, value: Tensor) -> None:
    """target += value, where value is a matmul that was not emitted and target is in PSUM."""
    global _waiting
    late = value._late
    assert type(late) is Result and late.accumulate is not None
    if _waiting is value:
        _waiting = None
    zero = target._late
    if type(zero) is Zeroed:
        zero.done = True
        target._late = None
        view = target._view
    else:
        view = target.view_
    if value._shape != target.shape:
        view = _fit(view, value.shape, "+=")
    value._late = None
    value._view = view
    late.into(view, late.accumulate)


def _fit(view: View, shape: tuple[int, ...], call: str) -> View:
    """The view in another shape of as many elements."""
    if math.prod(shape) != view.size:
        fail(call, "value", list(shape), f"the shape {list(view.shape)}")
    return view.reshape(list(shape))


def assign(target: Tensor, value: Any, mask: Any = None, call: str = "assignment") -> None:
    """`target[...] = value`."""
    global _waiting
    if isinstance(value, Tensor):
        late = value._late
        if (
            type(late) is Result
            and mask is None
            and target.memory in late.memories
            and (not late.fixed or target.dtype.isa == late.dtype.isa)
            and _fits(target.shape, value.shape)
        ):
            where = target._late
            if where is None and not startable(target._view):
                pass  # made where engines can write, and moved by DMA
            elif where is None or type(where) is Zeroed:
                if _waiting is value:
                    _waiting = None
                view = target._view if where is None else where.view(target)
                if target.shape != value.shape:
                    view = view.reshape(list(value.shape))
                value._late = None
                value._view = view
                late.into(view, late.emit)
                return
            elif type(where) is Outside and late.box is not None:
                if _waiting is value:
                    _waiting = None
                box = late.box
                late.box = None
                value._late = None
                value._view = where.cut([b if n != 1 else (0, 1) for b, n in zip(box, value.shape)])
                late.into(value._view, lambda b, d, _: late.emit(b, d, lambda t: crop(t, box)))
                return
        if late is None and value._view is target._view:
            return
        source = value
        if late is None and target._late is None and _same_view(target._view, value._view):
            return
        _module("calls").move(target, source, mask, call)
        return
    if isinstance(value, (int, float, np.number, bool)):
        some, box = mask_box(mask, target.shape)
        if some:
            view = crop(target, box)
            calls = _module("calls")
            if view.memory == "hbm":
                calls.fill_hbm(view, target.dtype, value)
            else:
                calls.memset(begin(), calls.ASSIGN, view, value)
        return
    fail(call, "value", repr(value), "a tile or a number")


def startable(view: View) -> bool:
    """Whether engines reach the partitions of an access: these start at 0, 32, 64 or 96."""
    first, at = view.partition, view.partition_dim
    if view.memory == "hbm" or first == 0:
        return True
    rows = view.shape[at] if at >= 0 else 1
    return first % 32 == 0 and rows <= (64 if first == 64 else 32)


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether shapes differ in sizes of 1 at most, or in how the free elements are counted."""
    if a == b:
        return True
    if [s for s in a if s != 1] == [s for s in b if s != 1]:
        return True
    if not a or not b or a[0] != b[0]:
        return False
    return math.prod(a) == math.prod(b)


def _same_view(a: View, b: View) -> bool:
    return (
        a.storage == b.storage
        and a.offset == b.offset
        and a.partition == b.partition
        and a.shape == b.shape
        and a.strides == b.strides
    )
