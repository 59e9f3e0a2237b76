"""nki.language: tensors, loads and stores, indices, loops, arithmetic, grids, scheduling."""

from __future__ import annotations

import math
import os
import types
from typing import Any

import numpy as np

from trnsim import calls, index, loops, memory, nl_math, ops, session
from trnsim.calls import Call, dma, fill_hbm, later, number, source
from trnsim.dtypes import (
    bfloat16,
    bfp16,
    bool_,
    dtype_of,
    finfo,
    float4_e2m1fn_x4,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    float32,
    fp32,
    int8,
    int16,
    int32,
    sizeinbytes,
    tfloat32,
    uint8,
    uint16,
    uint32,
)
from trnsim.errors import fail, wrong
from trnsim.index import arange, ds, mgrid, par_dim
from trnsim.loops import (
    affine_range,
    dynamic_range,
    fori_loop,
    sequential_range,
    static_range,
    while_loop,
)
from trnsim.memory import hbm, private_hbm, psum, sbuf, shared_hbm
from trnsim.nl_math import binary, reduction, unary
from trnsim.session import current, nc, spmd_dim
from trnsim.tensor import (
    Outside,
    Register,
    Result,
    Tensor,
    Zeroed,
    accumulate,
    assign,
    begin,
    crop,
    mask_box,
    result,
    whole,
)

bool = bool_  # noqa: A001  (`nl.bool`)
range = loops.affine_range  # noqa: A001  (`nl.range`)
NkiTensor = Tensor
tensor = Tensor
VirtualRegister = Register


class tile_size:
    """Sizes of Trainium2 that kernels tile by."""

    pmax = 128
    psum_fmax = 512
    psum_fmax_bytes = 2048
    psum_bank_fmax = 512
    psum_bank_fmax_bytes = 2048
    psum_num_banks = 7 if os.environ.get("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE") == "true" else 8
    psum_min_align = 4
    sbuf_min_align = 4
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    total_available_sbuf_size = 212984
    sbuf_fmax_bytes = 212984
    sbuf_fmax = 212984 // 4
    sbuf_size_bytes = 128 * 212984


# Making tensors.


def ndarray(
    shape: Any,
    dtype: Any = float32,
    *args: Any,
    buffer: Any = None,
    name: str = "",
    address: Any = None,
) -> Tensor:
    """A tensor that is not initialised. On chip, dimension 0 (or that of par_dim) is partitions."""
    if args:
        buffer = args[0]
        name = args[1] if len(args) > 1 else name
        address = args[2] if len(args) > 2 else address
    return memory.make(
        shape, dtype_of(dtype, "nl.ndarray"), buffer, name=name, address=address, call="nl.ndarray"
    )


def _filled(call: str, shape: Any, value: Any, dtype: Any, buffer: Any, name: str) -> Tensor:
    builder = begin()
    kind = dtype_of(dtype, call)
    made = memory.make(shape, kind, buffer, name=name, call=call)
    where = made.memory
    if where == "hbm":
        fill_hbm(made.view_, kind, value)
    elif where == "psum" and value == 0 and made._late is None:
        made._late = Zeroed(made._view)
    elif made._late is not None:
        seen: set[int] = set()
        for view in made._late.table.values():  # type: ignore[attr-defined]
            if id(view) not in seen:
                seen.add(id(view))
                calls.memset(builder, calls.FILL, view, value)
    else:
        calls.memset(builder, calls.ZEROS if value == 0 else calls.FILL, made._view, value)
    return made


def zeros(
    shape: Any,
    dtype: Any = float32,
    *,
    buffer: Any = None,
    name: str = "",
    lazy_initialization: Any = None,
) -> Tensor:
    """A tensor of zeros; in PSUM the first accumulating matmul makes the memset needless."""
    return _filled("nl.zeros", shape, 0, dtype, buffer, name)


def ones(
    shape: Any,
    dtype: Any = float32,
    *,
    buffer: Any = None,
    name: str = "",
    lazy_initialization: Any = None,
) -> Tensor:
    """A tensor of ones."""
    return _filled("nl.ones", shape, 1, dtype, buffer, name)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = float32,
    *,
    buffer: Any = None,
    name: str = "",
    lazy_initialization: Any = None,
) -> Tensor:
    """A tensor of one value."""
    if not number(fill_value):
        fail("nl.full", "fill_value", repr(fill_value), "a number")
    return _filled("nl.full", shape, fill_value, dtype, buffer, name)


def _like(a: Any, dtype: Any, buffer: Any) -> tuple[Any, Any, Any]:
    t = source("nl.zeros_like", "x", a)
    return t.shape, t.dtype if dtype is None else dtype, t.buffer if buffer is None else buffer


def zeros_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Tensor:
    """Zeros of another tensor's shape and type."""
    shape, kind, where = _like(a, dtype, buffer)
    return _filled("nl.zeros_like", shape, 0, kind, _buffer(where), name)


def empty_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Tensor:
    """A tensor of another's shape and type, not initialised."""
    shape, kind, where = _like(a, dtype, buffer)
    return ndarray(shape, kind, buffer=_buffer(where), name=name)


def full_like(a: Any, fill_value: Any, dtype: Any = None, *, buffer: Any = None) -> Tensor:
    """One value in another tensor's shape and type."""
    if not number(fill_value):
        fail("nl.full_like", "fill_value", repr(fill_value), "a number")
    shape, kind, where = _like(a, dtype, buffer)
    return _filled("nl.full_like", shape, fill_value, kind, _buffer(where), "")


def ones_like(a: Any, dtype: Any = None, *, buffer: Any = None) -> Tensor:
    """Ones of another tensor's shape and type."""
    return full_like(a, 1, dtype, buffer=buffer)


def _buffer(where: Any) -> Any:
    """Tensors made like one in HBM are this program's own."""
    return private_hbm if getattr(where, "name", "") == "any_hbm" else where


RAND = Call("nl.rand", dst="shape")


def rand(shape: Any, dtype: Any = float32) -> Tensor:
    """Uniform numbers in [0, 1): random bits, scaled."""
    builder = begin()
    sizes = calls.integers("nl.rand", "shape", shape)
    bits = builder.tensor("sbuf", sizes, "uint32")
    builder.emit(RAND.id, "RNG", None, bits)
    made = Tensor(builder.tensor("sbuf", sizes, dtype_of(dtype, "nl.rand").isa))
    builder.emit(
        RAND.id,
        "TENSOR_SCALAR",
        "vector",
        bits,
        made._view,
        "MULTIPLY",
        "BYPASS",
        2.0**-32,
        None,
        False,
        False,
    )
    return made


SEED = Call("nl.random_seed", src="seed")


def random_seed(seed: Any, mask: Any = None) -> None:
    """Seeds Vector's generator."""
    builder = begin()
    if isinstance(seed, Tensor):
        view = seed.view_
        if view.memory == "hbm":
            view = calls.to_sbuf(load(seed)).view_
    else:
        view = builder.tensor("sbuf", [1, 1], "int32")
        calls.memset(builder, SEED, view, calls.integer("nl.random_seed", "seed", seed))
    if view.dtype not in ("int32", "uint32", "fp32"):
        fail("nl.random_seed", "seed", view.dtype, "a 32-bit type")
    builder.emit(SEED.id, "SET_RNG_SEED", "vector", view[0:1, 0:1])


def shared_constant(constant: Any, dtype: Any = None) -> Tensor:
    """A constant in HBM that is loaded with the program: a NumPy array, or the path of a .npy."""
    if isinstance(constant, str):
        try:
            constant = np.load(constant, mmap_mode="r")
        except (OSError, ValueError) as error:
            wrong(f"nl.shared_constant: {error}")
    shape = getattr(constant, "shape", None)
    if shape is None:
        constant = np.asarray(constant)
        shape = constant.shape
    given = constant.dtype if dtype is None else dtype
    if str(given) == "float64":
        given = float32
    elif str(given) == "int64":
        given = int32
    kind = dtype_of(given, "nl.shared_constant")
    view = begin().tensor("hbm", [int(s) for s in shape] or [1], kind.isa, kind="constant")
    return Tensor(view, kind)


IDENTITY = Call("nl.shared_identity_matrix", src="identity", dst="dst")


def shared_identity_matrix(n: int, dtype: Any = uint8, dst: Tensor | None = None) -> Tensor:
    """An identity in SBUF, copied from a constant in HBM."""
    call = "nl.shared_identity_matrix"
    n = calls.integer(call, "n", n, 1)
    if dst is not None:
        source(call, "dst", dst)
    kind = dtype_of(dtype, call) if dst is None else dst.dtype
    builder = begin()
    constant = builder.tensor("hbm", [int(n), int(n)], kind.isa, kind="constant")
    if dst is None:
        dst = Tensor(builder.tensor("sbuf", [int(n), int(n)], kind.isa), kind)
    builder.dma_copy(IDENTITY.id, dst.view_, constant)
    return dst


# Loads and stores.


def load(src: Any, *, mask: Any = None, dtype: Any = None) -> Tensor:
    """HBM to a new tile in SBUF."""
    call = "nl.load"
    t = source(call, "src", src)
    if t.memory != "hbm":
        fail(call, "src", t.memory, "a tensor in hbm")
    kind = t.dtype if dtype is None else dtype_of(dtype, call)
    shape = t.shape or (1, 1)  # an element of a tensor is a tile of one
    if shape[0] > 128:
        fail(call, "src", list(shape), "at most 128 partitions (the first dimension)")
    if mask is None and type(t._late) is Outside:
        t.view_  # raises here, at the line of the load

    def emit(builder: Any, d: Any, take: Any) -> None:
        dma(builder, calls.LOAD, t, t, crop_src=take, dst_view=d)

    return result(shape, kind, emit, memories=("sbuf",), mask=mask)


def store(dst: Any, value: Any = None, *, mask: Any = None) -> None:
    """A tile (or a number) to HBM; to SBUF it is a copy on chip."""
    call = "nl.store"
    target = source(call, "dst", dst)
    if target.memory == "psum":
        fail(call, "dst", target.memory, "a tensor in hbm or sbuf")
    if target.memory == "sbuf":
        assign(target, value, mask, call)
        return
    some, box = mask_box(mask, target.shape)
    begin()
    if not some:
        return
    take = whole if box is None else (lambda t: crop(t, box))
    if number(value):
        fill_hbm(take(target), target.dtype, value)
        return
    v = source(call, "value", value)
    if v.memory == "psum":
        v = calls.to_sbuf(v, None)
    if v.shape != target.shape and v.size != target.size and box is None:
        v = Tensor(calls.stretch(call, v.view_, target.shape), v._dtype)
    if box is not None and v.ndim != len(box):
        v = v.reshape(target.shape)
    dma(begin(), calls.STORE, target, v, crop_dst=take, crop_src=take)


TRANSPOSED = Call("nl.load_transpose2d", src="src", dst="result")


def load_transpose2d(src: Any, *, mask: Any = None, dtype: Any = None) -> Tensor:
    """HBM [N, P] to a tile [P, N]: DMA transpose of 2-byte types, else copy and Tensor engine."""
    call = "nl.load_transpose2d"
    t = source(call, "src", src)
    if t.ndim != 2:
        fail(call, "src", list(t.shape), "two dimensions")
    rows, columns = t.shape
    if columns > 128:
        fail(call, "src", list(t.shape), "at most 128 columns, which become partitions")
    kind = t.dtype if dtype is None else dtype_of(dtype, call)
    some, box = mask_box(mask, t.shape)
    begin()
    direct = kind.isa == t.dtype.isa and kind.itemsize == 2

    def emit(builder: Any, d: Any, take: Any) -> None:
        if not some:
            return
        view = t.view_ if box is None else crop(t, box)
        if box is not None:
            d = d[box[1][0] : box[1][1], box[0][0] : box[0][1]]
        if direct:
            builder.dma_transpose(TRANSPOSED.id, d, view)
            return
        n, p = view.shape
        for start in _steps(n, 128):
            size = 128 if n - start > 128 else n - start
            part = builder.tensor("sbuf", [size, p], t.dtype.isa)
            builder.dma_copy(TRANSPOSED.id, part, view[start : start + size, :])
            turned = builder.tensor("psum", [p, size], t.dtype.isa)
            calls.turn(builder, TRANSPOSED.id, turned, part, "tensor")
            builder.copy(TRANSPOSED.id, d[:, start : start + size], turned)

    return result((columns, rows), kind, emit, memories=("sbuf",), fixed=direct)


def _steps(stop: int, step: int) -> Any:
    import builtins

    return builtins.range(0, stop, step)


def gather_flattened(data: Any, indices: Any, *, mask: Any = None, dtype: Any = None) -> Tensor:
    """data gathered by index over the flattened free axes of each partition."""
    from trnsim import nisa_old

    call = "nl.gather_flattened"
    found = indices
    if source(call, "indices", indices).dtype.isa != "uint32":
        found = calls.cast(indices, uint32)
    return nisa_old.nc_n_gather(data, found)


def copy(src: Any, *args: Any, mask: Any = None, dtype: Any = None) -> Any:
    """A copy in SBUF, of another type if asked."""
    call = "nl.copy"
    if args and isinstance(args[0], Tensor):
        assign(src, args[0], mask)
        return src
    if args and dtype is None:
        dtype = args[0]
    t = source(call, "src", src)
    kind = t.dtype if dtype is None else dtype_of(dtype, call)
    if t.memory == "hbm":
        return load(t, mask=mask, dtype=kind)
    from trnsim.calls import front

    return result(
        t.shape,
        kind,
        lambda builder, d, take: builder.copy(calls.CAST.id, front(d), front(take(t))),
        mask=mask,
    )


def static_cast(value: Any, dtype: Any) -> Any:
    """Another type; a number stays a number."""
    if number(value):
        return dtype_of(dtype, "nl.static_cast")(value)
    t = source("nl.static_cast", "value", value)
    return t if t.dtype.isa == dtype_of(dtype).isa else copy(t, dtype=dtype)


def broadcast_to(src: Any, shape: Any, *args: Any) -> Tensor:
    """Free axes repeat by strides; partitions by a matmul with ones (in HBM: by strides)."""
    t = source("nl.broadcast_to", "src", src)
    sizes = tuple(calls.integers("nl.broadcast_to", "shape", shape))
    if t.memory == "hbm":
        return Tensor(t.view_.broadcast_to(list(sizes)), t._dtype)
    return nl_math.spread(t, sizes)


def expand_dims(data: Any, axis: Any) -> Tensor:
    """Dimensions of size 1 inserted."""
    return source("nl.expand_dims", "data", data).expand_dims(axis)


# Arithmetic, element by element.


def _binary(name: str) -> Any:
    def function(x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        return binary(name, x, y, dtype, mask)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"x {name} y, element by element."
    ops.register(function)
    return function


def _unary(name: str) -> Any:
    def function(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        return unary(name, x, dtype, mask)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x), element by element, on the Scalar engine."
    ops.register(function)
    return function


add = _binary("add")
subtract = _binary("subtract")
multiply = _binary("multiply")
divide = _binary("divide")
maximum = _binary("maximum")
minimum = _binary("minimum")
power = _binary("power")
mod = _binary("mod")
fmod = _binary("fmod")
abs_max = _binary("abs_max")
abs_min = _binary("abs_min")
equal = _binary("equal")
not_equal = _binary("not_equal")
less = _binary("less")
less_equal = _binary("less_equal")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
bitwise_and = _binary("bitwise_and")
bitwise_or = _binary("bitwise_or")
bitwise_xor = _binary("bitwise_xor")
left_shift = _binary("left_shift")
right_shift = _binary("right_shift")
arithmetic_shift_right = _binary("arithmetic_shift_right")

exp = _unary("exp")
log = _unary("log")
sqrt = _unary("sqrt")
square = _unary("square")
abs = _unary("abs")  # noqa: A001
sign = _unary("sign")
relu = _unary("relu")
tanh = _unary("tanh")
sigmoid = _unary("sigmoid")
gelu = _unary("gelu")
gelu_apprx_tanh = _unary("gelu_apprx_tanh")
gelu_apprx_sigmoid = _unary("gelu_apprx_sigmoid")
gelu_dx = _unary("gelu_dx")
gelu_apprx_sigmoid_dx = _unary("gelu_apprx_sigmoid_dx")
silu = _unary("silu")
silu_dx = _unary("silu_dx")
softplus = _unary("softplus")
mish = _unary("mish")
erf = _unary("erf")
erf_dx = _unary("erf_dx")
arctan = _unary("arctan")
identity = _unary("identity")


def _named(function: Any) -> Any:
    ops.register(function)
    return function


@_named
def reciprocal(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """1 / x on Vector."""
    from trnsim import nisa_old

    if number(x):
        return 1.0 / x
    return nisa_old.reciprocal(x, dtype=dtype, mask=mask)


@_named
def negative(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """-x on Vector."""
    if number(x):
        return -x
    return nl_math.scalars("negative", x, [("MULTIPLY", -1.0, False)], dtype, mask)


@_named
def logical_not(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """x == 0."""
    return nl_math.scalars("logical_not", x, [("EQUAL", 0.0, False)], dtype, mask)


@_named
def invert(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """The bits of x flipped."""
    if source("nl.invert", "x", x).dtype.kind == "f":
        fail("nl.invert", "x", x.dtype, "integers for a bitwise operation")
    return nl_math.scalars("invert", x, [("BITWISE_XOR", -1, False)], dtype, mask)


bitwise_invert = invert


@_named
def rsqrt(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """1 / sqrt(x)."""
    return nl_math.rsqrt(x, dtype, mask)


@_named
def floor(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """The largest integers not above x."""
    return math.floor(x) if number(x) else nl_math.rounded("floor", x, dtype, mask)


@_named
def ceil(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """The smallest integers not below x."""
    return math.ceil(x) if number(x) else nl_math.rounded("ceil", x, dtype, mask)


@_named
def trunc(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """x without its fraction."""
    return math.trunc(x) if number(x) else nl_math.rounded("trunc", x, dtype, mask)


@_named
def sin(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """sin(x), its range reduced first."""
    return math.sin(x) if number(x) else nl_math.trigonometric("sin", x, dtype, mask)


@_named
def cos(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """cos(x), its range reduced first."""
    return math.cos(x) if number(x) else nl_math.trigonometric("cos", x, dtype, mask)


@_named
def tan(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """tan(x), its range reduced first."""
    return math.tan(x) if number(x) else nl_math.trigonometric("tan", x, dtype, mask)


copy = _named(copy)


# Reductions.


def _all_free(x: Any, axis: Any) -> Any:
    source("reduction", "x", x)
    return list(_steps(x.ndim, 1))[1:] if axis is None else axis


def _reduction(name: str, op: str) -> Any:
    def function(
        x: Any,
        axis: Any = None,
        *,
        dtype: Any = None,
        mask: Any = None,
        keepdims: Any = False,
    ) -> Any:
        t = source(f"nl.{name}", "x", x)
        return reduction(name, op, t, _all_free(t, axis), dtype, mask, True if keepdims else False)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} over free axes."
    ops.register(function)
    return function


sum = _reduction("sum", "add")  # noqa: A001
max = _reduction("max", "max")  # noqa: A001
min = _reduction("min", "min")  # noqa: A001
prod = _reduction("prod", "multiply")
all = _reduction("all", "logical_and")  # noqa: A001
any = _reduction("any", "logical_or")  # noqa: A001


@_named
def mean(
    x: Any,
    axis: Any = None,
    *,
    dtype: Any = None,
    mask: Any = None,
    keepdims: Any = False,
) -> Tensor:
    """The mean over free axes."""
    return nl_math.mean(x, _all_free(x, axis), dtype, mask, True if keepdims else False)


def var(
    x: Any,
    axis: Any = None,
    *,
    dtype: Any = None,
    mask: Any = None,
    keepdims: Any = False,
) -> Tensor:
    """The variance over the free axes."""
    return nl_math.var(x, _all_free(x, axis), dtype, mask, True if keepdims else False)


def softmax(
    x: Any,
    axis: Any = None,
    *,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Softmax over the free axes."""
    return nl_math.softmax(x, _all_free(x, axis), dtype, mask)


def rms_norm(
    x: Any,
    w: Any,
    axis: Any = None,
    n: Any = None,
    epsilon: float = 1e-6,
    *,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """x / rms(x) * w over the free axes."""
    return nl_math.rms_norm(x, w, axis, n, epsilon, dtype, mask)


def where(condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """x where the condition holds, else y."""
    return nl_math.where(condition, x, y, dtype, mask)


def dropout(x: Any, rate: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """x with elements zeroed at random."""
    from trnsim import nisa_old

    return nisa_old.dropout(x, rate, dtype=dtype, mask=mask)


def matmul(x: Any, y: Any, *, transpose_x: Any = False, mask: Any = None) -> Tensor:
    """x @ y (or x.T @ y), in PSUM."""
    return nl_math.matmul(x, y, True if transpose_x else False, mask)


def transpose(x: Any, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """x.T."""
    return nl_math.transpose(x, dtype, mask)


# Across loops and programs.

LOOP_REDUCE = Call("nl.loop_reduce", src="x", src0="result", src1="x", dst="result")


def loop_reduce(
    x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The reduction of x over the iterations of loops; its value is good after them."""
    call = "nl.loop_reduce"
    alu = ops.alu_of(call, "op", op)
    t = source(call, "x", x)
    given = loop_indices if isinstance(loop_indices, (list, tuple)) else [loop_indices]
    frame = session.user_frame()
    key = (frame.f_code, frame.f_lasti) if frame else None
    first = not [i for i in given if int(i) != getattr(i, "first", 0)]
    s = current()
    late = t._late
    product = type(late) is Result and late.accumulate is not None and alu == "ADD"
    running: dict[Any, Tensor] = s.__dict__.setdefault("loop_reductions", {})
    made = None if first else running.get(key)
    if made is None:
        if product:
            made = Tensor(s.builder.tensor("psum", list(t.shape), "fp32"), float32)
            accumulate(made, t)
        else:
            kind = t.dtype if dtype is None else dtype_of(dtype, call)
            made = Tensor(s.builder.tensor("sbuf", list(t.shape), kind.isa), kind)
            assign(made, t)
        running[key] = made
        return made
    if product and made.memory == "psum":
        accumulate(made, t)
    else:
        builder = begin()
        builder.emit(
            LOOP_REDUCE.id, "TENSOR_TENSOR", "vector", made.view_, t.view_, made.view_, alu
        )
    return made


def all_reduce(
    x: Any,
    op: Any,
    program_axes: Any,
    *,
    dtype: Any = None,
    mask: Any = None,
    parallel_reduce: Any = True,
    asynchronous: Any = False,
) -> Tensor:
    """The reduction of x over programs of the grid: a swap between two cores and one operation."""
    call = "nl.all_reduce"
    t = source(call, "x", x)
    alu = ops.alu_of(call, "op", op)
    axes = program_axes if isinstance(program_axes, (list, tuple)) else [program_axes]
    s = current()
    count = 1
    for a in calls.integers(call, "program_axes", axes):
        count *= s.grid[a] if 0 <= a < len(s.grid) else 1
    if count == 1:
        return t
    if count != 2 or getattr(s, "cores", 1) != 2:
        s.unsupported(call, f"over {count} programs; only over the two cores of a logical core")
        return t
    t = t if t.memory == "sbuf" else calls.to_sbuf(t)
    builder = begin()
    theirs = Tensor(builder.tensor("sbuf", list(t.shape), t.dtype.isa), t.dtype)
    builder.sendrecv(ALL_REDUCE.id, theirs._view, t.view_, peer=1 - int(s.core))
    return binary(
        {"ADD": "add", "MAX": "maximum", "MIN": "minimum"}.get(alu, "add"), t, theirs, dtype
    )


ALL_REDUCE = Call("nl.all_reduce", src="x", dst="result")


def program_id(axis: int = 0) -> int:
    """This program's index along an axis of the grid."""
    ids = current().program_ids
    if not ids:
        return 0
    if not 0 <= int(axis) < len(ids):
        fail("nl.program_id", "axis", axis, f"0..{len(ids) - 1}")
    return ids[int(axis)]


def num_programs(axes: Any = 0) -> Any:
    """The grid's size along an axis, or the product along several."""
    grid = current().grid
    if isinstance(axes, (list, tuple)):
        count = 1
        for a in axes:
            count *= num_programs(a)
        return count
    if not grid:
        return 1
    if axes is None:
        return math.prod(grid)
    if not 0 <= int(axes) < len(grid):
        fail("nl.num_programs", "axes", axes, f"0..{len(grid) - 1}")
    return grid[int(axes)]


def program_ndim() -> int:
    """Dimensions of the grid; 0 without one."""
    return len(current().grid)


def atomic_rmw(dst: Any, value: Any, op: Any, *, mask: Any = None) -> None:
    """dst op= value in HBM, by the DMA engines; only add."""
    from trnsim import nisa

    call = "nl.atomic_rmw"
    if ops.alu_of(call, "op", op) != "ADD":
        fail(call, "op", op, "add")
    builder = begin()
    v = source(call, "value", value)
    v = calls.to_sbuf(v) if v.memory == "psum" else v
    nisa.emit_dma_add(builder, call, ATOMIC, source(call, "dst", dst), [dst, v], None)


ATOMIC = Call("nl.atomic_rmw", src="value", dst="dst", sources="value")


# Scheduling and debugging.


class no_reorder:
    """`with nl.no_reorder():` -- instructions inside keep program order; also a decorator."""

    def __new__(cls, function: Any = None) -> Any:
        if callable(function):
            return function
        return super().__new__(cls)

    def __enter__(self) -> None:
        begin().fence()

    def __exit__(self, *error: Any) -> None:
        begin().fence()

    def __call__(self, function: Any) -> Any:
        return function


def device_print(*args: Any, **kwargs: Any) -> None:
    """Prints on the device; here it is counted and costs nothing."""
    begin()
    current().count("nl.device_print")


# Index grids of a matrix product.


def gemm_stationary_grid() -> Any:
    return mgrid[0:128, 0:128]


def gemm_moving_grid() -> Any:
    return mgrid[0:128, 0:512]


def gemm_grid() -> Any:
    return mgrid[0:128, 0:512]


# Plain classes of kernels.


_NO_FIELDS = (types.FunctionType, type, property, classmethod, staticmethod)


def _no_field(kind: Any) -> bool:
    return "ClassVar" in str(kind) or "InitVar" in str(kind)


class NKIObject:
    """A plain class: what is annotated or assigned in the body of a subclass is a field, given by
    keyword or position, with the assigned value, or None, as default."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fields: dict[str, Any] = {}
        own = dict(cls.__dict__.get("__annotations__", {}))
        for name, kind in own.items():
            if name not in cls.__dict__ and not _no_field(kind):
                setattr(cls, name, None)  # a kernel's __post_init__ may be what sets it
        for base in reversed(cls.__mro__):
            if base is object or base is NKIObject:
                continue
            for name, kind in base.__dict__.get("__annotations__", {}).items():
                if not _no_field(kind):
                    fields.setdefault(name, None)
            for name, value in base.__dict__.items():
                plain = not isinstance(value, _NO_FIELDS) and not name.startswith("__")
                if name in fields or plain:
                    fields[name] = value
        cls.__nki_fields__ = fields  # type: ignore[attr-defined]
        # A @dataclass above the class would overlook what is assigned without an annotation.
        for name, value in fields.items():
            if name in cls.__dict__ and value.__hash__ is not None:
                own.setdefault(name, Any)
        cls.__annotations__ = own

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = getattr(type(self), "__nki_fields__", {})
        if len(args) > len(fields):
            wrong(f"{type(self).__name__}: expected at most {len(fields)} values, got {len(args)}")
        values = dict(zip(fields, args))
        for name, value in kwargs.items():
            if name not in fields:
                wrong(f"{type(self).__name__}: expected fields {', '.join(fields)}, got {name}")
            values[name] = value
        for name, default in fields.items():
            if name in values:
                object.__setattr__(self, name, values[name])
            else:
                object.__setattr__(self, name, _own(default))
        after = getattr(self, "__post_init__", None)
        if after is not None:
            after()

    def __repr__(self) -> str:
        fields = getattr(type(self), "__nki_fields__", {})
        return (
            f"{type(self).__name__}("
            + ", ".join(f"{n}={getattr(self, n, None)!r}" for n in fields)
            + ")"
        )

    def __eq__(self, other: Any) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__ = object.__hash__


def _own(default: Any) -> Any:
    """Lists and dicts are each object's own; dataclasses' field(default=...) is understood."""
    import dataclasses

    if isinstance(default, dataclasses.Field):
        if default.default_factory is not dataclasses.MISSING:
            return default.default_factory()
        return default.default
    if isinstance(default, (list, dict, set)):
        return default.copy()
    return default


class NkiScalar:
    """A number that only later releases make a device value of."""

    _is_nki_scalar = True

    def __init__(self, value: Any) -> None:
        self.value = value
