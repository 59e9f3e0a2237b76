"""Inert modules for imports that are not installed: torch, jax, ml_dtypes, test helpers.

A finder at the very end of sys.meta_path answers only for imports in the user's own files, and
never for relative imports or parts of modules that exist. What it gives can be a decorator, a
base class, a type in an annotation or an argument; while no kernel is being traced it also takes
part in any expression. While one is, using it as a value raises TraceError by name.
"""

from __future__ import annotations

import difflib
import importlib.machinery
import linecache
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trnsim import session

_NKI = ("nki", "neuronxcc")  # parts of these that we do not have
_WELL_KNOWN = {"flax", "jax", "jaxlib", "ml_dtypes", "pytest", "scipy", "torch", "transformers"}

_GENERATED = ("_pb2", "_pb2_grpc")  # made when a package is built, and in no repository

# What shapes cannot follow from: the user's words for making tensors on the host.
_FACTORIES = {"empty", "full", "normal", "ones", "rand", "randint", "randn", "uniform", "zeros"}
_LIKE = {"empty_like", "full_like", "ones_like", "rand_like", "randn_like", "zeros_like"}
_SAME_SHAPE = {
    "abs",
    "block_until_ready",
    "clamp",
    "clone",
    "contiguous",
    "cpu",
    "cuda",
    "detach",
    "exp",
    "numpy",
    "requires_grad_",
    "xla",
}
_TO_DTYPE = {"bfloat16": "bfloat16", "float": "float32", "half": "float16", "int": "int32"}
_DTYPES = {
    "bool",
    "bfloat16",
    "float",
    "float16",
    "float32",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e5m2",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint8",
}


class StandIn:
    """Something of a module that is not installed."""

    def __init__(self, name: str, module: str) -> None:
        self._trnsim_name = name
        self._trnsim_module = module

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0.0.0"
        if name.startswith("__") or name.startswith("_trnsim") or name.startswith("_repr_"):
            raise AttributeError(name)
        last = self._trnsim_name.rpartition(".")[2]
        if last in _DTYPES and name in ("name", "dtype"):
            last = {"float": "float32", "half": "float16"}.get(last, last)
            return last if name == "name" else _numpy_dtype(last)
        return StandIn(f"{self._trnsim_name}.{name}", self._trnsim_module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and _decorated(args[0]):
            return args[0]  # a decorator gives back what it was put on
        if session.tracing() and any(map(_traced, (*args, *kwargs.values()))):
            raise used(self, "by a call with tensors")
        return _made(self, args, kwargs) or StandIn(
            f"{self._trnsim_name}(...)", self._trnsim_module
        )

    # As a type, a base class or part of an annotation.

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (type(self._trnsim_name.rpartition(".")[2], (_Base,), {"_trnsim_stands_for": self}),)

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __getitem__(self, key: Any) -> Any:
        return StandIn(f"{self._trnsim_name}[...]", self._trnsim_module)

    def __repr__(self) -> str:
        return f"<{self._trnsim_name}: {self._trnsim_module} is not installed>"

    def __hash__(self) -> int:
        return hash(self._trnsim_name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StandIn):
            return self._trnsim_name == other._trnsim_name
        return session.tracing() and _same_dtype(self, other)

    def __deepcopy__(self, memo: Any) -> StandIn:
        return self

    # As a value: only outside of a trace.

    def _trnsim_use(self, how: str) -> None:
        if session.tracing():
            raise used(self, how)

    def __bool__(self) -> bool:
        self._trnsim_use("as a truth value")
        return True

    def __len__(self) -> int:
        self._trnsim_use("with len()")
        return 0

    def __iter__(self) -> Iterator[Any]:
        self._trnsim_use("in a loop")
        return iter(())

    def __contains__(self, item: Any) -> bool:
        self._trnsim_use("with in")
        return False

    def __int__(self) -> int:
        self._trnsim_use("as an integer")
        return 0

    def __index__(self) -> int:
        self._trnsim_use("as an integer")
        return 0

    def __float__(self) -> float:
        self._trnsim_use("as a number")
        return 0.0

    def __complex__(self) -> complex:
        self._trnsim_use("as a number")
        return 0j

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_trnsim"):
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        return None

    def __setitem__(self, key: Any, value: Any) -> None:
        self._trnsim_use("by an assignment to its items")

    def __delitem__(self, key: Any) -> None:
        self._trnsim_use("by deleting an item")

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *exc: Any) -> bool:
        return False


def _value(how: str) -> Any:
    def operator(self: StandIn, *_: Any) -> Any:
        self._trnsim_use(how)
        return _like(self)

    return operator


for _name in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor".split():
    setattr(StandIn, f"__{_name}__", _value("in arithmetic"))
    setattr(StandIn, f"__r{_name}__", _value("in arithmetic"))
for _name in "neg pos abs invert round trunc floor ceil".split():
    setattr(StandIn, f"__{_name}__", _value("in arithmetic"))
for _name in "lt le gt ge".split():
    setattr(StandIn, f"__{_name}__", _value("in a comparison"))


class HostTensor(StandIn):
    """What `torch.zeros((128, 512))` and the like give: no values, but a shape and a dtype."""

    def __init__(self, name: str, module: str, shape: Sequence[int], dtype: str) -> None:
        super().__init__(name, module)
        self._trnsim_shape = tuple(shape)
        self._trnsim_dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._trnsim_shape

    @property
    def dtype(self) -> StandIn:
        return StandIn(f"{self._trnsim_module}.{self._trnsim_dtype}", self._trnsim_module)

    @property
    def ndim(self) -> int:
        return len(self._trnsim_shape)

    @property
    def T(self) -> HostTensor:
        return _like(self, shape=self.shape[::-1])

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def t(self) -> HostTensor:
        return self.T

    def to(self, *args: Any, **kwargs: Any) -> HostTensor:
        return _like(self, dtype=_dtype_among((*args, *kwargs.values())))

    astype = type = to

    def reshape(self, *shape: Any) -> Any:
        return self._trnsim_shaped("reshape", _dims(shape))

    view = reshape

    def transpose(self, *dims: Any) -> Any:
        order = list(range(self.ndim))
        if len(dims) == 2 and all(isinstance(dim, int) for dim in dims):
            order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
        return self.permute(order)

    def permute(self, *dims: Any) -> Any:
        order = _dims(dims)
        if order is None or sorted(dim % max(self.ndim, 1) for dim in order) != list(
            range(self.ndim)
        ):
            return self._trnsim_shaped("permute", None)
        return self._trnsim_shaped("permute", tuple(self.shape[dim] for dim in order))

    def unsqueeze(self, dim: int) -> Any:
        shape = list(self.shape)
        shape.insert(dim if dim >= 0 else dim + len(shape) + 1, 1)
        return self._trnsim_shaped("unsqueeze", tuple(shape))

    def __getattr__(self, name: str) -> Any:
        if name in _SAME_SHAPE:
            return lambda *args, **kwargs: self
        if name in _TO_DTYPE:
            return lambda *args, **kwargs: _like(self, dtype=_TO_DTYPE[name])
        return super().__getattr__(name)

    def _trnsim_shaped(self, how: str, shape: tuple[int, ...] | None) -> Any:
        if shape is None:
            return StandIn(f"{self._trnsim_name}.{how}(...)", self._trnsim_module)
        if -1 in shape:
            known = _product(size for size in shape if size != -1)
            rest = _product(self.shape) // known if known else 0
            shape = tuple(rest if size == -1 else size for size in shape)
        return _like(self, shape=shape)


class _Base:
    """The base of classes that derive from a stand-in."""

    _trnsim_stands_for: StandIn

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        stand_in = type(self)._trnsim_stands_for
        return StandIn(f"{stand_in._trnsim_name}.{name}", stand_in._trnsim_module)


class _Module(types.ModuleType):
    """A module that is not installed; each attribute of it is a StandIn."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0.0.0"
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        return sys.modules.get(full) or StandIn(full, self.__name__.partition(".")[0])

    def __repr__(self) -> str:
        return f"<module {self.__name__}: not installed>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return StandIn(self.__name__, self.__name__.partition(".")[0])(*args, **kwargs)


class _Loader:
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []  # so that its submodules may be imported
        module.__all__ = []  # type: ignore[attr-defined]


class Finder:
    """Finds what nobody else does. own: packages whose missing parts stay missing."""

    def __init__(self) -> None:
        self.own: set[str] = set()
        self.found: list[str] = []

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, last = name.rpartition(".")
        if package:
            parent = sys.modules.get(package)
            known = isinstance(parent, _Module) or package.partition(".")[0] in _NKI
            made = last.endswith(_GENERATED) or _is_built(parent, name)
            if not known and not made and not _elsewhere(parent, last):
                return None  # a part that a real module lacks
        elif name in self.own or name not in _WELL_KNOWN and self._misspelt(name):
            return None
        asking = _asking_file()
        if asking is None:
            return None
        if not package and (found := _in_folders_above(name, asking)):
            return found
        self.found.append(name)
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)  # type: ignore[arg-type]

    def _misspelt(self, name: str) -> bool:
        """Whether a name is nearly one of the user's own."""
        return bool(difflib.get_close_matches(name, self.own, cutoff=0.8))


_finder = Finder()


def install(own: Sequence[str] = ()) -> Finder:
    """Puts the finder at the end of sys.meta_path."""
    _finder.own.update(own)
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    sys.meta_path.append(_finder)
    return _finder


def remove() -> None:
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder.own.clear()
    _finder.found.clear()


def name_of(value: Any) -> str | None:
    """The name that a stand-in stands for, such as "torch.float32"; None for anything else."""
    if isinstance(value, StandIn):
        return value._trnsim_name
    if isinstance(value, _Module):
        return value.__name__
    return None


def used(value: Any, how: str) -> Exception:
    """The error of a stand-in that a trace needs the value of."""
    name = name_of(value) or repr(value)
    package = name.partition(".")[0]
    if package in _NKI:
        why = "it is not supported"
    elif package in _WELL_KNOWN:
        why = f"{package} is not installed"
    else:
        why = f"{package} is not installed (--search names the folder of a module of yours)"
    return session.trace_error(f"{name}: used {how}, but {why}")


def _asking_file() -> str | None:
    """The file of the import, unless it is Python's, or installed, or ours."""
    asking = _asking_frame()
    return asking[0] if asking else None


def _asking_frame() -> tuple[str, int] | None:
    """File and line of the import, unless they are Python's, or installed, or ours."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back  # type: ignore[assignment]
    while frame is not None:
        filename = frame.f_code.co_filename
        # importlib.import_module("x") in a user's file is the user's, too.
        if not filename.startswith("<frozen importlib") and "/importlib/__init__" not in filename:
            if session.is_ours(filename) or session.is_python(filename):
                return None
            return filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _is_built(package: Any, name: str) -> bool:
    """Whether a setup.py above the package says that it builds the module."""
    quoted = (f'"{name}"', f"'{name}'")
    for folder in map(Path, getattr(package, "__path__", ())):
        for above in list(folder.parents)[:3]:
            setup = above / "setup.py"
            if setup.is_file():
                text = setup.read_text(errors="replace")
                return "Extension" in text and any(one in text for one in quoted)
    return False


def _elsewhere(package: Any, part: str) -> bool:
    """Whether a part that a folder lacks is one of an installed package of the folder's name.

    Not when the folder says that it is a package itself, when the import is in the folder or
    relative, or when the part is nearly one that the folder has.
    """
    if package is None or getattr(package, "__file__", None):
        return False
    asking = _asking_frame()
    if asking is None:
        return False
    file, line = asking
    if linecache.getline(file, line).lstrip().startswith("from ."):
        return False
    for folder in map(Path, getattr(package, "__path__", ())):
        if Path(file).is_relative_to(folder):
            return False
        there = [entry.stem for entry in folder.iterdir()] if folder.is_dir() else []
        if difflib.get_close_matches(part, there, cutoff=0.8):
            return False
    return True


def _in_folders_above(name: str, file: str) -> importlib.machinery.ModuleSpec | None:
    """A module of the user's that is named from some folder above the file that imports it."""
    if name in _WELL_KNOWN:
        return None
    for folder in list(Path(file).absolute().parents)[:6]:
        inside = folder / name
        if (folder / f"{name}.py").is_file() or inside.is_dir() and _has_python(inside):
            sys.path.append(str(folder))
            for finder in sys.meta_path:  # packages among them may fail in part
                found = None if isinstance(finder, Finder) else finder.find_spec(name, None)
                if found is not None:
                    return found
    return None


def _has_python(folder: Path) -> bool:
    return any(True for _ in folder.glob("*.py")) or any(True for _ in folder.glob("*/*.py"))


def _decorated(value: Any) -> bool:
    if isinstance(value, (StandIn, _Module)):
        return False
    return isinstance(value, (type, types.FunctionType, types.MethodType)) or getattr(
        value, "_trnsim_kernel", False
    )


def _numpy_dtype(name: str) -> Any:
    """What NumPy asks of an object that it is to take for a dtype."""
    import numpy as np

    return np.dtype(name)


def _traced(value: Any) -> bool:
    """Whether a value is something of the kernel's: a tensor, or a collection with one."""
    if isinstance(value, (tuple, list)):
        return any(map(_traced, value))
    return type(value).__module__.startswith("trnsim.") and not isinstance(value, (str, StandIn))


def _made(factory: StandIn, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HostTensor | None:
    """The tensor that `torch.rand(...)` and its like make, when the call says its shape."""
    module = factory._trnsim_module
    name = factory._trnsim_name.rpartition(".")[2]
    label = f"{factory._trnsim_name}(...)"
    dtype = _dtype_among((*args[1:], kwargs.get("dtype"))) or "float32"
    if name in _LIKE and args and hasattr(args[0], "shape"):
        return HostTensor(label, module, args[0].shape, dtype)
    if name not in _FACTORIES:
        return None
    given = kwargs.get("size", kwargs.get("shape"))
    if given is not None:
        shape = _dims((given,))
    else:
        tuples = [arg for arg in args if isinstance(arg, (tuple, list))]
        if tuples or name in ("full", "randint"):
            shape = _dims((tuples[0],)) if tuples else None
        else:
            shape = _dims(tuple(arg for arg in args if not isinstance(arg, StandIn)))
    return None if not shape else HostTensor(label, module, shape, dtype)


def _like(value: StandIn, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Any:
    if not isinstance(value, HostTensor):
        return StandIn(value._trnsim_name, value._trnsim_module)
    return HostTensor(
        value._trnsim_name,
        value._trnsim_module,
        value.shape if shape is None else shape,
        dtype or value._trnsim_dtype,
    )


def _dtype_among(values: Sequence[Any]) -> str | None:
    for value in values:
        name = name_of(value)
        if name is not None and not isinstance(value, HostTensor):
            last = name.rpartition(".")[2]
        elif isinstance(value, type):
            last = value.__name__
        else:
            last = getattr(value, "name", "")
        if last in _DTYPES:
            return {"float": "float32", "half": "float16"}.get(last, last)
    return None


def _dims(given: Sequence[Any]) -> tuple[int, ...] | None:
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    if not all(isinstance(size, int) for size in given):
        return None
    return tuple(given)


def _product(sizes: Any) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _same_dtype(value: StandIn, other: object) -> bool:
    last = value._trnsim_name.rpartition(".")[2]
    if last not in _DTYPES:
        return False
    try:
        from trnsim import dtypes

        return dtypes.dtype_of(last) == other
    except (ImportError, ValueError):
        return False
