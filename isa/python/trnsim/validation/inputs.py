"""The launches of a kernel for the settings of a measurement.

A setting is a name and a value, as in `M=512 K=4096 N=1024 dtype=bf16 tiles_m=4`. Those that are
sizes make the shapes of the kernel's tensors, `dtype` is the dtype of all, and the rest are
arguments of the kernel under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Settings = Mapping[str, Any]
Shapes = dict[str, tuple[int, ...]]


class InputsError(ValueError):
    """A kernel that is not known, or settings that it does not take."""


@dataclass(frozen=True)
class Launch:
    """One kernel with its arguments. kernel: `file.function`."""

    kernel: str
    dtype: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    arguments: tuple[tuple[str, Any], ...]

    @property
    def work(self) -> int:
        """A number that grows with the time that tracing and running take."""
        sizes = [size for _, shape in self.shapes for size in shape]
        product = 1
        for size in sorted(set(sizes))[-3:]:
            product *= size
        return product


@dataclass(frozen=True)
class _Kernel:
    """shapes: of the kernel's tensors. sizes: the settings that these use up. launches: what is
    launched in its place, one after the other, each with the shapes of its own tensors."""

    shapes: Callable[[Settings], Shapes]
    sizes: str
    launches: tuple[tuple[str, Callable[[Settings], Shapes]], ...] = ()


def _matmul(s: Settings) -> Shapes:
    return {"lhsT": (s["K"], s["M"]), "rhs": (s["K"], s["N"])}


def _row_major(s: Settings) -> Shapes:
    return {"lhs": (s["M"], s["K"]), "rhs": (s["K"], s["N"])}


def _blocked_order(s: Settings) -> Shapes:
    lhs = (s["M"], s["K"]) if s.get("transpose_lhs") else (s["K"], s["M"])
    return {"lhs": lhs, "rhs": (s["K"], s["N"])}


def _batched(s: Settings) -> Shapes:
    return {"lhs": (s["batch"], s["M"], s["K"]), "rhs": (s["batch"], s["K"], s["N"])}


def _ffn(s: Settings) -> Shapes:
    up, down = (s["hidden"], s["intermediate"]), (s["intermediate"], s["hidden"])
    return {"x": (s["tokens"], s["hidden"]), "w_gate": up, "w_up": up, "w_down": down}


def _mlp(s: Settings) -> Shapes:
    return {**_matmul(s), "bias": (1, s["N"])}


def _attention(s: Settings) -> Shapes:
    return dict.fromkeys(("q", "k", "v"), (s["d_head"], s["seq"]))


def _vectors(s: Settings) -> Shapes:
    return dict.fromkeys(("a", "b"), (s["elements"],))


def _matrix(s: Settings) -> Shapes:
    return {"x": (s["rows"], s["columns"])}


def _adamw(s: Settings) -> Shapes:
    return dict.fromkeys(("p", "g", "m", "v"), (s["rows"], s["columns"]))


def _mamba(s: Settings) -> Shapes:
    channels, seq, states = s["channels"], s["seq"], s["states"]
    long = dict.fromkeys(("u", "delta"), (channels, seq))
    return {**long, "A": (channels, states), "B": (states, seq), "C": (states, seq)}


def _dma(s: Settings) -> Shapes:
    return {"x": (s["count"], 128, s["free"])}


_KERNELS: dict[str, _Kernel] = {
    "matmul.tiled": _Kernel(_matmul, "M K N"),
    "matmul.hoisted": _Kernel(_matmul, "M K N"),
    "matmul.hoisted_lhs": _Kernel(_matmul, "M K N"),
    "matmul.blocked_free": _Kernel(_matmul, "M K N"),
    "matmul.blocked_all": _Kernel(_matmul, "M K N"),
    "matmul.blocked_order": _Kernel(_blocked_order, "M K N"),
    "dense.swiglu": _Kernel(_ffn, "tokens hidden intermediate"),
    "dense.product": _Kernel(_row_major, "M K N"),
    "dense.transposed_product": _Kernel(_matmul, "M K N"),
    "dense.product_softmax": _Kernel(_batched, "batch M K N"),
    "ffn.blocked": _Kernel(_ffn, "tokens hidden intermediate"),
    "mlp.gelu_unfused": _Kernel(
        _mlp, "M K N", (("mlp.product", _mlp), ("mlp.gelu", lambda s: {"x": (s["M"], s["N"])}))
    ),
    "mlp.gelu_fused_scalar": _Kernel(_mlp, "M K N"),
    "mlp.gelu_taylor_vector": _Kernel(_mlp, "M K N"),
    "attention.fused": _Kernel(_attention, "seq d_head"),
    "attention.unfused": _Kernel(_attention, "seq d_head"),
    "vector_add.streamed": _Kernel(_vectors, "elements"),
    "transpose.tensor_tiles": _Kernel(_matrix, "rows columns"),
    "elementwise.silu": _Kernel(_matrix, "rows columns"),
    "elementwise.adamw": _Kernel(_adamw, "rows columns"),
    "mamba.states_outside": _Kernel(_mamba, "channels seq states"),
    "mamba.channels_outside": _Kernel(_mamba, "channels seq states"),
    "mamba.channels_outside_reload": _Kernel(_mamba, "channels seq states"),
    "mamba.length_tiled": _Kernel(_mamba, "channels seq states"),
    "dma.loads": _Kernel(_dma, "count free"),
}


def launches(kernel: str, settings: Settings) -> list[Launch]:
    """What is launched, one after the other, for a kernel with its settings."""
    from trnsim import specs

    if kernel not in _KERNELS:
        raise InputsError(f"kernel: no kernel {kernel}{specs.near(kernel, list(_KERNELS))}")
    known = _KERNELS[kernel]
    sizes = known.sizes.split()
    for name in (*sizes, "dtype"):
        if name not in settings:
            raise InputsError(f"args: {kernel} needs {name}")
    for name in sizes:
        if not isinstance(settings[name], int) or settings[name] < 1:
            raise InputsError(f"args: {name}: expected a size, got {settings[name]}")
    dtype = settings["dtype"]
    if dtype not in specs.DTYPES:
        raise InputsError(f"args: dtype: expected a dtype such as bf16, got {dtype}")
    rest = {n: value for n, value in settings.items() if n not in sizes and n != "dtype"}
    arguments = tuple(sorted(rest.items()))
    return [
        Launch(name, dtype, tuple(shapes(settings).items()), arguments)
        for name, shapes in known.launches or ((kernel, known.shapes),)
    ]


def workload(kernel: str, settings: Settings) -> tuple[Any, ...]:
    """What variants of one workload have in common: the kernel's file, the sizes and the dtype."""
    known = _KERNELS.get(kernel)
    sizes = known.sizes.split() if known else sorted(settings)
    file = kernel.partition(".")[0]
    return (file, *((name, settings.get(name)) for name in sizes), settings.get("dtype"))
