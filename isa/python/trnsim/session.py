"""The trace that is being made: what a call of the NKI packages finds out about its kernel.

One session is one core of one launch. `current()` gives the innermost one, and raises outside of
a kernel; `active()` gives None there.
"""

from __future__ import annotations

import builtins
import math
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trnsim._frontend import Builder, View

PACKAGE = str(Path(__file__).absolute().parent)
SHADOW = str(Path(PACKAGE).parent / "shadow")
_HIDDEN = tuple(
    {folder + "/" for given in (PACKAGE, SHADOW) for folder in (given, str(Path(given).resolve()))}
)
_PYTHON = tuple(
    {sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {"/usr/lib/python3/dist-packages/", "<frozen "}
)


class Session:
    """One core's trace.

    builder: makes the program. grid: () without one; program_ids: this program's place in it.
    generation: "old" (neuronxcc.nki), "new" (nki), or None while nothing told. calls: how often
    something was called, where the builder does not count; skipped: calls left out.
    """

    def __init__(
        self,
        builder: Builder,
        *,
        target: str = "trn2",
        grid: Sequence[int] = (),
        program_ids: Sequence[int] = (),
        core: int = 0,
        cores: int = 1,
        generation: str | None = None,
        skip_unsupported: bool = False,
    ) -> None:
        self.builder = builder
        self.target = target
        self.grid = tuple(grid)
        self.program_ids = tuple(program_ids)
        self.core = core
        self.cores = cores
        self.generations: list[str] = [generation] if generation else []
        self.skip_unsupported = skip_unsupported
        self.calls: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.depth = 0  # of decorated kernels that called each other
        self.used_contents = False
        self.input_storages: set[int] = set()
        self._shared: list[View] = []
        self._shared_next = 0
        self._private = 0
        self._names: set[str] = set()

    @property
    def generation(self) -> str | None:
        return self.generations[0] if self.generations else None

    def note_generation(self, generation: str) -> None:
        if generation not in self.generations:
            self.generations.append(generation)

    def count(self, name: str) -> None:
        self.calls[name] += 1

    def unsupported(self, name: str, why: str) -> None:
        """Stops the trace at a call that is not supported, or counts it when those are skipped.

        Returns only in the second case; the caller then leaves its destinations as they are.
        """
        if not self.skip_unsupported:
            raise trace_error(f"{name}: {why}")
        self.skipped[name] += 1

    def begin_program(
        self, grid: Sequence[int], program_ids: Sequence[int], shared_mark: int = 0
    ) -> None:
        """The next program of the grid: it declares the same shared tensors as the first did.

        shared_mark: where in their order the programs of this grid begin.
        """
        self.grid = tuple(grid)
        self.program_ids = tuple(program_ids)
        self._shared_next = shared_mark

    def shared_mark(self) -> int:
        """How many shared tensors this program has declared so far."""
        return self._shared_next

    def unique_name(self, name: str) -> str:
        """`name`, with a number when it is taken."""
        taken, number = name, 1
        while taken in self._names:
            taken, number = f"{name}.{number}", number + 1
        self._names.add(taken)
        return taken

    def hbm_tensor(
        self, shape: Sequence[int], dtype: str, *, name: str = "", shared: bool = True
    ) -> View:
        """A tensor that the kernel declares in HBM.

        shared: one for all programs and both cores (`nl.shared_hbm`); each program declares them
        in the same order. Otherwise this program's own (`nl.private_hbm`, the old `nl.hbm`).
        dtype: the ISA's name. The builders of one launch hold equally named tensors in common.
        """
        shape = tuple(shape)
        if not shared:
            name = self.unique_name(f"{name or 'private_hbm'}.{self._private}.core{self.core}")
            self._private += 1
            return self.builder.tensor("hbm", shape, dtype, name=name)
        place = self._shared_next
        self._shared_next += 1
        if place < len(self._shared):
            view = self._shared[place]
            if tuple(view.shape) == shape and view.dtype == dtype:
                return view
        name = self.unique_name(name or f"shared_hbm.{place}")
        view = self.builder.tensor("hbm", shape, dtype, name=name, kind="output")
        self._shared[place : place + 1] = [view]
        return view

    def shared_tensors(self) -> list[View]:
        return list(self._shared)


_sessions: list[Session] = []
_noted: list[str] = []


def active() -> Session | None:
    """The session that is tracing, if any."""
    return _sessions[-1] if _sessions else None


def current() -> Session:
    """The session that is tracing; an error outside of a kernel."""
    if not _sessions:
        raise trace_error("this call works only inside a kernel that is being traced")
    return _sessions[-1]


def tracing() -> bool:
    return bool(_sessions)


@contextmanager
def entered(session: Session) -> Iterator[Session]:
    _sessions.append(session)
    known: dict[str, Any] = {"math": math}  # what the compiler knows without an import
    if session.generation != "old":
        from trnsim import memory

        known.update(memory.GLOBAL_NAMES)
    lent = [name for name in known if not hasattr(builtins, name)]
    for name in lent:
        setattr(builtins, name, known[name])
    try:
        yield session
    finally:
        _sessions.pop()
        for name in lent:
            delattr(builtins, name)


def note_generation(generation: str) -> None:
    """Which API generation is used: "old" or "new". Called by the packages that kernels import."""
    if generation not in _noted:
        _noted.append(generation)
    if _sessions:
        _sessions[-1].note_generation(generation)


def noted_generations() -> list[str]:
    """The generations that were imported or used so far, the first first."""
    return list(_noted)


def unsupported(name: str, why: str) -> None:
    current().unsupported(name, why)


def is_ours(filename: str) -> bool:
    """Whether a frame's file belongs to this package or to those that it shows to kernels."""
    return filename.startswith(_HIDDEN) or filename.endswith("/bin/trn-trace")


def is_python(filename: str) -> bool:
    """Whether a frame's file belongs to Python or to an installed package."""
    return filename.startswith(_PYTHON)


def user_frame() -> FrameType | None:
    """The innermost frame that is neither ours nor of an installed package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_ours(filename) and not is_python(filename):
            return frame
        frame = frame.f_back
    return None


# Lines of results that are being emitted after their call: what is wrong with one is wrong there.
late_lines: list[tuple[str, int]] = []


def where() -> str:
    """`file:line` of the kernel's innermost frame; empty when there is none."""
    if late_lines and late_lines[-1][0]:
        return "{}:{}".format(*late_lines[-1])
    frame = user_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def trace_error(message: str) -> Exception:
    """A TraceError at the kernel's line, to be raised."""
    place = where()
    return error_type()(f"{place}: {message}" if place else message)


class _PlainTraceError(ValueError):
    """Stands for TraceError as long as the native module cannot be found."""


def error_type() -> type[Exception]:
    try:
        from trnsim._frontend import TraceError
    except ImportError:
        return _PlainTraceError
    return TraceError


def capacity_type() -> type[Exception]:
    try:
        from trnsim._frontend import CapacityError
    except ImportError:
        return _PlainTraceError
    return CapacityError


class ProgramGrid:
    """A launch grid: its shape, and which core runs which programs, in order.

    A dimension is a number, `nc(n)` (spread over n cores), or `spmd_dim(a, b)` of a number and
    `nc(n)`: its index is a * size(b) + b, and the part that is `nc` says which core.
    """

    def __init__(self, dims: Any, *, generation: str | None = None) -> None:
        given = dims if isinstance(dims, (tuple, list)) else () if dims is None else (dims,)
        self.shape = tuple(_size(dim) for dim in given)
        spread = [dim for dim in given if _cores(dim) > 1]
        if len(spread) > 1:
            raise trace_error("launch grid: only one dimension can be spread over cores")
        lnc = not spread and generation != "old" and len(given) == 1 and self.shape[0] == 2
        self.cores = 2 if lnc else _cores(spread[0]) if spread else 1
        if self.cores > 2:
            raise trace_error(f"launch grid: nc({self.cores}): a logical core has 1 or 2 cores")
        if generation == "new" and (len(given) > 1 or self.shape and self.shape[0] > 2):
            raise trace_error(
                f"launch grid: {self.shape}: one number, 1 or 2, is the number of cores"
            )
        self.programs: list[list[tuple[int, ...]]] = [[] for _ in range(self.cores)]
        for ids in _indices(self.shape):
            core = ids[0] if lnc else 0
            for dim, index in zip(given, ids):
                if dim in spread:
                    core = _core_of(dim, index)
            self.programs[core].append(ids)

    def __repr__(self) -> str:
        shape = f"grid {', '.join(map(str, self.shape))}" if self.shape else "no grid"
        return f"{shape}, {self.cores} core{'s' if self.cores > 1 else ''}"


class nc:
    """A grid dimension of which each index is a physical core: `kernel[nl.nc(2), 4]`."""

    def __init__(self, size: int) -> None:
        self.size = int(size)

    def __repr__(self) -> str:
        return f"nc({self.size})"


class spmd_dim:
    """A grid dimension made of two, outer and inner; one of them may be `nc(n)`."""

    def __init__(self, outer: int | nc, inner: int | nc) -> None:
        self.outer, self.inner = outer, inner

    def __repr__(self) -> str:
        return f"spmd_dim({self.outer!r}, {self.inner!r})"


def _size(dim: Any) -> int:
    if isinstance(dim, nc):
        size = dim.size
    elif isinstance(dim, spmd_dim):
        size = _size(dim.outer) * _size(dim.inner)
    else:
        try:
            size = dim.__index__()
        except (AttributeError, TypeError):
            raise trace_error(f"launch grid: expected a number, got {dim!r}") from None
    if size < 1:
        raise trace_error(f"launch grid: expected at least 1, got {size}")
    return size


def _cores(dim: Any) -> int:
    if isinstance(dim, nc):
        return dim.size
    if isinstance(dim, spmd_dim):
        return _cores(dim.outer) * _cores(dim.inner)
    return 1


def _core_of(dim: Any, index: int) -> int:
    if isinstance(dim, nc):
        return index
    outer, inner = divmod(index, _size(dim.inner))
    return inner if isinstance(dim.inner, nc) else outer


def _indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not shape:
        yield ()
        return
    for first in range(shape[0]):
        for rest in _indices(shape[1:]):
            yield (first, *rest)
