"""Element types, as both generations of NKI spell them.

A DType is a string that equals its name ("float32"), so that new-style code compares it with
strings, and it also equals NumPy's types of the same name, as old-style code expects.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from trnsim.errors import wrong

__all__ = ["DType", "FloatInfo", "dtype_of", "finfo", "of_isa", "promote", "sizeinbytes"]


class DType(str):
    """A type's name; `isa` is the builder's name for it, `itemsize` its bytes in memory."""

    isa: str
    itemsize: int
    kind: str  # "f", "i", "u" or "b", as NumPy has it
    generation: str  # the oldest processor that has it

    def __new__(
        cls, name: str, isa: str, itemsize: int, kind: str, generation: str = "trn2"
    ) -> "DType":
        self = super().__new__(cls, name)
        self.isa = isa
        self.itemsize = itemsize
        self.kind = kind
        self.generation = generation
        return self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, str):
            return str.__eq__(self, other) or _find(other) is self
        return other is not None and _find(other) is self

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __call__(self, value: Any = 0) -> Any:
        """A constant of this type, as NumPy's types make them."""
        return float(value) if self.kind == "f" else int(value)

    def __repr__(self) -> str:
        return f"nl.{str(self)}"

    @property
    def name(self) -> str:
        return str(self)

    @property
    def type(self) -> "DType":
        return self


float32 = DType("float32", "fp32", 4, "f")
tfloat32 = DType("tfloat32", "tf32", 4, "f")
bfloat16 = DType("bfloat16", "bf16", 2, "f")
float16 = DType("float16", "fp16", 2, "f")
float8_e3m4 = DType("float8_e3m4", "fp8_e3m4", 1, "f")
float8_e4m3 = DType("float8_e4m3", "fp8_e4m3", 1, "f")
float8_e4m3fn = DType("float8_e4m3fn", "fp8_e4m3", 1, "f")
float8_e5m2 = DType("float8_e5m2", "fp8_e5m2", 1, "f")
int32 = DType("int32", "int32", 4, "i")
uint32 = DType("uint32", "uint32", 4, "u")
int16 = DType("int16", "int16", 2, "i")
uint16 = DType("uint16", "uint16", 2, "u")
int8 = DType("int8", "int8", 1, "i")
uint8 = DType("uint8", "uint8", 1, "u")
bool_ = DType("bool", "uint8", 1, "b")
# Types that only NeuronCore-v4 knows: names exist, tensors of them are refused.
float8_e8m0fnu = DType("float8_e8m0fnu", "", 1, "f", "trn3")
float8_e4m3fn_x4 = DType("float8_e4m3fn_x4", "", 4, "f", "trn3")
float8_e5m2_x4 = DType("float8_e5m2_x4", "", 4, "f", "trn3")
float4_e2m1fn_x4 = DType("float4_e2m1fn_x4", "", 2, "f", "trn3")

ALL = (
    float32,
    tfloat32,
    bfloat16,
    float16,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    int32,
    uint32,
    int16,
    uint16,
    int8,
    uint8,
    bool_,
    float8_e8m0fnu,
    float8_e4m3fn_x4,
    float8_e5m2_x4,
    float4_e2m1fn_x4,
)

_BY_NAME: dict[str, DType] = {str(dtype): dtype for dtype in ALL}
_BY_NAME.update({dtype.isa: dtype for dtype in reversed(ALL) if dtype.isa and dtype is not bool_})
_BY_NAME["fp8_e4m3"] = float8_e4m3
_BY_NAME["uint8"] = uint8
_BY_NAME.update(
    {
        "bool_": bool_,
        "bfp16": bfloat16,
        "half": float16,
        "float": float32,
        "float8e4": float8_e4m3,
        "float8e5": float8_e5m2,
        "float8e3": float8_e3m4,
    }
)
_BY_ISA: dict[str, DType] = {dtype.isa: dtype for dtype in reversed(ALL) if dtype.isa}
_BY_ISA.update({"uint8": uint8, "fp8_e4m3": float8_e4m3})
_BY_OBJECT: dict[Any, DType] = {}


def _find(what: Any) -> DType | None:
    if type(what) is DType:
        return what
    if isinstance(what, str):
        return _BY_NAME.get(str(what).rsplit(".", 1)[-1])
    try:
        return _BY_OBJECT[what]
    except (KeyError, TypeError):
        pass
    # NumPy's types and dtypes, those of ml_dtypes and of torch: by name.
    name = getattr(what, "name", None) or getattr(what, "__name__", None)
    if not isinstance(name, str):
        name = str(what)
    if type(what).__module__ == "trnsim.stand_in":
        from trnsim import stand_in

        name = stand_in.name_of(what) or ""
    elif what is float:
        name = "float32"
    elif what is int:
        name = "int32"
    elif what is bool:
        name = "bool"
    found = _BY_NAME.get(name.rsplit(".", 1)[-1])
    if found is not None:
        try:
            _BY_OBJECT[what] = found
        except TypeError:
            pass
    return found


def dtype_of(what: Any, call: str = "dtype", operand: str = "dtype") -> DType:
    """The DType that a name, a NumPy type or another package's type stands for."""
    found = _find(what)
    if found is None:
        names = ", ".join(str(dtype) for dtype in ALL if dtype.generation == "trn2")
        wrong(f"{call}: {operand}: expected one of {names}, got {what}")
    if found.generation != "trn2":
        wrong(f"{call}: {operand}: {found} needs trn3 (NeuronCore-v4), the target is trn2")
    return found


def of_isa(name: str) -> DType:
    """The DType of the builder's name."""
    return _BY_ISA[name]


def sizeinbytes(what: Any) -> int:
    """Bytes of one element (`nki.language.constants.sizeinbytes`)."""
    found = _find(what)
    if found is None:
        wrong(f"sizeinbytes: dtype: expected a dtype, got {what}")
    return found.itemsize


_RANK = {"fp8_e3m4": 1, "fp8_e5m2": 1, "fp8_e4m3": 1, "fp16": 2, "bf16": 2, "tf32": 3, "fp32": 4}


def promote(a: DType, b: DType) -> DType:
    """The type of a result of two tiles, when the kernel names none."""
    if a is b:
        return a
    if (a.kind == "f") != (b.kind == "f"):
        return a if a.kind == "f" else b
    if a.kind == "f":
        if _RANK[a.isa] == _RANK[b.isa]:
            return float32 if a.itemsize == 2 else a
        return a if _RANK[a.isa] > _RANK[b.isa] else b
    return a if a.itemsize >= b.itemsize else b


class FloatInfo:
    """What `nl.finfo` and `nl.fp32` offer: the limits of a type, as Python floats."""

    def __init__(self, dtype: DType, largest: float, eps: float, tiny: float) -> None:
        self.dtype = dtype
        self.bits = 8 * dtype.itemsize
        self.max = largest
        self.min = -largest
        self.eps = eps
        self.tiny = tiny
        self.smallest_normal = tiny


_INFO = {
    "fp32": FloatInfo(float32, 3.4028234663852886e38, 2.0**-23, 2.0**-126),
    "tf32": FloatInfo(tfloat32, 3.4011621342146535e38, 2.0**-10, 2.0**-126),
    "bf16": FloatInfo(bfloat16, 3.3895313892515355e38, 2.0**-7, 2.0**-126),
    "fp16": FloatInfo(float16, 65504.0, 2.0**-10, 2.0**-14),
    "fp8_e3m4": FloatInfo(float8_e3m4, 15.5, 2.0**-4, 2.0**-2),
    "fp8_e4m3": FloatInfo(float8_e4m3, 240.0, 2.0**-3, 2.0**-6),
    "fp8_e5m2": FloatInfo(float8_e5m2, 57344.0, 2.0**-2, 2.0**-14),
}


def finfo(dtype: Any) -> FloatInfo:
    """The limits of a floating-point type."""
    found = dtype_of(dtype, "nl.finfo")
    if found is float8_e4m3fn:
        return FloatInfo(float8_e4m3fn, 448.0, 2.0**-3, 2.0**-6)
    if found.isa not in _INFO:
        wrong(f"nl.finfo: dtype: expected a floating-point type, got {found}")
    return _INFO[found.isa]


fp32 = _INFO["fp32"]
bfp16 = _INFO["bf16"]

# NumPy cannot make its own dtype of every name; this says which it can.
_NUMPY: dict[str, Callable[..., Any]] = {
    "float32": np.float32,
    "float16": np.float16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int16": np.int16,
    "uint16": np.uint16,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.bool_,
}
for _name, _type in _NUMPY.items():
    _BY_OBJECT[_type] = _BY_NAME[_name]
    _BY_OBJECT[np.dtype(_type)] = _BY_NAME[_name]
