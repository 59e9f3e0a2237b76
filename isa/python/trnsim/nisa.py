"""nki.isa, dst-first: each function checks what the API says and emits the instruction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trnsim import enums
from trnsim.calls import (
    DONE,
    Call,
    Instruction,
    axes_of,
    check_bits,
    dma,
    front,
    integer,
    integers,
    later,
    match,
    memset as _memset,
    number,
    same_memory,
    scalar,
    source,
    tile,
    turn,
)
from trnsim.enums import command_of, engine_of, mode_of, skips
from trnsim.errors import fail
from trnsim.ops import BITWISE, activation_of, alu_of
from trnsim.session import active, current
from trnsim.tensor import Crop, Gathered, Register, Tensor, Zeroed, begin, known_value, whole

if TYPE_CHECKING:
    from trnsim._frontend import Builder, View

engine = enums.NEW.engine
dge_mode = enums.NEW.dge_mode
oob_mode = enums.NEW.oob_mode
reduce_cmd = enums.NEW.reduce_cmd
dma_engine = enums.NEW.dma_engine
nc_version = enums.nc_version
matmul_perf_mode = enums.matmul_perf_mode
VirtualRegister = Register

tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
sync_engine = engine.sync
unknown_engine = engine.unknown

_ELEMENTWISE = ("vector", "gpsimd")
_COPYING = ("vector", "scalar", "gpsimd")


def get_nc_version() -> Any:
    """The target's generation."""
    now = active()
    return nc_version.gen2 if now is not None and now.target == "trn1" else nc_version.gen3


def get_nc_sub_version() -> int:
    return 0


# Matrix products and transposes.

NC_MATMUL = Call(
    "nisa.nc_matmul",
    src="moving",
    dst="dst",
    stationary="stationary",
    mode="perf_mode",
    tile="tile_position",
)


def check_matmul(call: str, stationary: Tensor, moving: Tensor, double: bool) -> None:
    """Sizes and types of a product; the builder checks the rest."""
    for name, t, limit in (("stationary", stationary, 128), ("moving", moving, 512)):
        if t.memory != "sbuf":
            fail(call, name, t.memory, "a tile in sbuf")
        shape = t.shape
        columns = shape[1] if len(shape) == 2 else t.size // shape[0]
        if double:
            columns //= 2
        if columns > limit:
            fail(call, name, columns, f"at most {limit} elements per partition")
    if stationary.shape[0] != moving.shape[0]:
        fail(
            call,
            "moving",
            moving.shape[0],
            f"{stationary.shape[0]} partitions as stationary has",
        )
    a, b = stationary.dtype, moving.dtype
    if a.isa != b.isa:
        wide = ("fp32", "tf32")
        if (a.isa in wide) != (b.isa in wide):
            fail(call, "moving", b, f"a type that goes with stationary's {a} (fp32 is not mixed)")


def double_row(call: str, mode: Any) -> bool:
    name = getattr(mode, "value", mode)
    if name in (None, "none", ""):
        return False
    if str(name).startswith("double_row"):
        return True
    fail(call, "perf_mode", mode, "matmul_perf_mode.none or double_row")


def pe_tile(call: str, position: Sequence[int], size: Sequence[int]) -> Any:
    """(row, column, rows, columns) of the PE array, or None for all of it."""
    if not position and not size:
        return None
    if not position or not size:
        fail(call, "tile_position", position, "tile_position and tile_size together")
    row, column = (int(p) for p in position)
    rows, columns = (int(s) for s in size)
    if rows not in (32, 64, 128) or columns not in (32, 64, 128):
        fail(call, "tile_size", tuple(size), "32, 64 or 128 rows and columns")
    if row % rows or column % columns or row + rows > 128 or column + columns > 128:
        fail(call, "tile_position", tuple(position), f"multiples of {tuple(size)} within 128")
    return row, column, rows, columns


def nc_matmul(
    dst: Tensor,
    stationary: Tensor,
    moving: Tensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Sequence[int] = (),
    tile_size: Sequence[int] = (),
    perf_mode: Any = None,
    name: str | None = None,
    psum_accumulate_flag: Any = None,
) -> Instruction:
    """dst (=|+=) stationary.T @ moving on the Tensor engine."""
    call = "nisa.nc_matmul"
    builder = begin()
    s, m = tile(call, "stationary", stationary), tile(call, "moving", moving)
    target = source(call, "dst", dst)
    double = perf_mode is not None and double_row(call, perf_mode)
    check_matmul(call, stationary, moving, double)
    late = target._late
    if type(late) is Zeroed and accumulate is not True:
        late.done = True
        target._late = None
    d = tile(call, "dst", target)
    if target.memory != "psum":
        fail(call, "dst", target.memory, "a tile in psum")
    builder.matmul(
        NC_MATMUL.id,
        d,
        s,
        m,
        accumulate=accumulate,
        transpose=bool(is_transpose),
        one_zero=bool(is_stationary_onezero or is_moving_onezero),
        double_row=double,
        tile=pe_tile(call, tile_position, tile_size) if tile_size or tile_position else None,
    )
    return DONE


NC_TRANSPOSE = Call("nisa.nc_transpose", src="data", dst="dst")


def transpose_engine(call: str, data: Tensor, engine: Any) -> str:
    """Tensor, or Vector for tiles of up to 32 x 32 (and for what is in PSUM)."""
    chosen = engine_of(call, engine, ("tensor", "vector"))
    rows = data.shape[0]
    columns = data.size // rows
    if chosen is None:
        small = rows <= 32 and columns <= 32
        chosen = "vector" if small or data.memory == "psum" else "tensor"
    limit = 128 if chosen == "tensor" else 32
    if rows > limit or columns > limit:
        fail(call, "data", list(data.shape), f"at most [{limit}, {limit}] on the {chosen} engine")
    if chosen == "tensor" and data.memory != "sbuf":
        fail(call, "data", data.memory, "a tile in sbuf on the tensor engine")
    return chosen


def nc_transpose(
    dst: Tensor, data: Tensor, engine: Any = None, name: str | None = None
) -> Instruction:
    """dst = data.T: partitions and the (flattened) free axes swapped."""
    call = "nisa.nc_transpose"
    builder = begin()
    v = tile(call, "data", data)
    d = tile(call, "dst", dst)
    chosen = engine_of(call, engine)
    if chosen is None and d.memory == "psum" and data.memory == "sbuf":
        chosen = "tensor"
    chosen = transpose_engine(call, data, chosen)
    if chosen == "tensor" and d.memory != "psum":
        fail(call, "dst", d.memory, "a tile in psum on the tensor engine")
    if dst.size != data.size:
        fail(call, "dst", list(dst.shape), f"the transpose of data {list(data.shape)}")
    turn(builder, NC_TRANSPOSE.id, d, v, chosen)
    return DONE


# Scalar engine.

ACTIVATION = Call(
    "nisa.activation",
    src="data",
    dst="dst",
    function="op",
    scale="scale",
    bias="bias",
    reduce_result="reduce_res",
)


def emit_activation(
    builder: Builder,
    call: str,
    dst: View,
    function: str,
    data: View,
    bias: Any,
    scale: Any,
    reduce_res: Any,
    command: str,
    rows: int,
    id: int | None = None,
) -> None:
    builder.activation(
        ACTIVATION.id if id is None else id,
        dst,
        function,
        data,
        bias=None if bias is None else scalar(call, "bias", bias, rows),
        scale=None if scale is None else scalar(call, "scale", scale, rows),
        reduce_result=reduce_res,
        reduce_command=command,
    )


def activation(
    dst: Tensor,
    op: Any,
    data: Tensor,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Tensor | None = None,
    reduce_cmd: Any = None,
    name: str | None = None,
) -> Instruction:
    """dst = op(data * scale + bias) on the Scalar engine, and optionally its sum."""
    call = "nisa.activation"
    builder = begin()
    v = tile(call, "data", data)
    d = tile(call, "dst", dst)
    if dst.shape != data.shape:
        match(call, dst, "dst", data, "data")
    function = activation_of(call, "op", op)
    command, res = activation_reduction(call, reduce_op, reduce_res, reduce_cmd)
    if type(scale) in (int, float) and scale == 1:
        scale = None
    emit_activation(builder, call, d, function, v, bias, scale, res, command, data.shape[0])
    return DONE


def activation_reduction(
    call: str, reduce_op: Any, reduce_res: Tensor | None, reduce_cmd: Any
) -> tuple[str, Any]:
    command = "IDLE" if reduce_cmd is None else command_of(call, reduce_cmd)
    if reduce_op is not None:
        op = alu_of(call, "reduce_op", reduce_op)
        if op != "ADD":
            fail(call, "reduce_op", op.lower(), "add on the Scalar engine")
    if reduce_res is None:
        return command, None
    if command == "IDLE" and reduce_cmd is None:
        command = "RESET_REDUCE"
    return command, tile(call, "reduce_res", reduce_res)


def activation_reduce(
    dst: Tensor,
    op: Any,
    data: Tensor,
    reduce_op: Any,
    reduce_res: Tensor,
    bias: Any = None,
    scale: Any = 1.0,
    name: str | None = None,
) -> Instruction:
    """activation() that starts its sum anew and writes it."""
    return activation(
        dst,
        op,
        data,
        bias,
        scale,
        reduce_op,
        source("nisa.activation_reduce", "reduce_res", reduce_res),
        reduce_cmd_reset,
    )


reduce_cmd_reset = reduce_cmd.reset_reduce


# Vector and GpSimd, element by element.

TENSOR_TENSOR = Call("nisa.tensor_tensor", src0="data1", src1="data2", dst="dst", op="op")


def elementwise_engine(
    call: str, op: str, engine: Any, a: Tensor, b: Tensor | None, dst_memory: str
) -> str | None:
    """Power and exact 32-bit integers run on GpSimd, which reaches SBUF only; the rest on Vector."""
    chosen = engine_of(call, engine, _ELEMENTWISE) if engine is not None else None
    if chosen is not None:
        return chosen
    if op == "POWER":
        return "gpsimd"
    if op in _EXACT and a.dtype.itemsize == 4 and a.dtype.kind != "f":
        if (b is None or b.dtype.kind != "f") and dst_memory == "sbuf" and a.memory == "sbuf":
            if b is None or b.memory == "sbuf":
                return "gpsimd"
    return "vector"


_EXACT = frozenset(("ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MOD"))


def tensor_tensor(
    dst: Tensor,
    data1: Tensor,
    data2: Tensor,
    op: Any,
    engine: Any = None,
    name: str | None = None,
) -> Instruction:
    """dst = data1 op data2."""
    call = "nisa.tensor_tensor"
    builder = begin()
    a = tile(call, "data1", data1)
    b = tile(call, "data2", data2)
    d = tile(call, "dst", dst)
    if data1.shape != data2.shape:
        match(call, data2, "data2", data1, "data1")
    if dst.shape != data1.shape:
        match(call, dst, "dst", data1, "data1")
    alu = alu_of(call, "op", op)
    if data1.memory == "psum":
        same_memory(call, data1, "data1", data2, "data2")
    if alu in BITWISE:
        check_bits(call, alu, data1, data2)
    where = elementwise_engine(call, alu, engine, data1, data2, dst.memory)
    builder.emit(TENSOR_TENSOR.id, "TENSOR_TENSOR", where, a, b, d, alu)
    return DONE


TENSOR_SCALAR = Call(
    "nisa.tensor_scalar",
    src="data",
    dst="dst",
    operand0="operand0",
    operand1="operand1",
    op0="op0",
    op1="op1",
)


def scalar_engine_of(call: str, op0: str, op1: str, engine: Any) -> str | None:
    chosen = engine_of(call, engine, _COPYING) if engine is not None else None
    if chosen is not None:
        return chosen
    if op0 == "RSQRT" or op1 == "RSQRT":
        return "gpsimd"
    return "vector"


def tensor_scalar(
    dst: Tensor,
    data: Tensor,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    engine: Any = None,
    name: str | None = None,
) -> Instruction:
    """dst = (data op0 operand0) op1 operand1, with numbers or one value per partition."""
    call = "nisa.tensor_scalar"
    builder = begin()
    v = tile(call, "data", data)
    d = tile(call, "dst", dst)
    if dst.shape != data.shape:
        match(call, dst, "dst", data, "data")
    emit_tensor_scalar(
        builder, call, d, v, data, op0, operand0, reverse0, op1, operand1, reverse1, engine
    )
    return DONE


def emit_tensor_scalar(
    builder: Builder,
    call: str,
    d: View,
    v: View,
    data: Tensor,
    op0: Any,
    operand0: Any,
    reverse0: bool,
    op1: Any,
    operand1: Any,
    reverse1: bool,
    engine: Any,
) -> None:
    first = alu_of(call, "op0", op0)
    rows = v.shape[0]
    a = None if operand0 is None else scalar(call, "operand0", operand0, rows, first in BITWISE)
    if op1 is None:
        second, b = "BYPASS", None
    else:
        second = alu_of(call, "op1", op1)
        if operand1 is None and second not in ("RSQRT", "ABS", "BYPASS", "LOGICAL_NOT"):
            fail(call, "operand1", None, f"a number or a tile for op1 {second.lower()}")
        b = (
            None
            if operand1 is None
            else scalar(call, "operand1", operand1, rows, second in BITWISE)
        )
        if (first in BITWISE) != (second in BITWISE) and second != "BYPASS":
            fail(call, "op1", second.lower(), f"an operation of the kind of op0 {first.lower()}")
    if first in BITWISE:
        check_bits(call, first, data)
    where = scalar_engine_of(call, first, second, engine)
    builder.emit(
        TENSOR_SCALAR.id,
        "TENSOR_SCALAR",
        where,
        v,
        d,
        first,
        second,
        a,
        b,
        bool(reverse0),
        bool(reverse1),
    )


SCALAR_TENSOR_TENSOR = Call(
    "nisa.scalar_tensor_tensor", src0="data", src1="operand1", dst="dst", operand0="operand0"
)


def scalar_tensor_tensor(
    dst: Tensor,
    data: Tensor,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Tensor,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = (data op0 operand0) op1 operand1, where operand1 is a tile."""
    call = "nisa.scalar_tensor_tensor"
    builder = begin()
    a = tile(call, "data", data)
    b = tile(call, "operand1", operand1)
    d = tile(call, "dst", dst)
    match(call, operand1, "operand1", data, "data")
    match(call, dst, "dst", data, "data")
    same_memory(call, data, "data", operand1, "operand1")
    emit_stt(builder, call, d, a, b, op0, operand0, op1, reverse0, reverse1)
    return DONE


def emit_stt(
    builder: Builder,
    call: str,
    d: View,
    a: View,
    b: View,
    op0: Any,
    operand0: Any,
    op1: Any,
    reverse0: bool,
    reverse1: bool,
) -> None:
    first, second = alu_of(call, "op0", op0), alu_of(call, "op1", op1)
    for operand, op in (("op0", first), ("op1", second)):
        if op in BITWISE:
            fail(call, operand, op.lower(), "an arithmetic operation")
    builder.emit(
        SCALAR_TENSOR_TENSOR.id,
        "SCALAR_TENSOR_TENSOR",
        "vector",
        a,
        b,
        d,
        first,
        second,
        scalar(call, "operand0", operand0, a.shape[0]),
        bool(reverse0),
        bool(reverse1),
    )


TENSOR_SCALAR_REDUCE = Call(
    "nisa.tensor_scalar_reduce", src="data", dst="dst", operand0="operand0", result="reduce_res"
)


def tensor_scalar_reduce(
    dst: Tensor,
    data: Tensor,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Tensor | None,
    reverse0: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = data op0 operand0, and its reduction over the free axis."""
    call = "nisa.tensor_scalar_reduce"
    builder = begin()
    v = tile(call, "data", data)
    d = tile(call, "dst", dst)
    match(call, dst, "dst", data, "data")
    emit_tensor_scalar_reduce(builder, call, d, v, op0, operand0, reduce_op, reduce_res, reverse0)
    return DONE


def emit_tensor_scalar_reduce(
    builder: Builder,
    call: str,
    d: View,
    v: View,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Any,
    reverse0: bool,
) -> None:
    res = reduce_res
    if isinstance(res, Tensor):
        res = tile(call, "reduce_res", res)
    op = alu_of(call, "reduce_op", reduce_op)
    if op not in ("ADD", "SUBTRACT", "MULTIPLY", "MAX", "MIN"):
        fail(call, "reduce_op", op.lower(), "add, subtract, multiply, max or min")
    builder.emit(
        TENSOR_SCALAR_REDUCE.id,
        "TENSOR_SCALAR_REDUCE",
        "vector",
        v,
        d,
        alu_of(call, "op0", op0),
        scalar(call, "operand0", operand0, v.shape[0]),
        bool(reverse0),
        op,
        res,
    )


TENSOR_SCALAR_CUMULATIVE = Call(
    "nisa.tensor_scalar_cumulative", src="src", dst="dst", operand0="imm0", operand1="imm1"
)


def tensor_scalar_cumulative(
    dst: Tensor,
    src: Tensor,
    op0: Any,
    op1: Any,
    imm0: Any,
    imm1: Any = None,
    reduce_cmd: Any = reduce_cmd_reset,
    name: str | None = None,
) -> Instruction:
    """dst = running op1 over (src op0 imm0) along the free axis."""
    call = "nisa.tensor_scalar_cumulative"
    builder = begin()
    v = tile(call, "src", src)
    d = tile(call, "dst", dst)
    match(call, dst, "dst", src, "src")
    rows = v.shape[0]
    builder.emit(
        TENSOR_SCALAR_CUMULATIVE.id,
        "TENSOR_SCALAR_CUMULATIVE",
        "vector",
        v,
        d,
        alu_of(call, "op0", op0),
        alu_of(call, "op1", op1),
        scalar(call, "imm0", imm0, rows),
        None if imm1 is None else scalar(call, "imm1", imm1, rows),
        command_of(call, reduce_cmd),
    )
    return DONE


TENSOR_TENSOR_SCAN = Call(
    "nisa.tensor_tensor_scan", src0="data0", src1="data1", dst="dst", initial="initial"
)


def tensor_tensor_scan(
    dst: Tensor,
    data0: Tensor,
    data1: Tensor,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i]."""
    call = "nisa.tensor_tensor_scan"
    builder = begin()
    a = tile(call, "data0", data0)
    b = tile(call, "data1", data1)
    d = tile(call, "dst", dst)
    match(call, data1, "data1", data0, "data0")
    match(call, dst, "dst", data0, "data0")
    same_memory(call, data0, "data0", data1, "data1")
    emit_scan(builder, call, d, a, b, initial, op0, op1, reverse0, reverse1)
    return DONE


def emit_scan(
    builder: Builder,
    call: str,
    d: View,
    a: View,
    b: View,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool,
    reverse1: bool,
) -> None:
    builder.emit(
        TENSOR_TENSOR_SCAN.id,
        "TENSOR_TENSOR_SCAN",
        "vector",
        a,
        b,
        d,
        alu_of(call, "op0", op0),
        alu_of(call, "op1", op1),
        scalar(call, "initial", initial, a.shape[0]),
        bool(reverse0),
        bool(reverse1),
    )


# Reductions.

TENSOR_REDUCE = Call("nisa.tensor_reduce", src="data", dst="dst", op="op", dims="axis")
_DIMS = ("X", "XY", "XYZ", "XYZW")


def reduce_view(call: str, data: View, axis: Any, ndim: int) -> tuple[View, str]:
    """The operand with its reduced axes innermost, and how many those are."""
    axes = axes_of(call, axis, ndim)
    view = front(data)
    if axes != list(range(ndim - len(axes), ndim)):
        view = view.permute([d for d in range(ndim) if d not in axes] + axes)
    return view, _DIMS[len(axes) - 1]


def reduced_shape(shape: Sequence[int], axis: Any, keepdims: bool) -> tuple[int, ...]:
    given = axis if isinstance(axis, (tuple, list)) else [axis]
    axes = {int(a) % len(shape) for a in given}
    if keepdims:
        return tuple([1 if d in axes else s for d, s in enumerate(shape)])
    left = tuple([s for d, s in enumerate(shape) if d not in axes])
    return left if len(left) > 1 else left + (1,)


def tensor_reduce(
    dst: Tensor,
    op: Any,
    data: Tensor,
    axis: Any,
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = data reduced over free axes, optionally negated."""
    call = "nisa.tensor_reduce"
    builder = begin()
    v = tile(call, "data", data)
    d = tile(call, "dst", dst)
    emit_tensor_reduce(builder, call, d, v, op, axis, negate)
    return DONE


def emit_tensor_reduce(
    builder: Builder,
    call: str,
    d: View,
    v: View,
    op: Any,
    axis: Any,
    negate: bool,
    id: int | None = None,
) -> None:
    ndim = v.ndim
    view, dims = reduce_view(call, v, axis, ndim)
    left = math.prod(view.shape[: ndim - len(dims)])
    innermost = math.prod(v.shape[: ndim - len(dims)])
    if d.size != left and d.size == innermost and v.partition_dim == 0:
        view, left = v, innermost  # before 0.3 axes were counted from the innermost one
    if d.size != left or d.shape[0] != view.shape[0]:
        fail(call, "dst", list(d.shape), f"{left} elements for data {list(v.shape)} over {axis}")
    builder.emit(
        TENSOR_REDUCE.id if id is None else id,
        "TENSOR_REDUCE",
        "vector",
        view,
        d,
        alu_of(call, "op", op),
        dims,
        bool(negate),
    )


TENSOR_PARTITION_REDUCE = Call("nisa.tensor_partition_reduce", src="data", dst="dst", op="op")


def tensor_partition_reduce(
    dst: Tensor, op: Any, data: Tensor, name: str | None = None
) -> Instruction:
    """dst [1, N] = data reduced across partitions."""
    call = "nisa.tensor_partition_reduce"
    builder = begin()
    v = tile(call, "data", data)
    d = tile(call, "dst", dst)
    builder.emit(
        TENSOR_PARTITION_REDUCE.id,
        "TENSOR_PARTITION_REDUCE",
        "gpsimd",
        v,
        d,
        alu_of(call, "op", op),
    )
    return DONE


BN_STATS = Call("nisa.bn_stats", src="data", dst="dst")
BN_AGGR = Call("nisa.bn_aggr", src="data", dst="dst")


def bn_stats(dst: Tensor, data: Tensor, name: str | None = None) -> Instruction:
    """dst [P, 6]: count, mean, variance * count of the even and the odd elements."""
    builder = begin()
    v = tile("nisa.bn_stats", "data", data)
    builder.emit(BN_STATS.id, "BN_STATS", "vector", v, tile("nisa.bn_stats", "dst", dst))
    return DONE


def bn_aggr(dst: Tensor, data: Tensor, name: str | None = None) -> Instruction:
    """dst [P, 2]: mean and variance of bn_stats records."""
    builder = begin()
    v = tile("nisa.bn_aggr", "data", data)
    builder.emit(BN_AGGR.id, "BN_AGGR", "vector", v, tile("nisa.bn_aggr", "dst", dst))
    return DONE


RECIPROCAL = Call("nisa.reciprocal", src="data", dst="dst")


def reciprocal(dst: Tensor, data: Tensor, name: str | None = None) -> Instruction:
    """dst = 1 / data."""
    call = "nisa.reciprocal"
    builder = begin()
    v = tile(call, "data", data)
    match(call, dst, "dst", data, "data")
    builder.emit(RECIPROCAL.id, "RECIPROCAL", "vector", v, tile(call, "dst", dst))
    return DONE


# Copies, fills, selections.

TENSOR_COPY = Call("nisa.tensor_copy", src="src", dst="dst")


def tensor_copy(
    dst: Tensor, src: Tensor, engine: Any = None, name: str | None = None
) -> Instruction:
    """dst = src on chip, cast when the types differ."""
    call = "nisa.tensor_copy"
    builder = begin()
    v = tile(call, "src", src)
    d = tile(call, "dst", dst)
    if dst.shape != src.shape:
        match(call, dst, "dst", src, "src")
    builder.copy(TENSOR_COPY.id, d, v, engine_of(call, engine, _COPYING))
    return DONE


MEMSET = Call("nisa.memset", dst="dst", value="value")


def memset(dst: Tensor, value: Any, engine: Any = None, name: str | None = None) -> Instruction:
    """dst = a constant."""
    call = "nisa.memset"
    builder = begin()
    d = tile(call, "dst", dst)
    if not number(value):
        fail(call, "value", repr(value), "a number")
    _memset(builder, MEMSET, d, value, engine_of(call, engine, _ELEMENTWISE))
    return DONE


TENSOR_COPY_PREDICATED = Call(
    "nisa.tensor_copy_predicated", src="src", scalar="src", predicate="predicate", dst="dst"
)


def tensor_copy_predicated(
    dst: Tensor,
    src: Any,
    predicate: Tensor,
    reverse_pred: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = src where the predicate is true (or false)."""
    call = "nisa.tensor_copy_predicated"
    builder = begin()
    p = tile(call, "predicate", predicate)
    d = tile(call, "dst", dst)
    match(call, predicate, "predicate", dst, "dst")
    if number(src):
        values = (None, float(src))
    else:
        v = tile(call, "src", src)
        if src.size == src.shape[0] and dst.size != src.size:
            values = (None, v)
        else:
            match(call, src, "src", dst, "dst")
            same_memory(call, src, "src", predicate, "predicate")
            values = (v, None)
    builder.emit(
        TENSOR_COPY_PREDICATED.id,
        "TENSOR_COPY_PREDICATED",
        "vector",
        values[0],
        values[1],
        p,
        d,
        bool(reverse_pred),
    )
    return DONE


IOTA = Call("nisa.iota", dst="dst", pattern="pattern")


def index_pattern(
    call: str, pattern: Sequence[Sequence[int]], offset: Any, channel: Any
) -> tuple[int, int, list[tuple[int, int]]]:
    """[[step, count], ...] outermost first, as the builder takes it: innermost first."""
    try:
        pairs = [tuple(int(n) for n in pair) for pair in pattern]
    except (TypeError, ValueError):
        pairs = [()]
    if len(pairs) > 4 or any(len(pair) != 2 for pair in pairs):
        fail(call, "pattern", pattern, "up to four [step, count] pairs")
    base = integer(call, "offset", offset)
    rows = integer(call, "channel_multiplier", channel)
    return base, rows, [(step, count) for step, count in reversed(pairs)]


def _pattern_elements(call: str, pattern: Any, tensor: Tensor, operand: str) -> None:
    count = 1
    for _, n in pattern[2]:
        count *= n
    has = tensor.size // tensor.shape[0]
    if count != has:
        fail(call, "pattern", f"{count} elements", f"the {has} per partition that {operand} has")


def iota(
    dst: Tensor,
    pattern: Sequence[Sequence[int]],
    offset: int = 0,
    channel_multiplier: int = 0,
    name: str | None = None,
) -> Instruction:
    """dst = offset + channel_multiplier * partition + an affine pattern of positions."""
    call = "nisa.iota"
    builder = begin()
    made = index_pattern(call, pattern, offset, channel_multiplier)
    d = tile(call, "dst", dst)
    _pattern_elements(call, made, dst, "dst")
    builder.emit(IOTA.id, "IOTA", "gpsimd", d, made)
    return DONE


AFFINE_SELECT = Call(
    "nisa.affine_select",
    src="on_true_tile",
    dst="dst",
    pattern="pattern",
    on_false="on_false_value",
)


def affine_select(
    dst: Tensor,
    pattern: Sequence[Sequence[int]],
    offset: Any = 0,
    channel_multiplier: Any = 0,
    on_true_tile: Any = None,
    on_false_value: Any = None,
    cmp_op: Any = "equal",
    name: str | None = None,
) -> Instruction:
    """dst = on_true_tile where (an affine pattern cmp_op 0), else a constant."""
    call = "nisa.affine_select"
    if isinstance(channel_multiplier, Tensor):
        # The order of an earlier release: pattern, channel_multiplier, on_true, on_false, ...
        offset, channel_multiplier, on_true_tile, on_false_value = (
            0,
            offset,
            channel_multiplier,
            on_true_tile,
        )
    builder = begin()
    v = tile(call, "on_true_tile", on_true_tile)
    d = tile(call, "dst", dst)
    made = index_pattern(call, pattern, offset, channel_multiplier)
    match(call, dst, "dst", on_true_tile, "on_true_tile")
    _pattern_elements(call, made, dst, "dst")
    if not number(on_false_value):
        fail(call, "on_false_value", repr(on_false_value), "a number")
    builder.emit(
        AFFINE_SELECT.id,
        "AFFINE_SELECT",
        "gpsimd",
        v,
        d,
        made,
        alu_of(call, "cmp_op", cmp_op),
        float(on_false_value),
    )
    return DONE


RANGE_SELECT = Call(
    "nisa.range_select",
    src="on_true_tile",
    dst="dst",
    bound0="bound0",
    bound1="bound1",
    result="reduce_res",
)


def range_select(
    dst: Tensor,
    on_true_tile: Tensor,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Tensor,
    bound1: Tensor,
    reduce_cmd: Any = reduce_cmd_reset,
    reduce_res: Tensor | None = None,
    reduce_op: Any = "max",
    range_start: int = 0,
    on_false_value: Any = -3.4028235e38,
    name: str | None = None,
) -> Instruction:
    """dst = on_true_tile where its index is within two bounds, else the lowest fp32."""
    call = "nisa.range_select"
    builder = begin()
    v = tile(call, "on_true_tile", on_true_tile)
    d = tile(call, "dst", dst)
    match(call, dst, "dst", on_true_tile, "on_true_tile")
    emit_range_select(
        builder,
        call,
        d,
        v,
        comp_op0,
        comp_op1,
        bound0,
        bound1,
        reduce_cmd,
        reduce_res,
        reduce_op,
        range_start,
        on_false_value,
    )
    return DONE


def emit_range_select(
    builder: Builder,
    call: str,
    d: View,
    v: View,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Any,
    bound1: Any,
    reduce_cmd: Any,
    reduce_res: Any,
    reduce_op: Any,
    range_start: int,
    on_false_value: Any,
) -> None:
    if alu_of(call, "reduce_op", reduce_op) != "MAX":
        fail(call, "reduce_op", reduce_op, "max")
    if not number(on_false_value) or float(on_false_value) > -3.4e38:
        fail(call, "on_false_value", on_false_value, "the lowest fp32, -3.4028235e38")
    res = None if reduce_res is None else tile(call, "reduce_res", reduce_res)
    builder.emit(
        RANGE_SELECT.id,
        "RANGE_SELECT",
        "vector",
        v,
        d,
        tile(call, "bound0", bound0),
        tile(call, "bound1", bound1),
        alu_of(call, "comp_op0", comp_op0),
        alu_of(call, "comp_op1", comp_op1),
        integer(call, "range_start", range_start, 0),
        res,
        command_of(call, reduce_cmd) if res is not None else "IDLE",
    )


SELECT_REDUCE = Call(
    "nisa.select_reduce",
    predicate="predicate",
    src="on_true",
    on_false="on_false",
    dst="dst",
    result="reduce_res",
)


def select_reduce(
    dst: Tensor,
    predicate: Tensor,
    on_true: Tensor,
    on_false: Any,
    reduce_res: Tensor | None = None,
    reduce_cmd: Any = None,
    reduce_op: Any = "max",
    reverse_pred: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = on_true where the predicate is true, else on_false; optionally its maximum."""
    call = "nisa.select_reduce"
    builder = begin()
    p = tile(call, "predicate", predicate)
    v = tile(call, "on_true", on_true)
    d = tile(call, "dst", dst)
    match(call, predicate, "predicate", on_true, "on_true")
    match(call, dst, "dst", on_true, "on_true")
    same_memory(call, on_true, "on_true", predicate, "predicate")
    op = alu_of(call, "reduce_op", reduce_op)
    if op != "MAX":
        fail(call, "reduce_op", op.lower(), "max")
    command = "IDLE" if reduce_cmd is None else command_of(call, reduce_cmd)
    res = None
    if reduce_res is not None:
        res = tile(call, "reduce_res", reduce_res)
        command = "RESET_REDUCE" if command == "IDLE" else command
    builder.emit(
        SELECT_REDUCE.id,
        "SELECT_REDUCE",
        "vector",
        p,
        v,
        scalar(call, "on_false", on_false, v.shape[0]),
        d,
        bool(reverse_pred),
        op if command != "IDLE" else "BYPASS",
        res,
        command,
    )
    return DONE


DROPOUT = Call("nisa.dropout", src="data", dst="dst", probability="prob")


def dropout(dst: Tensor, data: Tensor, prob: Any, name: str | None = None) -> Instruction:
    """dst = data with elements zeroed at random."""
    call = "nisa.dropout"
    builder = begin()
    v = tile(call, "data", data)
    d = tile(call, "dst", dst)
    match(call, dst, "dst", data, "data")
    builder.emit(DROPOUT.id, "DROPOUT", "vector", v, d, scalar(call, "prob", prob, v.shape[0]))
    return DONE


NC_STREAM_SHUFFLE = Call("nisa.nc_stream_shuffle", src="src", dst="dst", mask="shuffle_mask")


def shuffle_list(call: str, shuffle_mask: Sequence[Any]) -> list[int]:
    if not isinstance(shuffle_mask, (list, tuple, range, np.ndarray)):
        fail(call, "shuffle_mask", repr(shuffle_mask), "32 numbers within 0..31, or 255")
    given = [getattr(s, "base", s) for s in shuffle_mask]
    picked = integers(call, "shuffle_mask", given)
    if len(picked) != 32 or any(not (0 <= s < 32 or s == 255) for s in picked):
        fail(call, "shuffle_mask", picked, "32 numbers within 0..31, or 255")
    return picked


def nc_stream_shuffle(
    dst: Tensor, src: Tensor, shuffle_mask: Sequence[int], name: str | None = None
) -> Instruction:
    """Each partition of a quadrant takes a partition of the same quadrant of src."""
    call = "nisa.nc_stream_shuffle"
    builder = begin()
    v = tile(call, "src", src)
    d = tile(call, "dst", dst)
    if v.dtype != d.dtype:
        fail(call, "dst", dst.dtype, f"src's type {src.dtype}")
    if src.size // src.shape[0] != dst.size // dst.shape[0]:
        fail(call, "dst", list(dst.shape), f"as many elements per partition as src {src.shape}")
    builder.emit(
        NC_STREAM_SHUFFLE.id,
        "NC_STREAM_SHUFFLE",
        "vector",
        v,
        d,
        shuffle_list(call, shuffle_mask),
    )
    return DONE


# Search and gather.

MAX8 = Call("nisa.max8", src="src", dst="dst")


def max8(dst: Tensor, src: Tensor, name: str | None = None) -> Instruction:
    """dst [P, 8] = the eight largest of each partition, in descending order."""
    builder = begin()
    v = tile("nisa.max8", "src", src)
    builder.emit(MAX8.id, "MAX8", "vector", v, tile("nisa.max8", "dst", dst))
    return DONE


NC_FIND_INDEX8 = Call("nisa.nc_find_index8", src="data", values="vals", dst="dst")


def nc_find_index8(dst: Tensor, data: Tensor, vals: Tensor, name: str | None = None) -> Instruction:
    """dst [P, 8] = the first index of each of eight values."""
    call = "nisa.nc_find_index8"
    builder = begin()
    v = tile(call, "data", data)
    w = tile(call, "vals", vals)
    builder.emit(NC_FIND_INDEX8.id, "NC_FIND_INDEX8", "vector", v, w, tile(call, "dst", dst))
    return DONE


NC_MATCH_REPLACE8 = Call(
    "nisa.nc_match_replace8",
    src="data",
    values="vals",
    dst="dst",
    indices="dst_idx",
    replacement="imm",
)


def nc_match_replace8(
    dst: Tensor,
    data: Tensor,
    vals: Tensor,
    imm: float,
    dst_idx: Tensor | None = None,
    name: str | None = None,
) -> Instruction:
    """dst = data with the first occurrence of each of eight values replaced."""
    call = "nisa.nc_match_replace8"
    if not number(imm):
        fail(call, "imm", repr(imm), "a number")
    builder = begin()
    v = tile(call, "data", data)
    w = tile(call, "vals", vals)
    d = tile(call, "dst", dst)
    where = None if dst_idx is None else tile(call, "dst_idx", dst_idx)
    builder.emit(NC_MATCH_REPLACE8.id, "NC_MATCH_REPLACE8", "vector", v, w, d, where, float(imm))
    return DONE


LOCAL_GATHER = Call(
    "nisa.local_gather",
    src="src_buffer",
    index="index",
    dst="dst",
    indices="num_valid_indices",
    elements_per_index="num_elem_per_idx",
)


def local_gather(
    dst: Tensor,
    src_buffer: Tensor,
    index: Tensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> Instruction:
    """dst = src_buffer gathered by index within each group of 16 partitions."""
    call = "nisa.local_gather"
    builder = begin()
    v = tile(call, "src_buffer", src_buffer)
    i = tile(call, "index", index)
    if integer(call, "num_elem_per_idx", num_elem_per_idx) not in (1, 2, 4, 8, 16, 32):
        fail(call, "num_elem_per_idx", num_elem_per_idx, "1, 2, 4, 8, 16 or 32")
    count = num_valid_indices
    if count is None:
        count = index.size // index.shape[0] * 16
    builder.emit(
        LOCAL_GATHER.id,
        "LOCAL_GATHER",
        "gpsimd",
        v,
        i,
        tile(call, "dst", dst),
        int(num_elem_per_idx),
        integer(call, "num_valid_indices", count, 0),
    )
    return DONE


NC_N_GATHER = Call("nisa.nc_n_gather", src="data", index="indices", dst="dst")


def nc_n_gather(dst: Tensor, data: Tensor, indices: Tensor, name: str | None = None) -> Instruction:
    """dst = data gathered by index within each partition."""
    call = "nisa.nc_n_gather"
    builder = begin()
    v = tile(call, "data", data)
    i = tile(call, "indices", indices)
    d = tile(call, "dst", dst)
    match(call, dst, "dst", indices, "indices")
    builder.emit(NC_N_GATHER.id, "NC_N_GATHER", "gpsimd", v, i, d)
    return DONE


NONZERO = Call("nisa.nonzero_with_count", src="src", dst="dst")


def nonzero_with_count(
    dst: Tensor,
    src: Tensor,
    index_offset: int = 0,
    padding_val: int = -1,
    name: str | None = None,
) -> Instruction:
    """dst = indices of the elements of src that are not 0, padding, and their count."""
    call = "nisa.nonzero_with_count"
    builder = begin()
    v = tile(call, "src", src)
    d = tile(call, "dst", dst)
    wanted = src.size // src.shape[0] + 1
    if dst.size // dst.shape[0] != wanted:
        fail(call, "dst", list(dst.shape), f"{wanted} per partition, one more than src has")
    builder.emit(
        NONZERO.id, "NONZERO_WITH_COUNT", "gpsimd", v, d, int(index_offset), int(padding_val)
    )
    return DONE


SEQUENCE_BOUNDS = Call("nisa.sequence_bounds", src="segment_ids", dst="dst")


def sequence_bounds(dst: Tensor, segment_ids: Tensor, name: str | None = None) -> Instruction:
    """dst (1, 2, N) = start and end of the segment of each element."""
    call = "nisa.sequence_bounds"
    builder = begin()
    v = tile(call, "segment_ids", segment_ids)
    builder.emit(SEQUENCE_BOUNDS.id, "SEQUENCE_BOUNDS", "gpsimd", v, tile(call, "dst", dst))
    return DONE


TOPK = Call("nisa.topk", src="src", dst="val_dst", indices="idx_dst", n="n", k="k")


def topk(
    val_dst: Tensor,
    idx_dst: Tensor,
    src: Tensor,
    k: int,
    n: int | None = None,
    name: str | None = None,
) -> Instruction:
    """The k largest of each group of 16 partitions, with their indices."""
    call = "nisa.topk"
    builder = begin()
    v = tile(call, "src", src)
    count = src.size // src.shape[0] * 16 if n is None else integer(call, "n", n, 1)
    builder.emit(
        TOPK.id,
        "TOPK",
        "gpsimd",
        v,
        tile(call, "val_dst", val_dst),
        tile(call, "idx_dst", idx_dst),
        count,
        integer(call, "k", k, 1),
    )
    return DONE


# Random numbers.

RNG = Call("nisa.rng", dst="dst")


def rng(dst: Tensor, engine: Any = None, name: str | None = None) -> Instruction:
    """dst = random bits."""
    builder = begin()
    d = tile("nisa.rng", "dst", dst)
    builder.emit(RNG.id, "RNG", engine_of("nisa.rng", engine, _ELEMENTWISE), d)
    return DONE


SET_RNG_SEED = Call("nisa.set_rng_seed", src="src_seeds")


def set_rng_seed(src_seeds: Tensor, name: str | None = None) -> Instruction:
    """Seeds Vector's generator."""
    builder = begin()
    v = tile("nisa.set_rng_seed", "src_seeds", src_seeds)
    builder.emit(SET_RNG_SEED.id, "SET_RNG_SEED", "vector", v)
    return DONE


RAND_SET_STATE = Call("nisa.rand_set_state", src="src_seeds")
RAND_GET_STATE = Call("nisa.rand_get_state", dst="dst")


def rand_set_state(src_seeds: Tensor, engine: Any = None, name: str | None = None) -> Instruction:
    """Loads GpSimd's generator."""
    call = "nisa.rand_set_state"
    builder = begin()
    if engine_of(call, engine) not in (None, "gpsimd"):
        current().unsupported(call, "on the vector engine needs trn3 (NeuronCore-v4)")
        return DONE
    builder.emit(RAND_SET_STATE.id, "RAND_SET_STATE", "gpsimd", tile(call, "src_seeds", src_seeds))
    return DONE


def rand_get_state(dst: Tensor, engine: Any = None, name: str | None = None) -> Instruction:
    """Stores GpSimd's generator."""
    call = "nisa.rand_get_state"
    builder = begin()
    if engine_of(call, engine) not in (None, "gpsimd"):
        current().unsupported(call, "on the vector engine needs trn3 (NeuronCore-v4)")
        return DONE
    builder.emit(RAND_GET_STATE.id, "RAND_GET_STATE", "gpsimd", tile(call, "dst", dst))
    return DONE


# DMA.

DMA_COPY = Call("nisa.dma_copy", src="src", dst="dst", index="vector_offset", mode="dge_mode")
_TRIGGERS = ("tensor", "vector", "scalar", "gpsimd", "sync")


def dma_copy(
    dst: Tensor,
    src: Tensor,
    dst_rmw_op: Any = None,
    oob_mode: Any = None,
    dge_mode: Any = None,
    unique_indices: bool = True,
    engine: Any = None,
    priority: Any = None,
    name: str | None = None,
) -> Instruction:
    """dst = src between HBM and SBUF, with strides, casts, gather or scatter."""
    call = "nisa.dma_copy"
    builder = begin()
    source(call, "src", src)
    source(call, "dst", dst)
    check_dma(call, src, dst, priority)
    if dst_rmw_op is not None:
        if alu_of(call, "dst_rmw_op", dst_rmw_op) != "ADD":
            fail(call, "dst_rmw_op", dst_rmw_op, "add")
        emit_dma_add(builder, call, DMA_COPY, dst, [dst, src], mode_of(call, dge_mode))
        return DONE
    mode = None if dge_mode is None else mode_of(call, dge_mode)
    if mode == "hardware" and src.dtype.isa != dst.dtype.isa:
        fail(call, "dst", dst.dtype, f"src's type {src.dtype} (hwdge moves raw bytes)")
    dma(
        builder,
        DMA_COPY,
        dst,
        src,
        mode=mode,
        engine=None if engine is None else engine_of(call, engine, _TRIGGERS),
        skip=oob_mode is not None and skips(call, oob_mode),
    )
    return DONE


def check_dma(
    call: str, src: Tensor, dst: Tensor, priority: Any = None, operand: str = "src"
) -> None:
    if src.memory == "psum":
        fail(call, operand, "psum", "hbm or sbuf (DMA does not reach PSUM)")
    if dst.memory == "psum":
        fail(call, "dst", "psum", "hbm or sbuf (DMA does not reach PSUM)")
    if priority is not None:
        fail(call, "priority", priority, "none: it needs trn3 (NeuronCore-v4)")


def emit_dma_add(
    builder: Builder,
    call: str,
    api: Call,
    dst: Tensor,
    sources: Sequence[Tensor],
    mode: str | None,
) -> None:
    """dst = the sum of sources; one of them, or dst, may be rows that indices pick."""
    index = None
    views = []
    for t in sources:
        if type(t._late) is Gathered:
            index = t._late.index.view_
            views.append(t._late.table)
        else:
            views.append(t.view_)
    if type(dst._late) is Gathered:
        index = dst._late.index.view_
        target = dst._late.table
    else:
        target = dst.view_
    if index is None:
        for n, view in enumerate(views):
            if view.size != target.size:
                fail(
                    call, f"srcs[{n}]", list(view.shape), f"as many elements as dst {target.shape}"
                )
    builder.dma_compute(api.id, target, views, index=index, mode=mode)


DMA_COMPUTE = Call("nisa.dma_compute", src="srcs", dst="dst", sources="srcs")


def dma_compute(
    dst: Tensor,
    srcs: Sequence[Tensor],
    *args: Any,
    reduce_op: Any = None,
    scales: Any = None,
    unique_indices: bool = True,
    oob_mode: Any = None,
    dge_mode: Any = None,
    name: str | None = None,
) -> Instruction:
    """dst = the sum of up to sixteen sources, by the DMA engines."""
    call = "nisa.dma_compute"
    for given in args:  # (scales, reduce_op) or (reduce_op, scales), by release
        if isinstance(given, (list, tuple)) or given is None:
            scales = given
        else:
            reduce_op = given
    builder = begin()
    if isinstance(srcs, Tensor):
        srcs = [srcs]
    if not isinstance(srcs, (list, tuple)):
        fail(call, "srcs", repr(srcs), "1 to 16 tensors")
    source(call, "dst", dst)
    if not 1 <= len(srcs) <= 16:
        fail(call, "srcs", len(srcs), "1 to 16 sources")
    if reduce_op is not None and alu_of(call, "reduce_op", reduce_op) != "ADD":
        fail(call, "reduce_op", reduce_op, "add")
    if scales is not None and any(float(s) != 1.0 for s in scales):
        fail(call, "scales", list(scales), "1.0 for each source")
    for n, t in enumerate(srcs):
        check_dma(call, source(call, f"srcs[{n}]", t), dst, operand=f"srcs[{n}]")
    gathered = [t for t in srcs if type(t._late) is Gathered]
    if gathered and len(srcs) != 2:
        fail(call, "srcs", len(srcs), "two sources with a tile of indices")
    emit_dma_add(builder, call, DMA_COMPUTE, dst, srcs, mode_of(call, dge_mode))
    return DONE


DMA_TRANSPOSE = Call("nisa.dma_transpose", src="src", dst="dst", index="vector_offset")
_AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def transposed_shape(call: str, src: Tensor, axes: Any) -> tuple[int, ...]:
    """The result's shape; the permutation follows from the rank."""
    shape = src.shape
    wanted = _AXES.get(len(shape))
    if wanted is None:
        fail(call, "src", list(shape), "2, 3 or 4 dimensions")
    if axes is not None and tuple(integers(call, "axes", axes)) != wanted:
        fail(call, "axes", tuple(axes), f"{wanted} for {len(shape)} dimensions")
    return tuple([shape[a] for a in wanted])


def dma_transpose(
    dst: Tensor,
    src: Tensor,
    axes: Any = None,
    dge_mode: Any = None,
    oob_mode: Any = None,
    priority: Any = None,
    name: str | None = None,
    engine: Any = None,
) -> Instruction:
    """dst = src with its first and last dimension swapped, by the DMA engines."""
    call = "nisa.dma_transpose"
    builder = begin()
    source(call, "src", src)
    source(call, "dst", dst)
    check_dma(call, src, dst, priority)
    shape = transposed_shape(call, src, axes)
    if [s for s in dst.shape if s != 1] != [s for s in shape if s != 1]:
        fail(call, "dst", list(dst.shape), f"{list(shape)} for src {list(src.shape)}")
    emit_dma_transpose(builder, call, dst.view_, src, whole, mode_of(call, dge_mode))
    return DONE


def emit_dma_transpose(
    builder: Builder, call: str, dst: View, src: Tensor, take: Crop, mode: str | None
) -> None:
    if src.dtype.itemsize not in (2, 4):
        fail(call, "src", src.dtype, "elements of 2 or 4 bytes")
    if type(src._late) is Gathered:
        index = src._late.index.view_
        if src.dtype.itemsize != 2:
            fail(call, "src", src.dtype, "elements of 2 bytes with a tile of indices")
        builder.dma_transpose(DMA_TRANSPOSE.id, dst, src._late.table, mode=mode, index=index)
        return
    builder.dma_transpose(DMA_TRANSPOSE.id, dst, take(src), mode=mode)


# Two cores.

CORE_BARRIER = Call("nisa.core_barrier", data="data")


def core_barrier(
    data: Any = None, cores: Any = (0, 1), engine: Any = None, name: str | None = None
) -> Instruction:
    """Waits until both cores of a logical core are here."""
    call = "nisa.core_barrier"
    if sorted(integers(call, "cores", cores)) not in ([0, 1], [0]):
        fail(call, "cores", tuple(cores), "(0, 1)")
    begin().core_barrier(CORE_BARRIER.id, engine_of(call, engine) or "gpsimd")
    return DONE


SENDRECV = Call("nisa.sendrecv", src="src", dst="dst", send_to="send_to_rank")


def sendrecv(
    src: Tensor,
    dst: Tensor,
    send_to_rank: int,
    recv_from_rank: int | None = None,
    pipe_id: int = 0,
    dma_engine: Any = None,
    name: str | None = None,
    use_gpsimd_dma: bool = False,
) -> Instruction:
    """Swaps tiles with the other core of a logical core."""
    call = "nisa.sendrecv"
    builder = begin()
    peer = integer(call, "send_to_rank", send_to_rank)
    if peer not in (0, 1):
        fail(call, "send_to_rank", peer, "0 or 1")
    if recv_from_rank is not None and integer(call, "recv_from_rank", recv_from_rank) not in (0, 1):
        fail(call, "recv_from_rank", recv_from_rank, "0 or 1")
    for operand, t in (("src", src), ("dst", dst)):
        if source(call, operand, t).memory != "sbuf":
            fail(call, operand, t.memory, "a tile in sbuf")
    if src.dtype.isa != dst.dtype.isa:
        fail(call, "dst", dst.dtype, f"src's type {src.dtype}")
    match(call, dst, "dst", src, "src")
    gpsimd = bool(use_gpsimd_dma) or getattr(dma_engine, "name", dma_engine) in ("gpsimd_dma", 2)
    if gpsimd:
        limit = {4: 1024, 2: 512, 1: 256}[src.dtype.itemsize]
        size = src.size // src.shape[0] * src.dtype.itemsize
        if size > limit:
            fail(call, "src", f"{size} bytes per partition", f"at most {limit} with gpsimd_dma")
    builder.sendrecv(SENDRECV.id, dst.view_, src.view_, peer=peer, gpsimd=gpsimd)
    return DONE


# Registers.


_UNKNOWN_COUNT = 1  # a loop whose bound is in memory runs once when nothing is known


def register_alloc(x: Any = None) -> Register:
    """A register, optionally with a first value: an int, a register or a tile of one element."""
    builder = begin()
    if isinstance(x, Tensor):
        made = Register(builder.register())
        register_load(made, x)
        return made
    if isinstance(x, Register):
        return Register(builder.register(x.native))
    first = None if x is None else integer("nisa.register_alloc", "x", x)
    return Register(builder.register(first))


def _a_register(call: str, operand: str, what: Any) -> Any:
    if not isinstance(what, Register):
        fail(call, operand, repr(what), "a register of nisa.register_alloc")
    return what.native


def register_move(dst: Register, src: Any = None, imm: Any = None) -> Instruction:
    """dst = an int or another register."""
    call = "nisa.register_move"
    value = src if src is not None else imm
    native = value.native if isinstance(value, Register) else integer(call, "src", value)
    begin().register_move(_a_register(call, "dst", dst), native)
    return DONE


def register_load(dst: Register, src: Tensor) -> Instruction:
    """dst = the one element of a tensor."""
    call = "nisa.register_load"
    builder = begin()
    if source(call, "src", src).size != 1:
        fail(call, "src", list(src.shape), "one element")
    builder.register_load(
        _a_register(call, "dst", dst), src.view_, known_value(src, _UNKNOWN_COUNT)
    )
    return DONE


def register_store(dst: Tensor, src: Register) -> Instruction:
    """The one element of a tensor = src."""
    call = "nisa.register_store"
    if source(call, "dst", dst).size != 1:
        fail(call, "dst", list(dst.shape), "one element")
    begin().register_store(dst.view_, _a_register(call, "src", src))
    return DONE


# Of a later generation.

activate2 = later("nisa.activate2")
exponential = later("nisa.exponential")
nc_matmul_mx = later("nisa.nc_matmul_mx")
quantize_mx = later("nisa.quantize_mx")
rand2 = later("nisa.rand2")
