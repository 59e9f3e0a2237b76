"""Arguments of a kernel: what `--arg name=value` says, and what a caller in Python gives.

A tensor is a `Shape`: shape, dtype, and contents when they are known. Everything else is a
Python value.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trnsim import stand_in

if TYPE_CHECKING:
    from trnsim.session import Session

FORMS = """\
  name=bf16[4096,4096]      a tensor in HBM: dtype and shape
  name=@file.npy            a tensor with contents, which may steer loops; bf16@file.npy: of this dtype
  name=0.125  name=True  name=None  name=-1  name="text"  name=(1,2)
  name=nl.add  name=nisa.engine.vector  name=SOME_CONSTANT   as the kernel's file, or nl, nisa, np, math have it
  dtype=bf16                a dtype
  name=(bf16[8,8],bf16[8,8])   tuples, lists and {"key": value} of these"""

_ISA_DTYPES = (
    "fp32 tf32 bf16 fp16 fp8_e3m4 fp8_e4m3 fp8_e5m2 int32 uint32 int16 uint16 int8 uint8"
).split()
_PUBLIC_DTYPES = (
    "float32 tfloat32 bfloat16 float16 float8_e3m4 float8_e4m3 float8_e4m3fn float8_e5m2 bool"
).split()
DTYPES = frozenset(_ISA_DTYPES + _PUBLIC_DTYPES)


class SpecError(ValueError):
    """An argument that cannot be understood, or that the kernel does not take."""


class Shape:
    """A tensor to be: `Shape("bf16", 4096, 4096)`, or `Shape("bf16", (4096, 4096))`.

    contents: a NumPy array of the same shape whose values may steer loops.
    """

    def __init__(self, dtype: Any, *shape: Any, contents: Any = None) -> None:
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        self.shape = tuple(int(size) for size in shape)
        self.dtype = dtype
        self.contents = contents
        if not self.shape or min(self.shape) < 1:
            raise SpecError(f"expected sizes of at least 1, got {self.shape}")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def isa_dtype(self) -> str:
        from trnsim import dtypes

        if isinstance(self.dtype, str) and self.dtype in _ISA_DTYPES:
            return self.dtype
        return dtypes.dtype_of(self.dtype, "argument", "dtype").isa

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Shape)
            and (self.shape, str(self.dtype)) == (other.shape, str(other.dtype))
            and self.contents is other.contents
        )

    def __hash__(self) -> int:
        return hash((self.shape, str(self.dtype)))


def parse(text: str, scope: Mapping[str, Any] = {}) -> tuple[str, Any]:
    """The name and the value of `name=value`. scope: the names of the kernel's file."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier():
        raise SpecError(f"--arg {text}: expected name=value, such as x=bf16[128,512]")
    try:
        return name, value_of(value.strip(), scope)
    except SpecError as error:
        raise SpecError(f"--arg {text}: {error}") from None


def value_of(text: str, scope: Mapping[str, Any] = {}) -> Any:
    """The value that a spec's right side means."""
    dtype, at, path = text.partition("@")
    if at and (not dtype or dtype in DTYPES):
        return _load(path, dtype or None)
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise SpecError(
            'expected a tensor (bf16[128,512]), @file.npy or a Python value; text is "quoted"'
        ) from None
    return _Evaluator(scope).value(node)


class _Evaluator:
    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.scope = scope

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(self.value(item) for item in node.elts)
        if isinstance(node, ast.List):
            return [self.value(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            return {
                self.value(key): self.value(item)
                for key, item in zip(node.keys, node.values)
                if key is not None
            }
        if isinstance(node, (ast.UnaryOp, ast.BinOp)):
            return self.arithmetic(node)
        if isinstance(node, ast.Subscript):
            return self.tensor(node)
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Call):
            raise SpecError(
                f"{ast.unparse(node)}: an object is made in Python: write a file with a function "
                "that imports the kernel and calls it with the object, and trace that function"
            )
        raise SpecError(f"{ast.unparse(node)}: expected a tensor, a Python value or a name")

    def arithmetic(self, node: ast.UnaryOp | ast.BinOp) -> Any:
        parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        values = [self.value(part) for part in parts]
        work = _OPERATORS.get(type(node.op))
        if work is None or not all(isinstance(value, (int, float)) for value in values):
            raise SpecError(f"{ast.unparse(node)}: expected arithmetic on numbers, or quoted text")
        try:
            return work(*values)
        except (ArithmeticError, TypeError) as error:
            raise SpecError(f"{ast.unparse(node)}: {error}") from None

    def tensor(self, node: ast.Subscript) -> Shape:
        dtype = ast.unparse(node.value)
        last = dtype.rpartition(".")[2]
        if last not in DTYPES:
            raise SpecError(f"expected a dtype before [, got {dtype}{near(last, DTYPES)}")
        sizes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        shape = [self.value(size) for size in sizes]
        if not shape or not all(type(size) is int and size > 0 for size in shape):
            raise SpecError(f"expected sizes of at least 1, got [{ast.unparse(node.slice)}]")
        return Shape(last, *shape)

    def name(self, name: str) -> Any:
        if name in DTYPES:
            return _dtype(name)
        if name in self.scope:
            return self.scope[name]
        if name in _NUMBERS:
            return _NUMBERS[name]
        known = [*DTYPES, *(key for key in self.scope if not key.startswith("_"))]
        raise SpecError(
            f"{name} is neither a dtype nor a name of the kernel's file{near(name, known)}; "
            f'text is quoted: "{name}"'
        )

    def attribute(self, node: ast.Attribute) -> Any:
        path = ast.unparse(node).split(".")
        if not all(part.isidentifier() for part in path):
            raise SpecError(f"{ast.unparse(node)}: expected a dotted name")
        value = self.scope[path[0]] if path[0] in self.scope else _module(path[0])
        if value is None:
            roots = [*_MODULES, *(key for key in self.scope if not key.startswith("_"))]
            raise SpecError(f"{path[0]}: unknown name{near(path[0], roots)}")
        for done, part in enumerate(path[1:], 1):
            try:
                value = getattr(value, part)
            except AttributeError:
                raise SpecError(
                    f"{'.'.join(path[:done])} has no {part}{near(part, dir(value))}"
                ) from None
        return value


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.UAdd: lambda a: +a,
    ast.USub: lambda a: -a,
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}
_NUMBERS = {"inf": math.inf, "nan": math.nan}
_MODULES = {
    "math": "math",
    "nisa": "nki.isa",
    "nki": "nki",
    "nl": "nki.language",
    "np": "numpy",
    "numpy": "numpy",
}


def _module(name: str) -> Any:
    import importlib

    return importlib.import_module(_MODULES[name]) if name in _MODULES else None


def _dtype(name: str) -> Any:
    from trnsim import dtypes

    return dtypes.dtype_of(name)


def _load(path: str, dtype: str | None) -> Shape:
    import numpy as np

    try:
        contents = np.load(path, allow_pickle=False)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise SpecError(f"{path}: expected a NumPy file (.npy): {error}") from None
    if not isinstance(contents, np.ndarray):
        raise SpecError(f"{path}: expected one array (.npy), got an archive")
    shape = of_array(contents, path)
    if dtype is not None:
        shape.dtype = dtype
    return shape


# NumPy has no such types: it gets wider ones that remember the name, so that
# `a.astype(nl.bfloat16)` and `np.zeros(3, ml_dtypes.bfloat16)` work in scripts.
_TAUGHT = {
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float8_e3m4": "fp8_e3m4",
    "float8_e4m3": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
}


def teach_numpy() -> None:
    """Lets NumPy know the device's types by name; their values are kept as float32."""
    import numpy as np

    known = np.core.numerictypes.sctypeDict
    for name, isa in _TAUGHT.items():
        if name not in known:
            known[name] = np.dtype(np.float32, metadata={"trnsim": isa})


def of_array(array: Any, what: str) -> Shape:
    """The tensor that a NumPy array becomes; 64-bit numbers become 32-bit ones, as on the device."""
    narrow = {"float64": "fp32", "int64": "int32", "uint64": "uint32", "bool": "uint8"}
    names = {"float32": "fp32", "float16": "fp16", **narrow}
    name = array.dtype.name
    taught = (array.dtype.metadata or {}).get("trnsim")
    if taught is not None:
        name = taught
    elif name in names:
        name = names[name]
    elif name not in DTYPES:
        raise SpecError(f"{what}: expected numbers that the device has, got dtype {name}")
    if not array.shape:
        raise SpecError(f"{what}: expected at least one dimension, got a single number")
    return Shape(name, *array.shape, contents=array)


def near(name: str, known: Sequence[str] | frozenset[str]) -> str:
    """`; did you mean ...?` with the nearest known names, or nothing."""
    close = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def signature_of(kernel: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(kernel)
    except (TypeError, ValueError):
        return None


def bind(
    kernel: Callable[..., Any], name: str, given: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The positional and keyword arguments of a call that gives each name its value."""
    signature = signature_of(kernel)
    if signature is None:
        return [], dict(given)
    shown = f"{name}{_short(signature)}"
    kinds = inspect.Parameter
    takes = {
        key: parameter
        for key, parameter in signature.parameters.items()
        if parameter.kind is not kinds.VAR_KEYWORD
    }
    keywords = any(p.kind is kinds.VAR_KEYWORD for p in signature.parameters.values())
    unknown = [key for key in given if key not in takes]
    if unknown and not keywords:
        key = unknown[0]
        raise SpecError(f"--arg {key}: no such argument of {shown}{near(key, list(takes))}")
    missing = [
        key
        for key, parameter in takes.items()
        if key not in given
        and parameter.default is kinds.empty
        and parameter.kind is not kinds.VAR_POSITIONAL
    ]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise SpecError(f"missing argument{plural} {', '.join(missing)} of {shown}")
    args: list[Any] = []
    kwargs = {key: given[key] for key in unknown}
    more = next((k for k, p in takes.items() if p.kind is kinds.VAR_POSITIONAL), None)
    for key, parameter in takes.items():
        if parameter.kind is kinds.VAR_POSITIONAL:
            rest = given.get(key, ())
            args.extend(rest if isinstance(rest, (tuple, list)) else (rest,))
        elif parameter.kind is kinds.POSITIONAL_ONLY or (
            parameter.kind is kinds.POSITIONAL_OR_KEYWORD and more in given
        ):
            if key in given or more in given:
                args.append(given.get(key, parameter.default))
        elif key in given:
            kwargs[key] = given[key]
    return args, kwargs


def _short(signature: inspect.Signature) -> str:
    """The signature without annotations, which may be long."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def shapes_in(value: Any, what: str) -> Any:
    """The same value with each tensor of a caller's, of whatever package, as a Shape."""
    if isinstance(value, Shape) or value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        parts = [shapes_in(part, f"{what}[{place}]") for place, part in enumerate(value)]
        if isinstance(value, list):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is dict:
        return {key: shapes_in(part, f"{what}[{key!r}]") for key, part in value.items()}
    if isinstance(value, stand_in.StandIn) and not isinstance(value, stand_in.HostTensor):
        if getattr(value, "name", None).__class__ is str:  # a dtype
            return value
        raise SpecError(
            f"{what}: the shape of {stand_in.name_of(value)} is not known: {value._trnsim_module} "
            "is not installed; give a NumPy array or trnsim.Shape"
        )
    if type(value).__module__ == "numpy":
        import numpy as np

        if isinstance(value, np.ndarray):
            return of_array(value, what)
        if isinstance(value, np.generic):
            return value.item()
        return value
    if isinstance(value, type) or type(value).__module__ in ("trnsim.tensor", "trnsim.contents"):
        return value
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return value
    shape = tuple(value.shape)
    return Shape(_dtype_name(value.dtype), *shape)


def _dtype_name(dtype: Any) -> Any:
    name = getattr(dtype, "name", None)
    name = name if isinstance(name, str) else str(dtype)
    last = name.rpartition(".")[2]
    wide = {"float64": "float32", "int64": "int32", "uint64": "uint32", "bool": "uint8"}
    return wide.get(last, last)


def tensors_in(value: Any, name: str, session: Session) -> Any:
    """The same value with each Shape as an input of the session's program."""
    if isinstance(value, Shape):
        return input_tensor(value, name, session)
    if isinstance(value, (tuple, list)):
        parts = [tensors_in(part, f"{name}.{place}", session) for place, part in enumerate(value)]
        if isinstance(value, list):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is dict:
        return {key: tensors_in(part, f"{name}.{key}", session) for key, part in value.items()}
    return value


def input_tensor(shape: Shape, name: str, session: Session) -> Any:
    from trnsim.contents import ContentsTensor
    from trnsim.tensor import Tensor

    view = session.builder.tensor(
        "hbm", shape.shape, shape.isa_dtype, name=session.unique_name(name), kind="input"
    )
    session.input_storages.add(view.storage)
    return Tensor(view) if shape.contents is None else ContentsTensor(view, shape.contents)
