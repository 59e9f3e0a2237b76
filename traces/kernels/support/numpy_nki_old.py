"""The stand-in of numpy_nki for the older API, `neuronxcc.nki`: calls return tiles.

Masks, index grids and par_dim as the kernels of traces/kernels/old use them.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import numpy_nki

Array = np.ndarray


class Tile:
    """An array, or places in one: an index with arrays is looked up when it is read or written."""

    def __init__(self, data: Array, dtype: str = "float32", places: tuple[Array, ...] = ()):
        self.data, self.dtype, self.places = data, dtype, places

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def __getitem__(self, key: Any) -> Tile:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, np.ndarray) for k in keys):
            return Tile(self.data, self.dtype, tuple(np.asarray(k) for k in keys))
        for k, size in zip(keys, self.shape):
            last = k.stop if isinstance(k, slice) else k + 1
            assert last is None or last <= size, f"index {k} of a dimension of {size}"
        return Tile(self.data[keys], self.dtype)

    def __setitem__(self, key: Any, value: Tile) -> None:
        self[key].write(value.read())

    def __iadd__(self, other: Tile) -> Tile:
        self.data += other.read()
        return self

    def broadcast_to(self, shape: Sequence[int]) -> Tile:
        return Tile(np.broadcast_to(self.data, shape), self.dtype)

    def read(self, mask: Array | None = None) -> Array:
        if not self.places:
            return self.data
        inside = [np.clip(p, 0, n - 1) for p, n in zip(self.places, self.shape)]
        if mask is None:
            assert all((a == b).all() for a, b in zip(inside, self.places)), "out of bounds"
        return self.data[tuple(inside)]

    def write(self, value: Array, mask: Array | None = None) -> None:
        if not self.places:
            self.data[...] = value
            return
        places = np.broadcast_arrays(*self.places)
        chosen = np.ones(places[0].shape, bool) if mask is None else mask
        chosen = np.broadcast_to(chosen, places[0].shape)
        self.data[tuple(p[chosen] for p in places)] = np.broadcast_to(value, chosen.shape)[chosen]


def _operand(value: Any) -> Any:
    return value.read() if isinstance(value, Tile) else value


def ndarray(shape: Sequence[int], dtype: str, buffer: str = "sbuf") -> Tile:
    return Tile(np.full(tuple(shape), np.nan, np.float32), dtype)


def zeros(shape: Sequence[int], dtype: str, buffer: str = "sbuf") -> Tile:
    return Tile(np.zeros(tuple(shape), np.float32), dtype)


def load(src: Tile, mask: Array | None = None) -> Tile:
    return Tile(np.array(src.read(mask)), src.dtype)


def store(dst: Tile, value: Tile, mask: Array | None = None) -> None:
    dst.write(value.read(), mask)


def copy(src: Tile, dtype: str = "float32") -> Tile:
    return Tile(np.array(src.read()), dtype)


def matmul(x: Tile, y: Tile, transpose_x: bool = False) -> Tile:
    assert transpose_x, "the kernels here have the stationary side transposed"
    return Tile(x.read().T @ y.read())


def nc_transpose(data: Tile) -> Tile:
    return Tile(np.array(data.read().T))


def tensor_reduce(
    op: Any, data: Tile, axis: Sequence[int], negate: bool = False, keepdims: bool = False, **_: Any
) -> Tile:
    value = op.reduce(data.read(), axis=tuple(axis), keepdims=keepdims)
    return Tile(-value if negate else value)


def activation(op: Any, data: Tile, bias: Any = 0.0, scale: Any = 1.0, **_: Any) -> Tile:
    return Tile(op(data.read() * _operand(scale) + _operand(bias)))


def activation_reduce(
    op: Any, data: Tile, reduce_op: Any, reduce_res: Tile, bias: Any = 0.0, **_: Any
) -> Tile:
    result = activation(op, data, bias)
    reduce_res.write(reduce_op.reduce(result.data, axis=1, keepdims=True))
    return result


def reciprocal(data: Tile, **_: Any) -> Tile:
    return Tile(1.0 / data.read())


def tensor_scalar(data: Tile, op0: Any, operand0: Any, **_: Any) -> Tile:
    return Tile(op0(data.read(), _operand(operand0)))


def tensor_tensor(data1: Tile, data2: Tile, op: Any, **_: Any) -> Tile:
    return Tile(op(data1.read(), data2.read()))


LANGUAGE = {
    **{name: numpy_nki.LANGUAGE[name] for name in ("add", "multiply", "exp", "square", "rsqrt")},
    **{name: name for name in ("float32", "sbuf", "psum", "shared_hbm")},
    **{name: range for name in ("affine_range", "sequential_range")},
    "max": np.maximum,
    "ndarray": ndarray,
    "zeros": zeros,
    "load": load,
    "store": store,
    "copy": copy,
    "matmul": matmul,
    "arange": np.arange,
    "mgrid": np.mgrid,
    "ds": lambda start, size: slice(start, start + size),
    "par_dim": lambda size: size,
}

ISA = {
    "nc_matmul": lambda stationary, moving: matmul(stationary, moving, transpose_x=True),
    "nc_transpose": nc_transpose,
    "tensor_reduce": tensor_reduce,
    "activation": activation,
    "activation_reduce": activation_reduce,
    "reciprocal": reciprocal,
    "tensor_scalar": tensor_scalar,
    "tensor_tensor": tensor_tensor,
}


def jit(kernel: Callable[..., Tile]) -> Callable[..., Array]:
    """Runs a kernel on arrays."""

    def run(**kwargs: Any) -> Array:
        given = {k: Tile(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
        return kernel(**given).data

    return run


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """`import neuronxcc.nki` finds this stand-in inside; what was there before is put back."""
    names = ("neuronxcc", "neuronxcc.nki", "neuronxcc.nki.isa", "neuronxcc.nki.language")
    before = {name: sys.modules.get(name) for name in names}
    top, nki, isa, language = (types.ModuleType(name) for name in names)
    vars(isa).update(ISA)
    vars(language).update(LANGUAGE)
    vars(nki).update(jit=jit, isa=isa, language=language)
    vars(top).update(nki=nki)
    sys.modules.update(zip(names, (top, nki, isa, language)))
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
