"""A stand-in for `nki` that computes: checks the kernels here against their NumPy references.

It knows the calls that these kernels make, in the new generation's form, and no limits of the
hardware; what it does not know raises AttributeError. Every dtype computes in fp32.

    with numpy_nki.installed():
        module = importlib.import_module("matmul")
        module.tiled(numpy_array, numpy_array)
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray

ON_CHIP = ("sbuf", "psum")
INTEGERS = {"int32": np.int32, "uint32": np.uint32}


class Tile:
    """A view of a tensor: data, the memory it is in, and which bytes of PSUM were written."""

    def __init__(self, data: Array, dtype: str, buffer: str, written: Array | None = None):
        self.data, self.dtype, self.buffer = data, dtype, buffer
        self.written = np.zeros(data.shape, bool) if written is None else written
        self.rows: Array | None = None  # indices of an indirect access

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def _view(self, change: Callable[[Array], Array]) -> Tile:
        data = change(self.data)
        assert np.shares_memory(data, self.data), "a view must not copy"
        return Tile(data, self.dtype, self.buffer, change(self.written))

    def __getitem__(self, key: Any) -> Tile:
        keys = list(key) if isinstance(key, tuple) else [key]
        if self.buffer in ON_CHIP and isinstance(keys[0], int):
            keys[0] = slice(keys[0], keys[0] + 1)
        for k, size in zip(keys, self.shape):
            last = k.stop if isinstance(k, slice) else k
            assert last is None or last <= size, f"index {k} of a dimension of {size}"
        return self._view(lambda a: a[tuple(keys)])

    def reshape(self, shape: Sequence[int]) -> Tile:
        def change(array: Array) -> Array:
            view = array.view()
            view.shape = tuple(shape)
            return view

        # Parts of rows split into more rows: only the first dimension changes.
        if len(shape) == self.data.ndim + 1 and tuple(shape[2:]) == self.shape[1:]:
            return self._view(lambda a: _split_first(a, shape[0]))
        return self._view(change)

    def permute(self, dims: Sequence[int]) -> Tile:
        return self._view(lambda a: a.transpose(dims))

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int = 0,
        vector_offset: Tile | None = None,
        indirect_dim: int = 0,
    ) -> Tile:
        if vector_offset is not None:
            (stride, count), (one, columns) = pattern
            rows = vector_offset.data[:, 0].astype(int)
            assert stride == columns == self.shape[1] and one == 1 and count == len(rows)
            tile = Tile(self.data, self.dtype, self.buffer)
            tile.rows = rows
            return tile
        shape = [count for _, count in pattern]
        size = self.data.itemsize
        strides = [step * size for step, _ in pattern]
        flat = self.data.reshape(-1)[offset:]
        data = np.lib.stride_tricks.as_strided(flat, shape, strides)
        return Tile(data, self.dtype, self.buffer)

    def read(self) -> Array:
        self.written[...] = False
        return self.data if self.rows is None else self.data[self.rows]

    def write(self, value: Any) -> None:
        if self.rows is not None:
            self.data[self.rows] = value
            return
        self.data[...] = np.asarray(value).reshape(self.shape) if np.ndim(value) else value


def _split_first(array: Array, groups: int) -> Array:
    shape = (groups, array.shape[0] // groups, *array.shape[1:])
    strides = (array.strides[0] * shape[1], *array.strides)
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def _value(operand: Any, like: Array) -> Any:
    """A number, or a [P, 1] tile that meets tiles of any rank."""
    if not isinstance(operand, Tile):
        return operand
    return operand.read().reshape(-1, *([1] * (like.ndim - 1)))


def ndarray(shape: Sequence[int], dtype: str, buffer: str, **_: Any) -> Tile:
    data = np.full(tuple(shape), 0 if dtype in INTEGERS else np.nan, INTEGERS.get(dtype, "f4"))
    return Tile(data, dtype, buffer)


def dma_copy(dst: Tile, src: Tile, dge_mode: str = "unknown") -> None:
    assert dst.buffer != "psum" and src.buffer != "psum", "DMA does not reach PSUM"
    value = src.read()
    if dst.rows is None and src.rows is None:
        assert dst.data.size == src.data.size, f"{dst.shape} = {src.shape}"
    dst.write(value)


def dma_transpose(dst: Tile, src: Tile) -> None:
    dst.write(src.read().T)


def tensor_copy(dst: Tile, src: Tile) -> None:
    assert dst.shape == src.shape, f"{dst.shape} = {src.shape}"
    dst.write(src.read())


def memset(dst: Tile, value: float) -> None:
    dst.write(value)


def nc_matmul(dst: Tile, stationary: Tile, moving: Tile, perf_mode: str = "none") -> None:
    assert dst.buffer == "psum" and stationary.buffer == moving.buffer == "sbuf"
    left, right = stationary.read(), moving.read()
    if perf_mode == "double_row":
        left, right = left.reshape(256, -1), right.reshape(256, -1)
    limit = (128, 512) if dst.data.ndim == 2 else (128, dst.data[0].size)
    assert left.shape[1] <= limit[0] and right[0].size <= limit[1]
    value = (left.reshape(len(left), -1).T @ right.reshape(len(right), -1)).reshape(dst.shape)
    dst.data[...] = np.where(dst.written, dst.data, 0) + value
    dst.written[...] = True


def nc_transpose(dst: Tile, data: Tile, engine: str = "tensor") -> None:
    limit = 32 if engine == "vector" else 128
    assert max(data.shape) <= limit and (engine == "vector" or dst.buffer == "psum")
    dst.write(data.read().T)


def activation(
    dst: Tile,
    op: Callable[..., Array],
    data: Tile,
    bias: Any = 0.0,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Tile | None = None,
    reduce_cmd: str = "idle",
) -> None:
    value = data.read()
    result = op(value * _value(scale, value) + _value(bias, value))
    dst.write(result)
    if reduce_res is not None:
        assert reduce_cmd == "reset_reduce", "the kernels here start each sum anew"
        reduce_res.write(result.reshape(len(result), -1).sum(axis=1, keepdims=True))


def activation_reduce(
    dst: Tile, op: Any, data: Tile, reduce_op: Any, reduce_res: Tile, **more: Any
) -> None:
    activation(
        dst, op, data, reduce_op=reduce_op, reduce_res=reduce_res, reduce_cmd="reset_reduce", **more
    )


def tensor_tensor(dst: Tile, data1: Tile, data2: Tile, op: Callable[..., Array]) -> None:
    assert data1.buffer != "psum" or data2.buffer != "psum", "only one operand may be in PSUM"
    dst.write(op(data1.read(), data2.read()))


def tensor_scalar(
    dst: Tile, data: Tile, op0: Any, operand0: Any, op1: Any = None, operand1: Any = None
) -> None:
    value = data.read()
    value = op0(value, _value(operand0, value))
    dst.write(value if op1 is None else op1(value, _value(operand1, value)))


def scalar_tensor_tensor(
    dst: Tile, data: Tile, op0: Any, operand0: Any, op1: Any, operand1: Tile
) -> None:
    value = data.read()
    dst.write(op1(op0(value, _value(operand0, value)), operand1.read()))


def tensor_reduce(dst: Tile, op: Any, data: Tile, axis: int, negate: bool = False) -> None:
    assert axis == data.data.ndim - 1, "the kernels here reduce the last axis"
    value = op.reduce(data.read(), axis=axis)
    dst.write(-value if negate else value)


def reciprocal(dst: Tile, data: Tile) -> None:
    dst.write(1.0 / data.read())


def tensor_tensor_scan(
    dst: Tile, data0: Tile, data1: Tile, initial: Any, op0: Any, op1: Any
) -> None:
    first, second = data0.read(), data1.read()
    state = np.broadcast_to(_value(initial, first), (len(first), 1))[:, 0]
    result = np.empty(first.shape, np.float32)
    for i in range(first.shape[1]):
        state = op1(op0(first[:, i], state), second[:, i])
        result[:, i] = state
    dst.write(result)


def bn_stats(dst: Tile, data: Tile) -> None:
    assert data.shape[1] <= 512
    value, records = data.read(), []
    for part in (value[:, 0::2], value[:, 1::2]):
        count = part.shape[1]
        records += [np.full(len(part), count), part.mean(axis=1), part.var(axis=1) * count]
    dst.write(np.stack(records, axis=1))


def bn_aggr(dst: Tile, data: Tile) -> None:
    count, mean, spread = np.moveaxis(data.read().reshape(data.shape[0], -1, 3), 2, 0)
    total = count.sum(axis=1)
    centre = (count * mean).sum(axis=1) / total
    variance = (spread + count * (mean - centre[:, None]) ** 2).sum(axis=1) / total
    dst.write(np.stack([centre, variance], axis=1))


def affine_select(
    dst: Tile,
    pattern: Sequence[Sequence[int]],
    offset: int,
    channel_multiplier: int,
    on_true_tile: Tile,
    on_false_value: float,
    cmp_op: Any,
) -> None:
    assert on_true_tile.buffer == dst.buffer == "sbuf", "GpSimd does not reach PSUM"
    ((step, count),) = pattern
    place = np.arange(dst.shape[0])[:, None] * channel_multiplier + np.arange(count) * step
    dst.write(np.where(cmp_op(place + offset, 0), on_true_tile.read(), on_false_value))


def max8(dst: Tile, src: Tile) -> None:
    dst.write(-np.sort(-src.read(), axis=1)[:, :8])


def _places(data: Array, vals: Array) -> Array:
    return (data[:, None, :] == vals[:, :, None]).argmax(axis=2)


def nc_find_index8(dst: Tile, data: Tile, vals: Tile) -> None:
    dst.write(_places(data.read(), vals.read()))


def nc_match_replace8(dst: Tile, data: Tile, vals: Tile, imm: float) -> None:
    value = data.read().copy()
    np.put_along_axis(value, _places(value, vals.read()), imm, axis=1)
    dst.write(value)


def _gelu(x: Array) -> Array:
    # Abramowitz and Stegun 7.1.26: error below 1.5e-7
    z = np.abs(x) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * z)
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t) * t
    erf = np.sign(x) * (1.0 - (series + 0.254829592 * t) * np.exp(-z * z))
    return 0.5 * x * (1.0 + erf)


LANGUAGE = {
    "ndarray": ndarray,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "greater_equal": np.greater_equal,
    "exp": np.exp,
    "log": np.log,
    "square": np.square,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "copy": np.array,
    "gelu": _gelu,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "program_id": lambda axis: 0,
    "num_programs": lambda axis: 1,
    "program_ndim": lambda: 0,
    "shared_hbm": "hbm",
    "private_hbm": "hbm",
    "sbuf": "sbuf",
    "psum": "psum",
    **{name: name for name in ("float32", "bfloat16", "float16", "float8_e4m3", "int32", "uint32")},
}

ISA = {
    "engine": types.SimpleNamespace(tensor="tensor", vector="vector"),
    "dge_mode": types.SimpleNamespace(unknown="unknown", none="none", hwdge="hwdge"),
    "reduce_cmd": types.SimpleNamespace(reset_reduce="reset_reduce"),
    "matmul_perf_mode": types.SimpleNamespace(double_row="double_row"),
    "core_barrier": lambda data, cores: None,
}
for _call in (
    dma_copy,
    dma_transpose,
    tensor_copy,
    memset,
    nc_matmul,
    nc_transpose,
    activation,
    activation_reduce,
    tensor_tensor,
    tensor_scalar,
    scalar_tensor_tensor,
    tensor_reduce,
    reciprocal,
    tensor_tensor_scan,
    bn_stats,
    bn_aggr,
    affine_select,
    max8,
    nc_find_index8,
    nc_match_replace8,
):
    ISA[_call.__name__] = _call


def jit(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a kernel on arrays; what it writes into its arguments is in them afterwards."""

    def run(*args: Any, **kwargs: Any) -> Any:
        def given(x: Any) -> Any:
            return Tile(x, "float32", "hbm") if isinstance(x, np.ndarray) else x

        result = kernel(*map(given, args), **{name: given(x) for name, x in kwargs.items()})
        return tuple(t.data for t in result) if isinstance(result, tuple) else result.data

    return run


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """`import nki` finds this stand-in inside; what was there before is put back."""
    names = ("nki", "nki.isa", "nki.language")
    before = {name: sys.modules.get(name) for name in names}
    nki, isa, language = (types.ModuleType(name) for name in names)
    vars(isa).update(ISA)
    vars(language).update(LANGUAGE)
    vars(nki).update(jit=jit, isa=isa, language=language)
    sys.modules.update(zip(names, (nki, isa, language)))
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
