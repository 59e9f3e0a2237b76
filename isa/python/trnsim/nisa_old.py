"""nki.isa of the older generation: results are returned, `mask=` and `dtype=` are keywords.

The transitional style works too: with `dst=`, or with the destination first as the newer
generation has it, a call writes there at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from trnsim import enums, nisa
from trnsim.calls import (
    DONE,
    axes_of,
    check_bits,
    dma,
    integer,
    integers,
    later,
    match,
    memset as _memset,
    number,
    not_supported,
    same_memory,
    scalar,
    source,
    tile,
    to_sbuf,
    turn,
)
from trnsim.dtypes import DType, dtype_of, float32, int32, promote, uint32
from trnsim.enums import engine_of, mode_of, skips
from trnsim.errors import fail
from trnsim.index import ArrayIndex, Index, Mask
from trnsim.ops import BITWISE, activation_of, alu_of
from trnsim.tensor import Outside, Tensor, begin, crop, mask_box, result, whole

engine = enums.OLD.engine
dge_mode = enums.OLD.dge_mode
oob_mode = enums.OLD.oob_mode
reduce_cmd = enums.OLD.reduce_cmd
dma_engine = enums.OLD.dma_engine
nc_version = enums.nc_version
matmul_perf_mode = enums.matmul_perf_mode

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
sync_engine = engine.sync
unknown_engine = engine.unknown

get_nc_version = nisa.get_nc_version
get_nc_sub_version = nisa.get_nc_sub_version
VirtualRegister = nisa.VirtualRegister


def _type(call: str, dtype: Any, otherwise: DType) -> DType:
    return otherwise if dtype is None else dtype_of(dtype, call)


def _dst_first(lead: int, first: str) -> Callable[[Any], Any]:
    """Lets a call have its destination in front, as the newer generation has it.

    lead: how many tiles the older form begins with; first: the name of its first parameter.
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def either(*args: Any, **kwargs: Any) -> Any:
            if args and isinstance(args[0], Tensor):
                if first in kwargs or (len(args) > lead and isinstance(args[lead], Tensor)):
                    kwargs["dst"], args = args[0], args[1:]
            kwargs.pop("name", None)
            return function(*args, **kwargs)

        return either

    return decorate


def _operand(call: str, operand: str, what: Any) -> Tensor:
    """A tile; one that reaches out of bounds is cut by the mask later."""
    if not isinstance(what, Tensor):
        fail(call, operand, repr(what), "a tile")
    if type(what._late) is not Outside:
        tile(call, operand, what)
    return what


@_dst_first(2, "stationary")
def nc_matmul(
    stationary: Tensor,
    moving: Tensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: Sequence[int] = (),
    tile_size: Sequence[int] = (),
    perf_mode: Any = None,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
    accumulate: bool | None = None,
) -> Any:
    """stationary.T @ moving, in PSUM."""
    call = "nisa.nc_matmul"
    if dst is not None and mask is None:
        nisa.nc_matmul(
            dst,
            stationary,
            moving,
            is_stationary_onezero,
            is_moving_onezero,
            is_transpose,
            accumulate,
            tile_position,
            tile_size,
            perf_mode,
        )
        return dst
    s, m = source(call, "stationary", stationary), source(call, "moving", moving)
    # Values (of a transpose, say) have no memory that the kernel chose; the compiler moves them.
    s = to_sbuf(s) if s.memory == "psum" else s
    m = to_sbuf(m) if m.memory == "psum" else m
    double = perf_mode is not None and nisa.double_row(call, perf_mode)
    nisa.check_matmul(call, s, m, double)
    place = nisa.pe_tile(call, tile_position, tile_size) if tile_size or tile_position else None
    rows = s.size // s.shape[0] // (2 if double else 1)
    shape = (rows,) + tuple(m.shape[2:] if double else m.shape[1:])
    box = None
    if mask is not None:
        # The mask is over [K, M, N]-like indices of the operands; only N can be cut for sure.
        _, box = mask_box(mask, m.shape)
    view_m = (lambda: m.view_) if box is None else (lambda: crop(m, box))
    view_s = (lambda: s.view_) if box is None else (lambda: crop(s, [box[0]] + [(0, 1 << 30)]))

    def emit(builder: Any, d: Any, take: Any, accumulate: Any = False) -> None:
        moving_view = view_m()
        if d.size != rows * (moving_view.size // moving_view.shape[0]) and box is not None:
            d = d[:, box[-1][0] : box[-1][1]]
        builder.matmul(
            nisa.NC_MATMUL.id,
            d,
            view_s(),
            moving_view,
            accumulate=accumulate,
            transpose=bool(is_transpose),
            one_zero=bool(is_stationary_onezero or is_moving_onezero),
            double_row=double,
            tile=place,
        )

    out = float32
    if is_transpose:
        out = m.dtype
    return result(
        shape,
        _type(call, dtype, out) if dtype is not None else out,
        emit,
        memory="psum",
        memories=("psum",),
        dst=dst,
        accumulate=lambda builder, d, take: emit(builder, d, take, None),
    )


@_dst_first(1, "data")
def nc_transpose(
    data: Tensor,
    mask: Any = None,
    dtype: Any = None,
    engine: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """data.T: in PSUM from the Tensor engine, in SBUF from Vector."""
    call = "nisa.nc_transpose"
    v = _operand(call, "data", data)
    if isinstance(dst, Tensor) and engine is None and dst.memory == "psum" and v.memory == "sbuf":
        engine = "tensor"
    chosen = nisa.transpose_engine(call, v, engine)
    shape = (v.size // v.shape[0], v.shape[0])
    some, box = mask_box(mask, v.shape)

    def emit(builder: Any, d: Any, take: Any) -> None:
        data_view = v.view_
        if box is not None:
            data_view = crop(v, box)
            if len(box) == 2:
                d = d[box[1][0] : box[1][1], box[0][0] : box[0][1]]
        turn(builder, nisa.NC_TRANSPOSE.id, d, data_view, chosen)

    memory = "psum" if chosen == "tensor" else "sbuf"
    return result(
        shape,
        v.dtype,
        emit if some else (lambda *_: None),
        memory=memory,
        memories=("psum",) if chosen == "tensor" else ("sbuf", "psum"),
        fixed=True,
        dst=dst,
    )


@_dst_first(0, "op")
def activation(
    op: Any,
    data: Any,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Tensor | None = None,
    reduce_cmd: Any = None,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """op(data * scale + bias), and optionally its sum."""
    return _activation(
        "nisa.activation",
        op,
        data,
        bias,
        scale,
        reduce_op,
        reduce_res,
        reduce_cmd,
        mask,
        dtype,
        dst,
    )


def _activation(
    call: str,
    op: Any,
    data: Any,
    bias: Any,
    scale: Any,
    reduce_op: Any,
    reduce_res: Any,
    reduce_cmd: Any,
    mask: Any,
    dtype: Any,
    dst: Tensor | None,
) -> Any:
    v = _operand(call, "data", data)
    function = activation_of(call, "op", op)
    rows = v.shape[0]
    command, res = nisa.activation_reduction(call, reduce_op, reduce_res, reduce_cmd)
    if type(scale) in (int, float) and scale == 1:
        scale = None
    b = bias if bias is None or number(bias) else source(call, "bias", bias)
    if b is not None:
        scalar(call, "bias", b, rows)
    if isinstance(scale, Tensor):
        scalar(call, "scale", scale, rows)

    def emit(builder: Any, d: Any, take: Any) -> None:
        result_view = res
        if reduce_res is not None and take is not whole:
            result_view = take(reduce_res)
        builder.activation(
            nisa.ACTIVATION.id,
            d,
            function,
            take(v),
            bias=take(b) if isinstance(b, Tensor) else None if b is None else float(b),
            scale=take(scale)
            if isinstance(scale, Tensor)
            else scale
            if scale is None
            else float(scale),
            reduce_result=result_view,
            reduce_command=command,
        )

    return result(v.shape, _type(call, dtype, v.dtype), emit, mask=mask, dst=dst)


@_dst_first(0, "op")
def activation_reduce(
    op: Any,
    data: Any,
    reduce_op: Any = None,
    reduce_res: Tensor | None = None,
    bias: Any = None,
    scale: Any = 1.0,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """activation() that starts its sum anew and writes it."""
    call = "nisa.activation_reduce"
    if reduce_res is None:
        fail(call, "reduce_res", None, "a tile of one value per partition")
    return _activation(
        call, op, data, bias, scale, reduce_op, reduce_res, "reset_reduce", mask, dtype, dst
    )


@_dst_first(0, "op")
def tensor_reduce(
    op: Any,
    data: Any,
    axis: Any,
    mask: Any = None,
    dtype: Any = None,
    negate: bool = False,
    keepdims: bool = False,
    dst: Tensor | None = None,
) -> Any:
    """data reduced over free axes."""
    return reduce("nisa.tensor_reduce", op, data, axis, mask, dtype, negate, keepdims, dst)


def reduce(
    call: str,
    op: Any,
    data: Any,
    axis: Any,
    mask: Any,
    dtype: Any,
    negate: bool,
    keepdims: bool,
    dst: Tensor | None = None,
) -> Tensor:
    v = _operand(call, "data", data)
    if axis is None:
        fail(call, "axis", None, "free axes")
    axes = axes_of(call, axis, v.ndim)
    shape = nisa.reduced_shape(v.shape, axes, keepdims)
    some, box = mask_box(mask, v.shape)

    def emit(builder: Any, d: Any, take: Any) -> None:
        data_view = v.view_ if box is None else crop(v, box)
        if box is not None and (box[0][0] or box[0][1] < v.shape[0]):
            d = d[box[0][0] : box[0][1]]
        target = d
        if target.size != data_view.size // _product(data_view.shape, axes):
            kept = [b for n, b in enumerate(box or []) if n not in {a % v.ndim for a in axes}]
            if len(kept) == target.ndim:
                target = target[tuple([slice(0, None)] + [slice(*b) for b in kept[1:]])]
        nisa.emit_tensor_reduce(builder, call, target, data_view, op, axes, negate)

    return result(shape, _type(call, dtype, v.dtype), emit if some else (lambda *_: None), dst=dst)


def _product(shape: Sequence[int], axes: Sequence[int]) -> int:
    count = 1
    for a in axes:
        count *= shape[a]
    return count


@_dst_first(0, "op")
def tensor_partition_reduce(
    op: Any,
    data: Any,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """data reduced across partitions: [1, N]."""
    call = "nisa.tensor_partition_reduce"
    v = _operand(call, "data", data)
    alu = alu_of(call, "op", op)
    return result(
        (1,) + v.shape[1:],
        _type(call, dtype, v.dtype),
        lambda builder, d, take: builder.emit(
            nisa.TENSOR_PARTITION_REDUCE.id, "TENSOR_PARTITION_REDUCE", "gpsimd", take(v), d, alu
        ),
        memories=("sbuf",),
        dst=dst,
    )


@_dst_first(2, "data1")
def tensor_tensor(
    data1: Tensor,
    data2: Tensor,
    op: Any,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """data1 op data2."""
    return binary("nisa.tensor_tensor", data1, data2, op, dtype, mask, engine, dst)


def binary(
    call: str,
    data1: Any,
    data2: Any,
    op: Any,
    dtype: Any,
    mask: Any,
    engine: Any = None,
    dst: Tensor | None = None,
) -> Tensor:
    a = _operand(call, "data1", data1)
    b = _operand(call, "data2", data2)
    alu = alu_of(call, "op", op)
    match(call, b, "data2", a, "data1")
    same_memory(call, a, "data1", b, "data2")
    if alu in BITWISE:
        check_bits(call, alu, a, b)
    chosen = engine_of(call, engine, ("vector", "gpsimd"))

    def emit(builder: Any, d: Any, take: Any) -> None:
        where = chosen or nisa.elementwise_engine(call, alu, None, a, b, d.memory)
        builder.emit(nisa.TENSOR_TENSOR.id, "TENSOR_TENSOR", where, take(a), take(b), d, alu)

    out = dtype_of(dtype, call) if dtype is not None else promote(a.dtype, b.dtype)
    memories = ("sbuf",) if chosen == "gpsimd" or alu == "POWER" else ("sbuf", "psum")
    return result(a.shape, out, emit, memories=memories, mask=mask, dst=dst)


@_dst_first(1, "data")
def tensor_scalar(
    data: Any,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """(data op0 operand0) op1 operand1."""
    call = "nisa.tensor_scalar"
    return with_scalars(
        call, data, op0, operand0, reverse0, op1, operand1, reverse1, dtype, mask, engine, dst
    )


def with_scalars(
    call: str,
    data: Any,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = None,
    dst: Tensor | None = None,
) -> Tensor:
    v = _operand(call, "data", data)
    rows = v.shape[0]
    for operand, given in (("operand0", operand0), ("operand1", operand1)):
        if given is not None:
            scalar(call, operand, given, rows)

    def emit(builder: Any, d: Any, take: Any) -> None:
        nisa.emit_tensor_scalar(
            builder,
            call,
            d,
            take(v),
            v,
            op0,
            _cut(operand0, take),
            reverse0,
            op1,
            _cut(operand1, take),
            reverse1,
            engine,
        )

    return result(v.shape, _type(call, dtype, v.dtype), emit, mask=mask, dst=dst)


def _cut(operand: Any, take: Any) -> Any:
    return Tensor(take(operand), operand._dtype) if isinstance(operand, Tensor) else operand


@_dst_first(1, "data")
def tensor_scalar_reduce(
    data: Any,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Tensor | None = None,
    reverse0: bool = False,
    dtype: Any = None,
    mask: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """data op0 operand0, and its reduction over the free axis into reduce_res."""
    call = "nisa.tensor_scalar_reduce"
    v = _operand(call, "data", data)
    scalar(call, "operand0", operand0, v.shape[0])

    def emit(builder: Any, d: Any, take: Any) -> None:
        nisa.emit_tensor_scalar_reduce(
            builder,
            call,
            d,
            take(v),
            op0,
            _cut(operand0, take),
            reduce_op,
            _cut(reduce_res, take),
            reverse0,
        )

    return result(v.shape, _type(call, dtype, v.dtype), emit, mask=mask, dst=dst)


def tensor_scalar_cumulative(dst: Tensor, src: Tensor, *args: Any, **kwargs: Any) -> Any:
    """As in the newer generation."""
    nisa.tensor_scalar_cumulative(dst, src, *args, **kwargs)
    return dst


@_dst_first(1, "data")
def scalar_tensor_tensor(
    data: Any,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """(data op0 operand0) op1 operand1, where operand1 is a tile."""
    call = "nisa.scalar_tensor_tensor"
    v = _operand(call, "data", data)
    if not isinstance(operand1, Tensor) or operand1.size == operand1.shape[0] != v.size:
        return with_scalars(
            call, data, op0, operand0, reverse0, op1, operand1, reverse1, dtype, mask, None, dst
        )
    w = _operand(call, "operand1", operand1)
    match(call, w, "operand1", v, "data")
    same_memory(call, v, "data", w, "operand1")
    scalar(call, "operand0", operand0, v.shape[0])

    def emit(builder: Any, d: Any, take: Any) -> None:
        nisa.emit_stt(
            builder, call, d, take(v), take(w), op0, _cut(operand0, take), op1, reverse0, reverse1
        )

    out = dtype_of(dtype, call) if dtype is not None else promote(v.dtype, w.dtype)
    return result(v.shape, out, emit, mask=mask, dst=dst)


def tensor_tensor_scan(
    *args: Any,
    data0: Any = None,
    data1: Any = None,
    initial: Any = None,
    op0: Any = None,
    op1: Any = None,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """result[i] = (data0[i] op0 result[i - 1]) op1 data1[i]."""
    call = "nisa.tensor_tensor_scan"
    given = list(args)
    if len(given) > 3 and isinstance(given[2], Tensor) and given[2].shape == given[1].shape:
        dst = given.pop(0)
    fill = [data0, data1, initial, op0, op1, reverse0, reverse1]
    fill[: len(given)] = given
    data0, data1, initial, op0, op1, reverse0, reverse1 = fill
    a = _operand(call, "data0", data0)
    b = _operand(call, "data1", data1)
    match(call, b, "data1", a, "data0")
    same_memory(call, a, "data0", b, "data1")
    scalar(call, "initial", initial, a.shape[0])

    def emit(builder: Any, d: Any, take: Any) -> None:
        nisa.emit_scan(
            builder, call, d, take(a), take(b), _cut(initial, take), op0, op1, reverse0, reverse1
        )

    out = dtype_of(dtype, call) if dtype is not None else promote(a.dtype, b.dtype)
    return result(a.shape, out, emit, mask=mask, dst=dst)


@_dst_first(1, "src")
def tensor_copy(
    src: Any,
    mask: Any = None,
    dtype: Any = None,
    engine: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """A copy on chip, of another type if asked."""
    call = "nisa.tensor_copy"
    v = _operand(call, "src", src)
    chosen = engine_of(call, engine, ("vector", "scalar", "gpsimd"))
    return result(
        v.shape,
        _type(call, dtype, v.dtype),
        lambda builder, d, take: builder.copy(nisa.TENSOR_COPY.id, d, take(v), chosen),
        memories=("sbuf",) if chosen == "gpsimd" else ("sbuf", "psum"),
        mask=mask,
        dst=dst,
    )


@_dst_first(1, "src")
def tensor_copy_dynamic_src(
    src: Any,
    mask: Any = None,
    dtype: Any = None,
    engine: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """A copy from a place that a register gives."""
    return tensor_copy(src, mask=mask, dtype=dtype, engine=engine, dst=dst)


def tensor_copy_dynamic_dst(
    *,
    dst: Tensor,
    src: Any,
    mask: Any = None,
    dtype: Any = None,
    engine: Any = None,
    name: Any = None,
) -> Any:
    """A copy to a place that a register gives."""
    return tensor_copy(src, mask=mask, dtype=dtype, engine=engine, dst=dst)


def tensor_copy_predicated(
    *args: Any,
    src: Any = None,
    dst: Tensor | None = None,
    predicate: Any = None,
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
    name: Any = None,
) -> Any:
    """dst = src where the predicate is true."""
    if args:
        fill = [dst, src, predicate]
        fill[: len(args)] = args
        dst, src, predicate = fill
    call = "nisa.tensor_copy_predicated"
    target = source(call, "dst", dst)
    some, box = mask_box(mask, target.shape)
    if some and box is not None:
        cut = lambda t: Tensor(crop(t, box), t._dtype) if isinstance(t, Tensor) else t
        nisa.tensor_copy_predicated(cut(target), cut(src), cut(predicate), reverse_pred)
    elif some:
        nisa.tensor_copy_predicated(target, src, predicate, reverse_pred)
    return target


@_dst_first(1, "data")
def reciprocal(
    data: Any,
    dtype: Any = None,
    mask: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """1 / data."""
    call = "nisa.reciprocal"
    v = _operand(call, "data", data)
    return result(
        v.shape,
        _type(call, dtype, v.dtype),
        lambda builder, d, take: builder.emit(
            nisa.RECIPROCAL.id, "RECIPROCAL", "vector", take(v), d
        ),
        mask=mask,
        dst=dst,
    )


def cut_index(expression: Index, box: Sequence[tuple[int, int]]) -> Index:
    """The part of an index expression that a mask leaves."""
    steps = (0,) * (len(box) - len(expression.steps)) + expression.steps
    start = expression.base + sum(step * low for step, (low, _) in zip(steps, box))
    return Index(tuple([high - low for low, high in box]), start, steps)


def _no_mask(call: str, mask: Any, shape: Sequence[int]) -> None:
    some, box = mask_box(mask, shape)
    if not some or box is not None:
        fail(call, "mask", "a mask that leaves a part", "none: the instruction takes whole tiles")


def pattern_of(call: str, operand: str, expression: Any, shape: Sequence[int]) -> Any:
    """An index expression over [partition, free ...] as an index pattern."""
    if isinstance(expression, ArrayIndex) or not isinstance(expression, Index):
        fail(call, operand, expression, "an affine expression of nl.arange")
    rank = len(shape)
    steps = (0,) * (rank - len(expression.steps)) + expression.steps
    free = [(int(steps[d]), int(shape[d])) for d in range(rank - 1, 0, -1)]
    merged: list[tuple[int, int]] = []
    for step, size in free:
        if merged and merged[-1][0] * merged[-1][1] == step:
            merged[-1] = (merged[-1][0], merged[-1][1] * size)
        elif size > 1 or not merged:
            merged.append((step, size))
    if len(merged) > 4:
        fail(call, operand, list(shape), "at most four free dimensions")
    return int(expression.base), int(steps[0]), merged


def iota(
    expr: Any,
    *more: Any,
    dtype: Any = None,
    mask: Any = None,
    dst: Tensor | None = None,
    **kwargs: Any,
) -> Any:
    """The numbers of an index expression, as a tile."""
    call = "nisa.iota"
    if isinstance(expr, Tensor):
        nisa.iota(expr, *more, **kwargs)
        return expr
    if dst is not None and not isinstance(expr, Index):
        nisa.iota(dst, expr, *more, **kwargs)
        return dst
    out = _type(call, more[0] if more else dtype, int32)
    if number(expr):  # of a loop, or nl.program_id()
        expr = Index((1, 1), int(expr), (0, 0))
    if not isinstance(expr, (Index, ArrayIndex)):
        fail(call, "expr", repr(expr), "an index expression")
    _, box = mask_box(mask, expr.shape)
    kept = expr if box is None else cut_index(expr, box)
    pattern = pattern_of(call, "expr", kept, kept.shape)
    return result(
        expr.shape,
        out,
        lambda builder, d, take: builder.emit(nisa.IOTA.id, "IOTA", "gpsimd", d, pattern),
        memories=("sbuf",),
        mask=mask,
        dst=dst,
    )


def dropout(
    data: Any,
    prob: Any,
    *more: Any,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
    name: Any = None,
) -> Any:
    """data with elements zeroed at random."""
    call = "nisa.dropout"
    if more:
        dst, data, prob = data, prob, more[0]
    v = _operand(call, "data", data)
    scalar(call, "prob", prob, v.shape[0])
    return result(
        v.shape,
        _type(call, dtype, v.dtype),
        lambda builder, d, take: builder.emit(
            nisa.DROPOUT.id,
            "DROPOUT",
            "vector",
            take(v),
            d,
            scalar(call, "prob", _cut(prob, take), 0),
        ),
        mask=mask,
        dst=dst,
    )


def affine_select(
    pred: Any,
    on_true_tile: Any = None,
    on_false_value: Any = None,
    *more: Any,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
    **kwargs: Any,
) -> Any:
    """on_true_tile where a comparison of index expressions holds, else a constant."""
    call = "nisa.affine_select"
    if isinstance(pred, Tensor) or not isinstance(pred, (Mask, bool)):
        if dst is None:
            dst, pattern, more = pred, on_true_tile, (on_false_value,) + more
        else:
            pattern, more = pred, (on_true_tile, on_false_value) + more
        if on_true_tile is not None and pattern is not on_true_tile:
            kwargs.setdefault("on_true_tile", on_true_tile)
        nisa.affine_select(dst, pattern, *[m for m in more if m is not None], **kwargs)
        return dst
    v = _operand(call, "on_true_tile", on_true_tile)
    if not number(on_false_value):
        fail(call, "on_false_value", repr(on_false_value), "a number")
    if isinstance(pred, bool):
        pred = Mask([Index((1,) * v.ndim, 0 if pred else -1, (0,) * v.ndim)])
    term = pred.affine
    if term is None:
        fail(call, "pred", "several comparisons", "one comparison of affine index expressions")
    return select_affine(call, term, v, on_false_value, mask, dtype, dst)


def select_affine(
    call: str,
    term: Index,
    v: Tensor,
    on_false_value: Any,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
) -> Tensor:
    """v where an affine expression is at least 0."""
    base, channel, steps = pattern_of(call, "pred", term, v.shape)
    some, box = mask_box(mask, v.shape)

    def emit(builder: Any, d: Any, take: Any) -> None:
        source_view = take(v)
        pattern = (base, channel, steps)
        if take is not whole and box is not None:
            cut = cut_index(term, box)
            pattern = pattern_of(call, "pred", cut, cut.shape)
        builder.emit(
            nisa.AFFINE_SELECT.id,
            "AFFINE_SELECT",
            "gpsimd",
            source_view,
            d,
            pattern,
            "GREATER_EQUAL",
            float(on_false_value),
        )

    if v.memory == "psum":
        v = to_sbuf(v)
    return result(
        v.shape, _type(call, dtype, v.dtype), emit, memories=("sbuf",), mask=mask, dst=dst
    )


def range_select(
    *args: Any,
    on_true_tile: Any = None,
    comp_op0: Any = None,
    comp_op1: Any = None,
    bound0: Any = None,
    bound1: Any = None,
    reduce_cmd: Any = "reset_reduce",
    reduce_res: Tensor | None = None,
    reduce_op: Any = "max",
    range_start: int = 0,
    on_false_value: Any = -3.4028235e38,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
    **kwargs: Any,
) -> Any:
    """on_true_tile where its index is within two bounds, else the lowest fp32."""
    call = "nisa.range_select"
    if args:
        nisa.range_select(*args, **kwargs)
        return args[0]
    v = _operand(call, "on_true_tile", on_true_tile)

    def emit(builder: Any, d: Any, take: Any) -> None:
        nisa.emit_range_select(
            builder,
            call,
            d,
            take(v),
            comp_op0,
            comp_op1,
            _cut(bound0, take),
            _cut(bound1, take),
            reduce_cmd,
            _cut(reduce_res, take),
            reduce_op,
            range_start,
            on_false_value,
        )

    return result(v.shape, _type(call, dtype, v.dtype), emit, mask=mask, dst=dst)


def select_reduce(
    *args: Any, dst: Tensor | None = None, mask: Any = None, dtype: Any = None, **kwargs: Any
) -> Any:
    """As in the newer generation, with a mask."""
    target = args[0] if args else dst
    call = "nisa.select_reduce"
    some, box = mask_box(mask, source(call, "dst", target).shape)
    if not some:
        return target
    given = dict(kwargs)
    rest = list(args[1:]) if args else []
    if box is not None:
        cut = lambda t: Tensor(crop(t, box), t._dtype) if isinstance(t, Tensor) else t
        given = {name: cut(value) for name, value in given.items()}
        rest = [cut(value) for value in rest]
        nisa.select_reduce(cut(target), *rest, **given)
    else:
        nisa.select_reduce(target, *rest, **given)
    return target


def sequence_bounds(*args: Any, segment_ids: Any = None, dst: Any = None, name: Any = None) -> Any:
    """Start and end of the segment of each element: (1, 2, N)."""
    call = "nisa.sequence_bounds"
    given = list(args)
    if len(given) == 2:
        dst, segment_ids = given
    elif given:
        segment_ids = given[0]
    v = _operand(call, "segment_ids", segment_ids)
    return result(
        (v.shape[0], 2) + v.shape[1:],
        v.dtype,
        lambda builder, d, take: builder.emit(
            nisa.SEQUENCE_BOUNDS.id, "SEQUENCE_BOUNDS", "gpsimd", take(v), d
        ),
        memories=("sbuf",),
        dst=dst,
    )


def memset(
    shape: Any = None,
    value: Any = None,
    dtype: Any = None,
    *,
    mask: Any = None,
    engine: Any = None,
    dst: Tensor | None = None,
    name: Any = None,
) -> Any:
    """A tile of a constant; with a tile first, that tile is filled."""
    call = "nisa.memset"
    if isinstance(shape, Tensor):
        dst = shape
    if not number(value):
        fail(call, "value", repr(value), "a number")
    chosen = engine_of(call, engine, ("vector", "gpsimd"))
    if dst is not None:
        some, box = mask_box(mask, dst.shape)
        if some:
            builder = begin()
            view = tile(call, "dst", dst) if box is None else crop(dst, box)
            _memset(builder, nisa.MEMSET, view, value, chosen)
        return dst
    return result(
        tuple(integers(call, "shape", shape)),
        _type(call, dtype, float32),
        lambda builder, d, take: _memset(builder, nisa.MEMSET, d, value, chosen),
        memories=("sbuf",) if chosen == "gpsimd" else ("sbuf", "psum"),
        mask=mask,
    )


def _simple(name: str, mnemonic: str, call: Any, columns: int | None) -> Any:
    """An instruction of one operand whose result has a fixed number of columns."""

    def function(
        *args: Any,
        mask: Any = None,
        dtype: Any = None,
        dst: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        given = [a for a in args if isinstance(a, Tensor)]
        data = kwargs.get("data", kwargs.get("src"))
        if len(given) == 2:
            dst, data = given
        elif given:
            data = given[0]
        full = f"nisa.{name}"
        v = _operand(full, "data", data)
        some, box = mask_box(mask, v.shape)
        return result(
            (v.shape[0], columns) if columns else v.shape,
            _type(full, dtype, float32 if name.startswith("bn") else v.dtype),
            lambda builder, d, take: builder.emit(
                call.id,
                mnemonic,
                "vector",
                v.view_ if box is None else crop(v, box),
                d if box is None else d[box[0][0] : box[0][1]],
            ),
            dst=dst,
        )

    function.__name__ = name
    return function


bn_stats = _simple("bn_stats", "BN_STATS", nisa.BN_STATS, 6)
bn_aggr = _simple("bn_aggr", "BN_AGGR", nisa.BN_AGGR, 2)
max8 = _simple("max8", "MAX8", nisa.MAX8, 8)


@_dst_first(2, "data")
def nc_find_index8(
    data: Any,
    vals: Any,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """The first index of each of eight values."""
    call = "nisa.nc_find_index8"
    v, w = _operand(call, "data", data), _operand(call, "vals", vals)
    _no_mask(call, mask, v.shape)
    return result(
        (v.shape[0], 8),
        _type(call, dtype, uint32),
        lambda builder, d, take: builder.emit(
            nisa.NC_FIND_INDEX8.id, "NC_FIND_INDEX8", "vector", v.view_, w.view_, d
        ),
        dst=dst,
    )


@_dst_first(2, "data")
def nc_match_replace8(
    data: Any,
    vals: Any,
    imm: Any,
    dst_idx: Tensor | None = None,
    mask: Any = None,
    dtype: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """data with the first occurrence of each of eight values replaced."""
    call = "nisa.nc_match_replace8"
    if not number(imm):
        fail(call, "imm", repr(imm), "a number")
    v, w = _operand(call, "data", data), _operand(call, "vals", vals)
    _no_mask(call, mask, v.shape)
    where = None if dst_idx is None else source(call, "dst_idx", dst_idx)
    return result(
        v.shape,
        _type(call, dtype, v.dtype),
        lambda builder, d, take: builder.emit(
            nisa.NC_MATCH_REPLACE8.id,
            "NC_MATCH_REPLACE8",
            "vector",
            v.view_,
            w.view_,
            d,
            None if where is None else where.view_,
            float(imm),
        ),
        dst=dst,
    )


def nc_stream_shuffle(
    src: Any = None,
    dst: Any = None,
    shuffle_mask: Any = None,
    *,
    dtype: Any = None,
    mask: Any = None,
    name: Any = None,
) -> Any:
    """Note the order of this generation: src, dst."""
    _no_mask("nisa.nc_stream_shuffle", mask, source("nisa.nc_stream_shuffle", "dst", dst).shape)
    nisa.nc_stream_shuffle(dst, src, shuffle_mask)
    return dst


@_dst_first(2, "src_buffer")
def local_gather(
    src_buffer: Any,
    index: Any,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    mask: Any = None,
    dst: Tensor | None = None,
) -> Any:
    """src_buffer gathered by index within each group of 16 partitions."""
    call = "nisa.local_gather"
    v, i = _operand(call, "src_buffer", src_buffer), _operand(call, "index", index)
    _no_mask(call, mask, v.shape)
    per = integer(call, "num_elem_per_idx", num_elem_per_idx)
    if per not in (1, 2, 4, 8, 16, 32):
        fail(call, "num_elem_per_idx", per, "1, 2, 4, 8, 16 or 32")
    count = i.size // i.shape[0] * 16
    if num_valid_indices is not None:
        count = integer(call, "num_valid_indices", num_valid_indices, 1)
    shape = (v.shape[0], count) if per == 1 else (v.shape[0], count, per)
    return result(
        shape,
        v.dtype,
        lambda builder, d, take: builder.emit(
            nisa.LOCAL_GATHER.id, "LOCAL_GATHER", "gpsimd", v.view_, i.view_, d, per, count
        ),
        memories=("sbuf",),
        fixed=True,
        dst=dst,
    )


@_dst_first(2, "data")
def nc_n_gather(data: Any, indices: Any, dst: Tensor | None = None) -> Any:
    """data gathered by index within each partition."""
    call = "nisa.nc_n_gather"
    v, i = _operand(call, "data", data), _operand(call, "indices", indices)
    return result(
        i.shape,
        v.dtype,
        lambda builder, d, take: builder.emit(
            nisa.NC_N_GATHER.id, "NC_N_GATHER", "gpsimd", v.view_, i.view_, d
        ),
        memories=("sbuf",),
        fixed=True,
        dst=dst,
    )


def dma_copy(
    *args: Any,
    dst: Any = None,
    src: Any = None,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = None,
    mode: Any = None,
    dge_mode: Any = None,
    engine: Any = None,
    name: Any = None,
) -> Any:
    """dst = src between HBM and SBUF."""
    call = "nisa.dma_copy"
    if args:
        fill = [dst, src]
        fill[: len(args)] = args
        dst, src = fill
    source(call, "dst", dst), source(call, "src", src)
    builder = begin()
    nisa.check_dma(call, src, dst)
    some, box = mask_box(mask, dst.shape)
    if not some:
        return DONE
    descriptor = mode_of(call, dge_mode)
    if dst_rmw_op is not None:
        if alu_of(call, "dst_rmw_op", dst_rmw_op) != "ADD":
            fail(call, "dst_rmw_op", dst_rmw_op, "add")
        nisa.emit_dma_add(builder, call, nisa.DMA_COPY, dst, [dst, src], descriptor)
        return DONE
    take = whole if box is None else (lambda t: crop(t, box))
    dma(
        builder,
        nisa.DMA_COPY,
        dst,
        src,
        crop_dst=take,
        crop_src=take,
        mode=descriptor,
        engine=engine_of(call, engine),
        skip=skips(call, oob_mode if oob_mode is not None else mode),
    )
    return DONE


def dma_transpose(
    *args: Any,
    src: Any = None,
    axes: Any = None,
    mask: Any = None,
    dtype: Any = None,
    dge_mode: Any = None,
    dst: Tensor | None = None,
    name: Any = None,
) -> Any:
    """src with its first and last dimension swapped, in SBUF."""
    call = "nisa.dma_transpose"
    given = [a for a in args if isinstance(a, Tensor)]
    if len(given) == 2:
        dst, src = given
    elif given:
        src = given[0]
    axes = next((a for a in args if isinstance(a, (tuple, list))), axes)
    v = source(call, "src", src)
    shape = nisa.transposed_shape(call, v, axes)
    some, box = mask_box(mask, v.shape)
    mode = mode_of(call, dge_mode)

    def emit(builder: Any, d: Any, take: Any) -> None:
        cut = whole
        if box is not None:
            cut = lambda t: crop(t, box)
            if len(box) == 2:
                d = d[box[1][0] : box[1][1], box[0][0] : box[0][1]]
        nisa.emit_dma_transpose(builder, call, d, v, cut, mode)

    return result(
        shape,
        v.dtype if dtype is None else dtype_of(dtype, call),
        emit if some else (lambda *_: None),
        memories=("sbuf",),
        fixed=True,
        dst=dst,
    )


dma_compute = nisa.dma_compute
core_barrier = nisa.core_barrier
sendrecv = nisa.sendrecv
register_alloc = nisa.register_alloc
register_move = nisa.register_move
register_load = nisa.register_load
register_store = nisa.register_store
nonzero_with_count = nisa.nonzero_with_count
topk = nisa.topk
rng = nisa.rng
set_rng_seed = nisa.set_rng_seed
rand_set_state = nisa.rand_set_state
rand_get_state = nisa.rand_get_state

builtin_custom_op = not_supported(
    "nisa.builtin_custom_op", "GpSimd code of a kernel's own has no published cost"
)
activate2 = nisa.activate2
exponential = nisa.exponential
nc_matmul_mx = nisa.nc_matmul_mx
quantize_mx = nisa.quantize_mx
rand2 = nisa.rand2
