"""The arithmetic of nki.language, lowered to instructions as documented.

Two tiles: TENSOR_TENSOR; a tile and a number or one value per partition: TENSOR_SCALAR; functions:
ACTIVATE on Scalar, or what Vector has. Each function is also an `op=` of nki.isa.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from trnsim import nisa, nisa_old, ops
from trnsim.calls import (
    Call,
    axes_of,
    broadcast_partitions,
    broadcast_shape,
    cast,
    front,
    new,
    number,
    reachable,
    source,
    to_sbuf,
    turn,
)
from trnsim.dtypes import DType, dtype_of, float32, promote, uint8
from trnsim.errors import fail, wrong
from trnsim.index import Index, Mask
from trnsim.ops import BITWISE, COMPARISONS, LOGICAL, alu_of
from trnsim.session import current
from trnsim.tensor import Result, Tensor, begin, crop, mask_box, result

COPY = Call("nl.copy", src="x", dst="result")
SELECT = Call("nl.where", src="x", predicate="condition", dst="result")

_calls: dict[str, Call] = {}


def call_of(name: str) -> Call:
    """The call of an operation of nki.language, for messages."""
    found = _calls.get(name)
    if found is None:
        found = _calls[name] = Call(
            f"nl.{name}", src="x", src0="x", src1="y", operand0="y", dst="result"
        )
    return found


def _result_type(call: str, op: str, dtype: Any, *given: DType) -> DType:
    if dtype is not None:
        return dtype_of(dtype, call)
    if op in COMPARISONS or op in LOGICAL:
        return uint8
    out = given[0]
    for other in given[1:]:
        out = promote(out, other)
    return out


_REVERSED = {
    "ADD": "ADD",
    "MULTIPLY": "MULTIPLY",
    "MAX": "MAX",
    "MIN": "MIN",
    "EQUAL": "EQUAL",
    "NOT_EQUAL": "NOT_EQUAL",
    "LESS": "GREATER",
    "LESS_EQUAL": "GREATER_EQUAL",
    "GREATER": "LESS",
    "GREATER_EQUAL": "LESS_EQUAL",
}


def _partition_size(t: Tensor) -> int:
    return t.shape[0] if t.shape else 1


def binary(
    name: str, x: Any, y: Any, dtype: Any = None, mask: Any = None, reverse: bool = False
) -> Any:
    """x op y for tiles, numbers and index expressions, broadcast as NumPy does."""
    call = f"nl.{name}"
    api = call_of(name)
    op = alu_of(call, "op", name)
    if isinstance(x, (Index, Mask)) or isinstance(y, (Index, Mask)):
        if isinstance(x, Tensor) or isinstance(y, Tensor):
            operand = "y" if isinstance(x, Tensor) else "x"
            fail(call, operand, "an index expression", "a tile (nisa.iota makes one of indices)")
        return _of_indices(name, x, y)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        if number(x) and number(y):
            return _of_numbers(name, x, y)
        fail(call, "x", repr(x), "a tile")
    if not isinstance(x, Tensor):
        x, y, reverse = y, x, not reverse
    if not isinstance(y, Tensor):
        if not number(y):
            fail(call, "y", repr(y), "a tile or a number")
        return _with_scalar(api, op, x, y, reverse, dtype, mask)
    x, y = _loaded(call, "x", x), _loaded(call, "y", y)
    if x.ndim != y.ndim:
        x, y = _per_row(x, y), _per_row(y, x)
        if x.ndim != y.ndim:
            _check_partitions(call, x, y)
    a, b = x.shape, y.shape
    if a != b:
        shape = broadcast_shape(call, a, b)
        if _per_partition(y, x, shape):
            return _with_scalar(api, op, x, y, reverse, dtype, mask)
        if _per_partition(x, y, shape):
            return _with_scalar(api, op, y, x, not reverse, dtype, mask)
        x, y = spread(x, shape), spread(y, shape)
    if reverse:
        x, y = y, x
    if x.memory == "psum" and y.memory == "psum":
        y = to_sbuf(y)
    if op == "POWER":
        x, y = _in_sbuf(x), _in_sbuf(y)
    out = _result_type(call, op, dtype, x.dtype, y.dtype)
    if op in BITWISE:
        for operand, t in (("x", x), ("y", y)):
            if t.dtype.kind == "f":
                fail(call, operand, t.dtype, "integers for a bitwise operation")

    left, right = x, y

    def emit(builder: Any, d: Any, take: Any) -> None:
        where = nisa.elementwise_engine(call, op, None, left, right, d.memory)
        builder.emit(
            api.id, "TENSOR_TENSOR", where, front(take(left)), front(take(right)), front(d), op
        )

    memories = ("sbuf",) if op == "POWER" else ("sbuf", "psum")
    return result(x.shape, out, emit, memories=memories, mask=mask)


def _per_row(t: Tensor, other: Tensor) -> Tensor:
    """One value per partition, [P] or [P, 1, 1], with the other's number of dimensions."""
    if t.shape and t.size == t.shape[0] == other.shape[0] and other.ndim > 1:
        return t.reshape((t.shape[0],) + (1,) * (other.ndim - 1))
    return t


def _check_partitions(call: str, x: Tensor, y: Tensor) -> None:
    """Shapes of different ranks are aligned at their ends, and partitions must meet partitions."""
    a, b = _partition_dim(x) - x.ndim, _partition_dim(y) - y.ndim
    if a == b or x.shape[a] == 1 and x.ndim < y.ndim or y.shape[b] == 1 and y.ndim < x.ndim:
        return
    few, many, name, other = (x, y, "x", "y") if x.ndim < y.ndim else (y, x, "y", "x")
    fail(
        call,
        name,
        list(few.shape),
        f"a tile whose partitions meet those of {other} {list(many.shape)} (partitions come "
        "first; a row for one partition is [1, n])",
    )


def _partition_dim(t: Tensor) -> int:
    return 0 if type(t._late) is Result else max(0, t._raw().partition_dim)


def _loaded(call: str, operand: str, t: Tensor) -> Tensor:
    """HBM is no operand of an engine."""
    if t.memory == "hbm":
        fail(call, operand, "hbm", "a tile in sbuf or psum (load it first)")
    return reachable(t)


def _in_sbuf(t: Tensor) -> Tensor:
    return to_sbuf(t) if t.memory == "psum" else t


def _per_partition(t: Tensor, other: Tensor, shape: Sequence[int]) -> bool:
    """Whether t is one fp32 value for each partition of a full tile."""
    return (
        tuple(other.shape) == tuple(shape)
        and t.ndim == len(shape)
        and t.shape[0] == shape[0]
        and t.size == shape[0]
        and t.dtype.isa == "fp32"
    )


def spread(t: Tensor, shape: Sequence[int], call: str = "nl.broadcast_to") -> Tensor:
    """t broadcast to a shape: free axes by strides, partitions by a matmul with ones."""
    shape = tuple(shape)
    if t.shape == shape:
        return t
    if t.ndim < len(shape):
        # NumPy adds dimensions on the left; on chip the first one stays the partition dimension.
        ones = (1,) * (len(shape) - t.ndim)
        rows = t.shape[0] if t.shape and t.shape[0] == shape[0] else None
        t = t.reshape(ones + t.shape if rows is None else (rows,) + ones + t.shape[1:])
    if t.shape[0] == 1 and shape[0] > 1:
        t = broadcast_partitions(t, shape[0])
    if t.shape == shape:
        return t
    if any(a not in (1, b) for a, b in zip(t.shape, shape)):
        fail(call, "src", list(t.shape), f"a shape that broadcasts to {list(shape)}")
    return Tensor(t.view_.broadcast_to(list(shape)), t._dtype)


def _with_scalar(
    api: Call, op: str, x: Tensor, y: Any, reverse: bool, dtype: Any, mask: Any
) -> Tensor:
    call = api.name
    x = _loaded(call, "x", x)
    if op in BITWISE and x.dtype.kind == "f":
        fail(call, "x", x.dtype, "integers for a bitwise operation")
    out = _result_type(call, op, dtype, x.dtype)
    if op == "POWER":
        x = _in_sbuf(x)
    if reverse and op in _REVERSED:
        op, reverse = _REVERSED[op], False
    value = y if isinstance(y, Tensor) else int(y) if op in BITWISE else float(y)

    def emit(builder: Any, d: Any, take: Any) -> None:
        operand = take(value) if isinstance(value, Tensor) else value
        where = "gpsimd" if op == "POWER" and isinstance(value, Tensor) else "vector"
        builder.emit(
            api.id,
            "TENSOR_SCALAR",
            where,
            front(take(x)),
            front(d),
            op,
            "BYPASS",
            operand,
            None,
            reverse,
            False,
        )

    return result(x.shape, out, emit, mask=mask)


def _of_numbers(name: str, x: Any, y: Any) -> Any:
    import numpy as np

    known: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "maximum": max,
        "minimum": min,
        "power": lambda a, b: a**b,
        "mod": lambda a, b: a % b,
        "left_shift": lambda a, b: a << b,
        "right_shift": lambda a, b: a >> b,
    }
    made = known.get(name, getattr(np, name, None))
    if made is None:
        fail(f"nl.{name}", "x", x, "a tile")
    return made(x, y)


def _of_indices(name: str, x: Any, y: Any) -> Any:
    """Arithmetic and comparisons of index expressions stay index expressions and masks."""
    known: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "mod": lambda a, b: a % b,
        "equal": lambda a, b: a == b,
        "not_equal": lambda a, b: a != b,
        "less": lambda a, b: a < b,
        "less_equal": lambda a, b: a <= b,
        "greater": lambda a, b: a > b,
        "greater_equal": lambda a, b: a >= b,
        "logical_and": lambda a, b: a & b,
        "logical_or": lambda a, b: a | b,
        "bitwise_and": lambda a, b: a & b,
        "bitwise_or": lambda a, b: a | b,
    }
    if name not in known:
        fail(f"nl.{name}", "x", "an index expression", "a tile")
    return known[name](x, y)


def operator(name: str, x: Tensor, y: Any, reverse: bool) -> Any:
    """A Python operator on a tile."""
    if not (isinstance(y, (Tensor, Index)) or number(y)):
        return NotImplemented
    return binary(name, x, y, reverse=reverse)


def in_place(name: str, target: Tensor, value: Any) -> None:
    """`target op= value`."""
    from trnsim.tensor import assign

    assign(target, binary(name, target, value))


# Functions.


def unary(name: str, x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """A function on the Scalar engine."""
    call = f"nl.{name}"
    if number(x):
        return _of_number(name, x)
    v = _loaded(call, "x", source(call, "x", x))
    api = call_of(name)
    function = ops.activation_of(call, "op", name)
    out = v.dtype if dtype is None else dtype_of(dtype, call)
    return result(
        v.shape,
        out,
        lambda builder, d, take: builder.activation(api.id, front(d), function, front(take(v))),
        mask=mask,
    )


def _of_number(name: str, x: Any) -> float:
    known = {
        "square": lambda a: a * a,
        "reciprocal": lambda a: 1.0 / a,
        "rsqrt": lambda a: 1.0 / math.sqrt(a),
        "abs": abs,
        "negative": lambda a: -a,
        "sigmoid": lambda a: 1.0 / (1.0 + math.exp(-a)),
        "relu": lambda a: max(a, 0.0),
    }
    made = known.get(name, getattr(math, name, None))
    if made is None:
        fail(f"nl.{name}", "x", x, "a tile")
    try:
        return made(x)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        wrong(f"nl.{name}: {error}, of {x}")


def scalars(
    name: str,
    x: Any,
    steps: Sequence[tuple[str, Any, bool]],
    dtype: Any = None,
    mask: Any = None,
    engine: str = "vector",
) -> Tensor:
    """One TENSOR_SCALAR of one or two operations with numbers."""
    call = f"nl.{name}"
    v = _loaded(call, "x", source(call, "x", x))
    api = call_of(name)
    out = _result_type(call, steps[-1][0], dtype, v.dtype)
    first = steps[0]
    second = steps[1] if len(steps) > 1 else ("BYPASS", None, False)
    return result(
        v.shape,
        out,
        lambda builder, d, take: builder.emit(
            api.id,
            "TENSOR_SCALAR",
            engine,
            front(take(v)),
            front(d),
            first[0],
            second[0],
            first[1],
            second[1],
            first[2],
            second[2],
        ),
        memories=("sbuf",) if engine == "gpsimd" else ("sbuf", "psum"),
        mask=mask,
    )


def rounded(name: str, x: Any, dtype: Any, mask: Any) -> Tensor:
    """floor, ceil and trunc on Vector, by the remainder of a division by 1."""
    call = f"nl.{name}"
    v = _loaded(call, "x", source(call, "x", x))
    out = v.dtype if dtype is None else dtype_of(dtype, call)
    if name == "floor":
        part = scalars(name, v, [("MOD", 1.0, False)], float32, mask)
        return binary("subtract", v, part, out, mask)
    if name == "ceil":
        part = scalars(name, v, [("MULTIPLY", -1.0, False), ("MOD", 1.0, False)], float32, mask)
        return binary("add", v, part, out, mask)
    part = scalars(name, v, [("ABS", None, False), ("MOD", 1.0, False)], float32, mask)
    part.view_
    twice = scalars(
        name, v, [("GREATER_EQUAL", 0.0, False), ("MULTIPLY", 2.0, False)], float32, mask
    )
    signed = nisa_old.scalar_tensor_tensor(
        data=twice, op0="subtract", operand0=1.0, op1="multiply", operand1=part, mask=mask
    )
    return binary("subtract", v, signed, out, mask)


def rsqrt(x: Any, dtype: Any, mask: Any) -> Any:
    """1 / sqrt(x): on GpSimd in the newer generation, on Scalar in the older one."""
    if number(x) or current().generation != "new":
        return unary("rsqrt", x, dtype, mask)
    if source("nl.rsqrt", "x", x).memory != "sbuf":
        fail("nl.rsqrt", "x", x.memory, "a tile in sbuf (it runs on GpSimd)")
    return scalars("rsqrt", x, [("RSQRT", None, False)], dtype, mask, "gpsimd")


def trigonometric(name: str, x: Any, dtype: Any, mask: Any) -> Tensor:
    """Range reduction on Vector, then the function on Scalar, whose table covers [-pi, pi]."""
    call = f"nl.{name}"
    v = _loaded(call, "x", source(call, "x", x))
    shift = math.pi if name != "cos" else 1.5 * math.pi
    reduced = scalars(
        name, v, [("ADD", shift, False), ("MOD", 2.0 * math.pi, False)], float32, mask
    )
    centred = scalars(name, reduced, [("ADD", -math.pi, False)], float32, mask)
    if name == "tan":
        sine = unary("sin", centred, float32, mask)
        sine.view_
        again = scalars(
            name, v, [("ADD", 1.5 * math.pi, False), ("MOD", 2.0 * math.pi, False)], float32, mask
        )
        cosine = unary("sin", scalars(name, again, [("ADD", -math.pi, False)], float32, mask))
        return binary("divide", sine, cosine, v.dtype if dtype is None else dtype, mask)
    return unary("sin", centred, v.dtype if dtype is None else dtype, mask)


# Reductions.


def reduction(
    name: str, op: str, x: Any, axis: Any, dtype: Any, mask: Any, keepdims: bool
) -> Tensor:
    call = f"nl.{name}"
    v = _loaded(call, "x", source(call, "x", x))
    return nisa_old.reduce(call, op, v, axis, mask, dtype, False, keepdims)


def free_axes(x: Tensor) -> list[int]:
    return list(range(1, x.ndim))


def mean(x: Any, axis: Any, dtype: Any, mask: Any, keepdims: bool) -> Tensor:
    call = "nl.mean"
    v = source(call, "x", x)
    count = 1
    _, box = mask_box(mask, v.shape)
    for a in axes_of(call, axis, v.ndim):
        low, high = (0, v.shape[a]) if box is None else box[a]
        count *= high - low
    total = reduction("mean", "add", v, axis, float32, mask, keepdims)
    out = v.dtype if dtype is None else dtype_of(dtype, call)
    return scalars("mean", total, [("MULTIPLY", 1.0 / count, False)], out)


def var(x: Any, axis: Any, dtype: Any, mask: Any, keepdims: bool) -> Tensor:
    """BN_STATS of up to 512 elements at a time, joined by BN_AGGR."""
    call = "nl.var"
    v = source(call, "x", x)
    if axes_of(call, axis, v.ndim) != free_axes(v):
        fail(call, "axis", axis, f"all free axes {free_axes(v)}")
    some, box = mask_box(mask, v.shape)
    both = new((v.shape[0], 2), float32)
    if some:
        _bn_records(call_of("var"), v.view_ if box is None else crop(v, box), both.view_, box)
    found = both[:, 1:2]
    out = v.dtype if dtype is None else dtype_of(dtype, call)
    made = found if out.isa == "fp32" else cast(found, out)
    return made if not keepdims else made.reshape((v.shape[0],) + (1,) * (v.ndim - 1))


def _bn_records(api: Call, data: Any, both: Any, box: Any) -> None:
    """Mean and variance of each row into `both`, in the rows that a mask leaves."""
    rows = data.shape[0]
    width = data.size // rows
    flat = data.reshape([rows, width])
    pieces = -(-width // 512)
    records = new((rows, pieces * 6), float32)
    builder = begin()
    for n in range(pieces):
        part = flat[:, n * 512 : min(width, (n + 1) * 512)]
        builder.emit(api.id, "BN_STATS", "vector", part, records.view_[:, n * 6 : (n + 1) * 6])
    target = both if box is None else both[box[0][0] : box[0][1]]
    builder.emit(api.id, "BN_AGGR", "vector", records.view_, target)


def softmax(x: Any, axis: Any, dtype: Any, mask: Any) -> Tensor:
    """Negated maximum, exp with its sum, reciprocal, product."""
    call = "nl.softmax"
    v = source(call, "x", x)
    if axes_of(call, axis, v.ndim) != free_axes(v):
        fail(call, "axis", axis, f"all free axes {free_axes(v)}")
    out = v.dtype if dtype is None else dtype_of(dtype, call)
    builder = begin()
    api = call_of("softmax")
    some, box = mask_box(mask, v.shape)
    if not some:
        return new(v.shape, out)
    view = v.view_ if box is None else crop(v, box)
    rows = view.shape[0]
    top, total, scale = (new((rows, 1), float32) for _ in range(3))
    nisa.emit_tensor_reduce(
        builder, call, top.view_, view, "max", list(range(1, view.ndim)), True, api.id
    )
    powers = Tensor(builder.tensor("sbuf", list(view.shape), "fp32"))
    builder.activation(
        api.id,
        powers.view_,
        "EXP",
        view,
        bias=top.view_,
        reduce_result=total.view_,
        reduce_command="RESET_REDUCE",
    )
    builder.emit(api.id, "RECIPROCAL", "vector", total.view_, scale.view_)
    made = new(v.shape, out)
    target = made.view_ if box is None else crop(made, box)
    builder.emit(
        api.id,
        "TENSOR_SCALAR",
        "vector",
        powers.view_,
        target,
        "MULTIPLY",
        "BYPASS",
        scale.view_,
        None,
        False,
        False,
    )
    return made


def rms_norm(x: Any, w: Any, axis: Any, n: Any, epsilon: float, dtype: Any, mask: Any) -> Tensor:
    """Squares with their sum on Scalar, 1/sqrt, and the products on Vector."""
    call = "nl.rms_norm"
    v = source(call, "x", x)
    out = v.dtype if dtype is None else dtype_of(dtype, call)
    builder = begin()
    api = call_of("rms_norm")
    some, box = mask_box(mask, v.shape)
    if not some:
        return new(v.shape, out)
    view = v.view_ if box is None else crop(v, box)
    rows = view.shape[0]
    count = float(n) if n is not None else float(view.size // rows)
    squares = builder.tensor("sbuf", list(view.shape), "fp32")
    total, scale = new((rows, 1), float32), new((rows, 1), float32)
    builder.activation(
        api.id, squares, "SQUARE", view, reduce_result=total.view_, reduce_command="RESET_REDUCE"
    )
    builder.activation(
        api.id, scale.view_, "RSQRT", total.view_, scale=1.0 / count, bias=float(epsilon)
    )
    made = new(v.shape, out)
    target = made.view_ if box is None else crop(made, box)
    builder.emit(
        api.id,
        "TENSOR_SCALAR",
        "vector",
        view,
        target,
        "MULTIPLY",
        "BYPASS",
        scale.view_,
        None,
        False,
        False,
    )
    if w is None:
        return made
    weights = spread(_loaded(call, "w", source(call, "w", w)), v.shape)
    factor = weights.view_ if box is None else crop(weights, box)
    builder = begin()
    builder.emit(api.id, "TENSOR_TENSOR", "vector", target, factor, target, "MULTIPLY")
    return made


# Selection.


def predicate(call: str, condition: Tensor, shape: Sequence[int]) -> Tensor:
    """An integer tile that is true where the condition is."""
    made = spread(_loaded(call, "condition", condition), shape)
    if made.dtype.isa in ("uint8", "uint16", "uint32"):
        return made
    if made.dtype.kind in "iu":
        return Tensor(made.view_.retype("u" + made.dtype.isa))
    return to_sbuf(scalars("not_equal", made, [("NOT_EQUAL", 0.0, False)], uint8))


def where(condition: Any, x: Any, y: Any, dtype: Any, mask: Any) -> Any:
    call = "nl.where"
    if isinstance(condition, (bool, int)) and not isinstance(condition, Tensor):
        return x if condition else y
    if isinstance(condition, Mask):
        return _where_mask(call, condition, x, y, dtype, mask)
    cond = source(call, "condition", condition)
    shape: tuple[int, ...] = cond.shape
    given = []
    for operand, value in (("x", x), ("y", y)):
        if isinstance(value, Tensor):
            _loaded(call, operand, value)
            shape = broadcast_shape(call, shape, value.shape)
            given.append(value.dtype)
        elif not number(value):
            fail(call, operand, repr(value), "a tile or a number")
    out = dtype_of(dtype, call) if dtype is not None else given[0] if given else float32
    if dtype is None and len(given) == 2:
        out = promote(given[0], given[1])
    flags = predicate(call, cond, shape)
    if isinstance(x, Tensor):
        x = spread(x, shape)
        if x.memory == "psum" and flags.memory == "psum":
            flags = to_sbuf(flags)
    if isinstance(y, Tensor):
        y = spread(y, shape)
    api = SELECT

    def emit(builder: Any, d: Any, take: Any) -> None:
        p = take(flags)
        target = front(d)
        if isinstance(x, Tensor) and not isinstance(y, Tensor):
            if p.dtype in ("uint8", "uint16") and x.dtype.isa not in ("tf32", "int32", "uint32"):
                builder.emit(
                    api.id,
                    "SELECT_REDUCE",
                    "vector",
                    p,
                    take(x),
                    float(y),
                    target,
                    False,
                    "BYPASS",
                    None,
                    "IDLE",
                )
                return
        if isinstance(y, Tensor):
            builder.copy(api.id, target, take(y))
        else:
            builder.emit(api.id, "MEMSET", None, target, _constant(y, d.dtype))
        if isinstance(x, Tensor):
            kept = take(x)
            if kept.dtype != target.dtype:
                made = builder.tensor("sbuf", list(kept.shape), target.dtype)
                builder.copy(api.id, made, kept)
                kept = made
            builder.emit(api.id, "TENSOR_COPY_PREDICATED", "vector", kept, None, p, target, False)
        else:
            builder.emit(
                api.id, "TENSOR_COPY_PREDICATED", "vector", None, float(x), p, target, False
            )

    return result(shape, out, emit, mask=mask)


def _constant(value: Any, isa: str) -> Any:
    return int(value) if isa[0] in "iu" else float(value)


def _where_mask(call: str, condition: Mask, x: Any, y: Any, dtype: Any, mask: Any) -> Any:
    """A condition on indices: AFFINE_SELECT where it is one comparison."""
    term = condition.affine
    if term is None:
        fail(call, "condition", "several comparisons", "a tile, or one affine comparison")
    if isinstance(x, Tensor) and number(y):
        return nisa_old.select_affine(call, term, x, y, mask, dtype)
    if isinstance(y, Tensor) and number(x):
        return nisa_old.select_affine(call, -term - 1, y, x, mask, dtype)
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        flags = new(broadcast_shape(call, x.shape, y.shape), uint8)
        nisa.memset(flags, 1)
        chosen = nisa_old.select_affine(call, term, flags, 0.0)
        return where(chosen, x, y, dtype, mask)
    fail(call, "x", repr(x), "a tile for x or y")


# Matrix products.


def matmul(x: Any, y: Any, transpose_x: bool, mask: Any = None) -> Tensor:
    """x @ y, or x.T @ y: x is transposed on the Tensor engine when it must be."""
    call = "nl.matmul"
    a, b = source(call, "x", x), source(call, "y", y)
    if transpose_x:
        return nisa_old.nc_matmul(_moved(a), _moved(b), mask=mask)
    rows = a.shape[0]
    columns = a.size // rows
    if rows > 128 or columns > 128:
        fail(call, "x", list(a.shape), "at most [128, 128]")
    a = _moved(a)
    turned = Tensor(begin().tensor("psum", [columns, rows], a.dtype.isa), a.dtype)
    builder = begin()
    turn(builder, call_of("matmul").id, turned.view_, a.view_, "tensor")
    return nisa_old.nc_matmul(to_sbuf(turned), _moved(b), mask=mask)


def _moved(t: Tensor) -> Tensor:
    """The Tensor engine reads SBUF."""
    if t.memory == "hbm":
        fail("nl.matmul", "x", "hbm", "a tile in sbuf (load it first)")
    return to_sbuf(t) if t.memory == "psum" else t


def transpose(x: Any, dtype: Any, mask: Any) -> Tensor:
    v = _loaded("nl.transpose", "x", source("nl.transpose", "x", x))
    rows = v.shape[0]
    if v.memory == "psum" and (rows > 32 or v.size // rows > 32):
        v = to_sbuf(v)
    made = nisa_old.nc_transpose(v, mask=mask)
    return made if dtype is None else cast(made, dtype_of(dtype, "nl.transpose"))
