"""What nisa and nl share: the calls that messages name, operands, moves, fills and broadcasts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from trnsim import ops
from trnsim._frontend import Builder
from trnsim.dtypes import DType, float32
from trnsim.errors import fail, wrong
from trnsim.session import current
from trnsim.tensor import Crop, Gathered, Tensor, Turned, begin, crop, mask_box, startable, whole

if TYPE_CHECKING:
    from trnsim._frontend import View

__all__ = ["Call", "Instruction"]


class Call:
    """A call of the API, as messages name it, and whose parameters its operands are."""

    __slots__ = ("name", "id")

    def __init__(self, name: str, **operands: str) -> None:
        self.name = name
        self.id = Builder.call(name, **operands)


class Instruction:
    """What a dst-first call returns: orders can be asked for, and data order them anyway."""

    __slots__ = ()

    def depends_on(self, *others: Any) -> Instruction:
        return self


DONE = Instruction()

ZEROS = Call("nl.zeros", dst="shape")
ASSIGN = Call("assignment", src="value", dst="target")
LOAD = Call("nl.load", src="src", dst="result")
STORE = Call("nl.store", src="value", dst="dst")
FILL = Call("nl.full", dst="shape")
BROADCAST = Call("nl.broadcast_to", src="src", dst="result", src0="src")
CAST = Call("nl.copy", src="src", dst="result")


# Operands.


def tile(call: str, operand: str, what: Any) -> View:
    """The view of an operand; the builder checks its memory and where it starts."""
    if type(what) is not Tensor and not isinstance(what, Tensor):
        no_tensor(call, operand, what)
    late = what._late
    return what._view if late is None else late.view(what)


def source(call: str, operand: str, what: Any) -> Tensor:
    if type(what) is not Tensor and not isinstance(what, Tensor):
        no_tensor(call, operand, what)
    return what


def no_tensor(call: str, operand: str, what: Any) -> NoReturn:
    limit = "a tensor"
    if callable(what) and call.startswith("nisa.") and current().generation == "new":
        limit += " (calls of nki.isa begin with dst)"
    fail(call, operand, repr(what), limit)


def match(call: str, a: Tensor, name: str, b: Tensor, other: str) -> None:
    """Two operands have the same partitions and elements in each."""
    if not isinstance(a, Tensor):
        no_tensor(call, name, a)
    x, y = a.shape, b.shape
    if x == y:
        return
    if _partitions(a) != _partitions(b) or a.size != b.size:
        limit = f"as many partitions and elements as {other} {list(y)}"
        if x and y and x[0] == y[0] and x[0] in (a.size, b.size):
            limit += " (tensor_scalar takes one value per partition, broadcast_to repeats it)"
        fail(call, name, list(x), limit)


def _partitions(t: Tensor) -> int:
    if t.memory == "hbm" or not t.shape:
        return 0
    view = t.view_
    return t.shape[view.partition_dim] if view.partition_dim >= 0 else 1


def same_memory(call: str, a: Tensor, an: str, b: Tensor, bn: str) -> None:
    """Vector reads at most one operand from PSUM."""
    if a.memory == "psum" and b.memory == "psum":
        fail(call, bn, "psum", f"sbuf, since {an} is in psum (at most one operand from PSUM)")


def number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    )


def scalar(call: str, operand: str, value: Any, rows: int, bits: bool = False) -> Any:
    """A number, or a tile of one value per partition, as the builder takes it."""
    kind = type(value)
    if kind is float:
        return int(value) if bits else value
    if kind is int:
        return value if bits else float(value)
    if isinstance(value, Tensor):
        shape = value.shape
        if value.size != (shape[0] if shape else 1) or (rows and shape and shape[0] != rows):
            fail(call, operand, list(shape), f"a number or one value per partition [{rows}, 1]")
        return tile(call, operand, value)
    if number(value):
        return int(value) if bits else float(value)
    if getattr(value, "_is_nki_scalar", False):
        return value.value
    fail(call, operand, repr(value), "a number or a tile of one value per partition")


def shapes(views: Sequence[View]) -> list[list[int]]:
    return [list(view.shape) for view in views]


# Generation.


def later(name: str) -> Any:
    """A call that only NeuronCore-v4 has: exists, and is refused."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        current().unsupported(name, "needs trn3 (NeuronCore-v4), the target is trn2")
        return DONE

    refused.__name__ = name.rsplit(".", 1)[-1]
    refused.__doc__ = "Refused: NeuronCore-v4 (trn3) only."
    return refused


def not_supported(name: str, why: str) -> Any:
    """A call that exists and is refused by name."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        current().unsupported(name, why)
        return None

    refused.__name__ = name.rsplit(".", 1)[-1]
    refused.__doc__ = f"Refused: {why}."
    return refused


# Moves and fills.


def front(view: View) -> View:
    """The partition dimension first, blocks behind it."""
    at = view.partition_dim
    if at > 0:
        return view.permute([at] + [d for d in range(view.ndim) if d != at])
    return view


# Integers pass the PE array as floats of their size: a transpose moves bits.
_AS_FLOATS = {"int32": "fp32", "uint32": "fp32", "int16": "bf16", "uint16": "bf16"}


def turn(builder: Builder, call: int, dst: View, data: View, engine: str | None) -> None:
    """dst = data.T."""
    if engine == "tensor" and dst.dtype == data.dtype:
        kind = _AS_FLOATS.get(data.dtype)
        if kind is not None:
            dst, data = dst.retype(kind), data.retype(kind)
    builder.transpose(call, dst, data, engine)


def memset(builder: Builder, call: Call, view: View, value: Any, engine: str | None = None) -> None:
    fixed = int(value) if view.dtype[0] in "iu" else float(value)
    builder.emit(call.id, "MEMSET", engine, front(view), fixed)


def fill_hbm(view: View, dtype: DType, value: Any) -> None:
    """A constant in HBM: a tile of it in SBUF, and DMA."""
    builder = begin()
    total = view.size
    rows = next(p for p in range(min(128, total), 0, -1) if total % p == 0)
    row = total // rows
    width = min(row, 2048)
    while row % width:
        width -= 1
    made = builder.tensor("sbuf", [rows, width], dtype.isa)
    memset(builder, FILL, made, value)
    if view.contiguous:
        flat = view.reshape([rows, row])
        for start in range(0, row, width):
            builder.dma_copy(FILL.id, flat[:, start : start + width], made)
        return
    for at in np.ndindex(*view.shape[:-1]):
        end = view[tuple(at)]
        for start in range(0, view.shape[-1], width):
            part = end[start : start + width]
            builder.dma_copy(FILL.id, part.reshape([1, part.shape[0]]), made[0:1, : part.shape[0]])


def dma(
    builder: Builder,
    call: Call,
    dst: Tensor,
    src: Tensor,
    *,
    crop_dst: Crop = whole,
    crop_src: Crop = whole,
    dst_view: View | None = None,
    mode: str | None = None,
    engine: str | None = None,
    skip: bool = False,
) -> None:
    """A DMA copy; either side may be rows that a tile of indices picks."""
    dst, src = _as_moved(dst), _as_moved(src)
    index = None
    on = "src"
    if type(src._late) is Gathered:
        gathered = src._late
        index, source_view = gathered.index.view_, gathered.table
        target = crop_dst(dst) if dst_view is None else dst_view
        index, source_view = _rows(index, source_view, target, crop_src, src)
    else:
        source_view = crop_src(src)
    if dst_view is None and type(dst._late) is Gathered:
        if index is not None:
            fail(call.name, "src", "indices on both sides", "a tile of indices on one side")
        scattered = dst._late
        on = "dst"
        index, target = _rows(scattered.index.view_, scattered.table, source_view, crop_dst, dst)
    elif index is None:
        target = crop_dst(dst) if dst_view is None else dst_view
    if index is None:
        if target.size != source_view.size:
            fail(
                call.name,
                "src",
                list(source_view.shape),
                f"as many elements as dst {list(target.shape)}",
            )
        builder.dma_copy(call.id, target, source_view, mode=mode, engine=engine)
        return
    builder.dma_copy(
        call.id,
        target,
        source_view,
        mode=mode,
        engine=engine,
        index=index,
        index_on=on,
        skip_out_of_bounds=skip,
    )


def _as_moved(tensor: Tensor) -> Tensor:
    """The tensor itself, but for a tile with its dimensions moved, which DMA follows."""
    if type(tensor._late) is not Turned:
        return tensor
    return Tensor(tensor._view, tensor._dtype)


def _rows(index: View, table: View, other: View, cropped: Crop, tensor: Tensor) -> Any:
    """The indices and columns that remain when a mask left `other` of the other side."""
    index = index.reshape([index.size, 1]) if index.ndim != 2 or index.shape[1] != 1 else index
    rows = other.shape[0]
    if index.shape[0] > rows:
        index = index[0:rows]
    columns = other.size // max(1, rows)
    width = table.size // table.shape[0]
    if columns < width and table.ndim == 2:
        table = table[:, 0:columns]
    return index, table


def move(dst: Tensor, src: Tensor, mask: Any = None, call: Any = ASSIGN) -> None:
    """dst = src between any memories."""
    if isinstance(call, str):
        call = ASSIGN
    builder = begin()
    some, box = mask_box(mask, dst.shape)
    if not some:
        return
    take: Crop = whole if box is None else (lambda t: crop(t, box))
    if dst.memory == "hbm" or src.memory == "hbm":
        if src.memory == "psum":
            src = to_sbuf(src)
        if dst.memory == "psum":
            fail(call.name, "target", "psum", "sbuf or hbm for a value in HBM")
        dma(builder, call, dst, src, crop_dst=take, crop_src=take)
        return
    target, value = take(dst), take(src)
    if target.shape != value.shape:
        value = stretch(call.name, value, target.shape)
    if "sbuf" == target.memory and not (startable(target) and startable(value)):
        if value.memory == "psum" or value.dtype != target.dtype:
            made = builder.tensor("sbuf", list(target.shape), target.dtype)
            builder.copy(call.id, front(made), front(value))
            value = made
        builder.dma_copy(call.id, target, value)
        return
    builder.copy(call.id, front(target), front(value))


def stretch(call: str, view: View, shape: Sequence[int]) -> View:
    """A view broadcast or reshaped to another shape, without an instruction."""
    sizes = list(view.shape)
    if view.size == math.prod(shape):
        return view.reshape(list(shape))
    if len(sizes) < len(shape):
        sizes = sizes[:1] + [1] * (len(shape) - len(sizes)) + sizes[1:]
        view = view.reshape(sizes)
    if len(sizes) > len(shape) or any(a not in (1, b) for a, b in zip(sizes, shape)):
        fail(call, "value", list(view.shape), f"a shape that broadcasts to {list(shape)}")
    return view.broadcast_to(list(shape))


def to_sbuf(tensor: Tensor, dtype: DType | None = None) -> Tensor:
    """A copy in SBUF."""
    builder = begin()
    made = Tensor(builder.tensor("sbuf", list(tensor.shape), (dtype or tensor.dtype).isa))
    builder.copy(CAST.id, front(made._view), front(tensor.view_))
    return made


def reachable(tensor: Tensor) -> Tensor:
    """The tensor, or a copy by DMA when it starts at a partition where engines cannot."""
    if tensor._late is None and tensor.memory == "sbuf" and not startable(tensor._view):
        made = new(tensor.shape, tensor.dtype)
        begin().dma_copy(CAST.id, made._view, tensor._view)
        return made
    return tensor


def new(shape: Sequence[int], dtype: DType, memory: str = "sbuf") -> Tensor:
    """An uninitialised tile for a value in between."""
    return Tensor(begin().tensor(memory, [int(s) for s in shape], dtype.isa), dtype)


def broadcast_partitions(src: Tensor, rows: int) -> Tensor:
    """[1, F] repeated over `rows` partitions: a matmul with a row of ones, then a copy."""
    builder = begin()
    view = src.view_
    if view.memory == "psum":
        view = to_sbuf(src).view_
    width = src.size
    flat = view.reshape([1, width])
    dtype = src.dtype
    if dtype.kind != "f":
        made = Tensor(builder.tensor("sbuf", [1, width], "fp32"))
        builder.copy(BROADCAST.id, made._view, flat)
        flat = made._view
    ones = builder.tensor("sbuf", [1, rows], flat.dtype)
    memset(builder, BROADCAST, ones, 1.0)
    result = new((rows, width), dtype)
    for start in range(0, width, 512):
        size = min(512, width - start)
        bank = builder.tensor("psum", [rows, size], "fp32")
        builder.matmul(
            BROADCAST.id, bank, ones, flat[:, start : start + size], accumulate=False, one_zero=True
        )
        builder.copy(BROADCAST.id, result._view[:, start : start + size], bank)
    shape = (rows,) + src.shape[1:]
    return result if result.shape == shape else result.reshape(shape)


def cast(tensor: Tensor, dtype: DType) -> Tensor:
    """A copy of another type in SBUF, or the tensor itself."""
    return tensor if tensor.dtype.isa == dtype.isa else to_sbuf(tensor, dtype)


def broadcast_shape(call: str, a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """NumPy's rule for two shapes."""
    rank = max(len(a), len(b))
    x = (1,) * (rank - len(a)) + tuple(a)
    y = (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for p, q in zip(x, y):
        if p != q and 1 not in (p, q):
            fail(call, "y", list(b), f"a shape that broadcasts with {list(a)}")
        shape.append(max(p, q))
    return tuple(shape)


def is_bitwise(op: str) -> bool:
    return op in ops.BITWISE


def check_bits(call: str, op: str, *tensors: Tensor) -> None:
    """Operations on bit patterns take integers."""
    if op in ops.BITWISE:
        for t in tensors:
            if t.dtype.kind == "f":
                fail(call, "op", f"{op.lower()} of {t.dtype}", "integers for a bitwise operation")


def axes_of(call: str, axis: Any, ndim: int) -> list[int]:
    """Free axes as sorted indices, without repeats."""
    given = axis if isinstance(axis, (tuple, list)) else [axis]
    axes = sorted({a % ndim if -ndim <= a < 0 else a for a in integers(call, "axis", given)})
    if not axes or axes[0] < 1 or axes[-1] >= ndim:
        fail(call, "axis", axis, f"free axes within 1..{ndim - 1}")
    return axes


def integer(call: str, operand: str, value: Any, low: int | None = None) -> int:
    """A whole number, not under `low`."""
    try:
        made = int(value)
    except (TypeError, ValueError, OverflowError):
        fail(call, operand, repr(value), "an int")
    if low is not None and made < low:
        fail(call, operand, made, f"at least {low}")
    return made


def integers(call: str, operand: str, values: Any) -> list[int]:
    """Whole numbers of a tuple or list: a shape, axes."""
    if isinstance(values, (Tensor, str)) or not hasattr(values, "__iter__"):
        fail(call, operand, repr(values), "a tuple of ints")
    return [integer(call, operand, value) for value in values]


def none_of(call: str, **given: Any) -> None:
    """Arguments that are accepted only without a value."""
    for name, value in given.items():
        if value is not None:
            wrong(f"{call}: {name}: is not supported, got {value!r}")


FLOAT = float32
