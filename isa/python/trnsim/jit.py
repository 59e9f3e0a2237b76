"""`nki.jit` and its relatives, and how a kernel is traced.

A decorated kernel that is called inside of another is inlined; called by a script, it is traced,
simulated, and returns tensors that have a shape and a dtype but no values. A grid's programs run
one after the other in their core's builder, all with the same arguments.
"""

from __future__ import annotations

import functools
import inspect
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trnsim
from trnsim import loader, session, specs, stand_in
from trnsim.session import ProgramGrid, Session

TARGETS = {"trn1": "trn1", "gen2": "trn1", "trn2": "trn2", "gen3": "trn2"}
GENERATIONS = {"trn1": "NeuronCore-v2", "trn2": "NeuronCore-v3"}
# What the builder has to know of a core; its defaults are those of trn2. A partition of SBUF is
# chip.sbuf.partition_size less chip.sbuf.reserved.
_CORES: dict[str, dict[str, Any]] = {
    "trn1": {
        "sbuf_partition_bytes": 192 * 1024 - 16392,
        "inputs_by_software": False,
        "hardware_descriptors": False,
    },
    "trn2": {},
}
# What the compiler of the older API does to a kernel, as far as published times show it: it keeps
# what loops load again (docs/concepts/scheduling.md#what-the-older-compiler-does).
OLDER_COMPILER: dict[str, Any] = {
    "reuse_loads_bytes": 159744,
    "merge_loads_bytes": 1024,
    "merge_stores": True,
    "lookahead": 0,
    "prefetch_tiles": 16,
    "prefetch_kept_tiles": 16,
    "reuse_within_bytes": 0,
    "dma_lookahead": 64,
}


@dataclass
class Defaults:
    """What kernels that a script calls run on."""

    config: str = "trn2.3xlarge"
    target: str = "trn2"


_defaults = Defaults()
_last: list[Any] = []
_traces: dict[Any, "Trace"] = {}


def set_defaults(*, config: str | None = None, target: str | None = None) -> None:
    if target is not None:
        _defaults.target = canonical_target(target)
    if config is not None:
        _defaults.config = config


def canonical_target(target: str) -> str:
    if target not in TARGETS:
        raise specs.SpecError(f"target: expected trn2 or trn1 (or gen3, gen2), got {target}")
    return TARGETS[target]


class Kernel:
    """A decorated kernel. mode: what its decorator wanted of a call ("jit", "benchmark", ...)."""

    _trnsim_kernel = True

    def __init__(
        self, function: Callable[..., Any], mode: str = "jit", options: Mapping[str, Any] = {}
    ) -> None:
        self.func = function
        self.mode = mode
        self.options = dict(options)
        self.benchmark_result: BenchmarkResult | None = None
        self.grid: Any = None
        functools.update_wrapper(self, function)

    def __getitem__(self, grid: Any) -> Launch:
        return Launch(self, grid)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Launch(self, self.grid)(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def with_schedule(self, schedule: Any) -> Kernel:
        """Accepted: an order of the kernel's own is not obeyed yet, as the report warns."""
        kernel = Kernel(self.func, self.mode, {**self.options, "schedule": schedule})
        kernel.grid = self.grid
        return kernel

    def __repr__(self) -> str:
        return f"<kernel {getattr(self.func, '__qualname__', self.func)}>"


class Launch:
    """A kernel with a grid: `kernel[grid]`."""

    _trnsim_kernel = True

    def __init__(self, kernel: Kernel, grid: Any) -> None:
        self.kernel = kernel
        self.grid = grid
        functools.update_wrapper(self, kernel.func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        now = session.active()
        if now is not None:
            return self._inlined(now, args, kwargs)
        if loader.importing():
            name = getattr(self.kernel.func, "__name__", "kernel")
            return stand_in.StandIn(f"{name}(...)", "kernel")
        return self._launched(args, kwargs)

    def _inlined(self, now: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = self.kernel.func
        if now.depth == 0:  # of a host function, which may hand over arrays
            args, kwargs = _host_arguments(function, args, kwargs, now)
        now.depth += 1
        try:
            return self._programs(now, function, args, kwargs)
        finally:
            now.depth -= 1

    def _programs(
        self,
        now: Session,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        if self.grid is None:
            return function(*args, **kwargs)
        grid = ProgramGrid(self.grid, generation=generation_of(function))
        if grid.cores > now.cores:
            raise Regrid(grid)
        outer = now.grid, now.program_ids
        mark = now.shared_mark()
        results = []
        for ids in grid.programs[now.core if grid.cores > 1 else 0]:
            now.begin_program(grid.shape, ids, mark)
            results.append(function(*args, **kwargs))
        now.grid, now.program_ids = outer
        return results[0] if results else None

    def _launched(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kernel = self.kernel
        made = trace(kernel, args, kwargs, grid=self.grid, target=_defaults.target, reuse=True)
        from trnsim import report

        if not report.can_simulate():
            return made.results
        try:
            _last[:] = [_simulated(made, _defaults.config)]
        except (ValueError, RuntimeError) as error:
            if kernel.mode == "benchmark":
                raise
            _last[:] = [error]  # for who asks for the report
            warnings.warn(f"{made.name}: traced, but not timed: {error}", stacklevel=3)
        else:
            if kernel.mode == "benchmark":
                kernel.benchmark_result = BenchmarkResult(_last[0])
        return made.results

    @property
    def benchmark_result(self) -> BenchmarkResult | None:
        return self.kernel.benchmark_result

    def __repr__(self) -> str:
        return f"{self.kernel!r}[{self.grid}]"


class Regrid(BaseException):
    """A host function under trace launches a kernel on more cores than its trace has."""

    def __init__(self, grid: ProgramGrid) -> None:
        super().__init__(f"launched on {grid}")
        self.grid = grid


class BenchmarkResult:
    """What `nki.benchmark` leaves in `kernel.benchmark_result`."""

    def __init__(self, report: Any) -> None:
        self.report = report
        self.nc_latency = Latency(report)


class Latency:
    """Latency percentiles. Runs of a simulation do not differ, so that all are the same."""

    def __init__(self, report: Any) -> None:
        self._report = report

    def get_latency_percentile(self, percentile: float) -> float:
        """Microseconds."""
        if not 0 <= percentile <= 100:
            raise ValueError(f"percentile: expected 0 to 100, got {percentile}")
        return float(self._report.latency_us)


def _decorator(mode: str) -> Callable[..., Any]:
    def decorate(kernel: Any = None, *args: Any, **options: Any) -> Any:
        if "func" in options or "kernel" in options:
            kernel = options.pop("func", None) or options.pop("kernel", None)
        how = kernel if isinstance(kernel, str) else options.get("mode", mode)
        how = how if isinstance(how, str) else mode
        if kernel is None or not callable(kernel):
            return lambda function: _wrapped(function, how, options)
        return _wrapped(kernel, how, options)

    decorate.__name__ = decorate.__qualname__ = mode
    decorate.__doc__ = f"The `nki.{mode}` decorator, with or without arguments."
    return decorate


def _wrapped(kernel: Any, mode: str, options: Mapping[str, Any]) -> Kernel:
    grid = None
    while isinstance(kernel, (Kernel, Launch)):
        if isinstance(kernel, Launch):
            grid, kernel = kernel.grid, kernel.kernel
        else:
            grid, kernel = grid if grid is not None else kernel.grid, kernel.func
    if isinstance(kernel, (staticmethod, classmethod)):
        kernel = kernel.__func__
    wrapped = Kernel(kernel, mode, options)
    wrapped.grid = options.get("grid", grid)
    return wrapped


jit = _decorator("jit")
trace_decorator = _decorator("trace")
benchmark = _decorator("benchmark")
baremetal = _decorator("baremetal")
profile = _decorator("profile")
simulate = _decorator("simulate")


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """`nki.simulate_kernel(kernel, *args)`: results with shapes, and a report of the time."""
    launch = kernel if isinstance(kernel, Launch) else _wrapped(kernel, "simulate", {})
    return launch(*args, **kwargs)


class Output:
    """A kernel's result as a script gets it: shape and dtype; values raise by name."""

    def __init__(self, name: str, kernel: str, shape: Sequence[int], dtype: Any) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype
        self._kernel = kernel

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for length in self.shape:
            size *= length
        return size

    def __len__(self) -> int:
        return self.shape[0]

    def reshape(self, *shape: Any) -> Output:
        return self._shaped(lambda array: array.reshape(*shape))

    def transpose(self, *dims: Any) -> Output:
        return self._shaped(lambda array: array.transpose(*dims))

    @property
    def T(self) -> Output:
        return self.transpose()

    def astype(self, dtype: Any, **_: Any) -> Output:
        return Output(self.name, self._kernel, self.shape, dtype)

    def __getitem__(self, key: Any) -> Output:
        return self._shaped(lambda array: array[key])

    def _shaped(self, change: Callable[[Any], Any]) -> Output:
        import numpy as np

        shape = change(np.broadcast_to(np.uint8(0), self.shape)).shape
        return Output(self.name, self._kernel, shape, self.dtype)

    def _no_value(self, *_: Any, **__: Any) -> Any:
        raise session.trace_error(
            f"{self._kernel}: the values of its result {self.name} are not known: the kernel was "
            "timed, not computed"
        )

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"<{self.name} of {self._kernel}: {self.dtype}[{shape}], no values>"

    __hash__ = object.__hash__


for _name in """array bool int float index complex iter contains eq ne lt le gt ge
    add radd sub rsub mul rmul matmul rmatmul truediv rtruediv floordiv rfloordiv mod rmod
    pow rpow neg pos abs""".split():
    setattr(Output, f"__{_name}__", Output._no_value)
for _name in "all any max mean min sum item tolist tobytes numpy".split():
    setattr(Output, _name, Output._no_value)


@dataclass
class Trace:
    """A traced kernel. results: what it returned, with Output in place of its tensors."""

    name: str
    data: bytes
    results: Any
    grid: ProgramGrid
    generations: list[str]
    summaries: list[dict[str, Any]]
    calls: Counter[str]
    skipped: Counter[str]
    finished: dict[str, Any] = field(repr=False)
    seconds: float = 0.0

    @property
    def loops(self) -> list[Any]:
        return list(self.finished.get("loops", []))

    @property
    def warnings(self) -> list[str]:
        texts = [str(warning) for warning in self.finished.get("warnings", [])]
        for name, count in sorted(self.skipped.items()):
            texts.append(f"skipped {count} x {name}: not supported")
        return texts


def generation_of(kernel: Callable[..., Any]) -> str | None:
    """The generation of the packages that the kernel's file imports, if it tells."""
    function = inspect.unwrap(kernel) if callable(kernel) else kernel
    names = getattr(function, "__globals__", {})
    found = set()
    for value in list(names.values()):
        owner = getattr(value, "__name__", "") if inspect.ismodule(value) else ""
        root = owner.split(".")[0]
        if root == "neuronxcc":
            found.add("old")
        elif root == "nki":
            found.add("new")
    return found.pop() if len(found) == 1 else None


def name_of(kernel: Any) -> str:
    function = kernel
    while isinstance(function, (Kernel, Launch)):
        function = function.func if isinstance(function, Kernel) else function.kernel
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def trace(
    kernel: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] = {},
    *,
    grid: Any = None,
    target: str = "trn2",
    options: Mapping[str, Any] = {},
    work: Sequence[tuple[float, str]] = (),
    skip_unsupported: bool = False,
    reuse: bool = False,
) -> Trace:
    """Traces a kernel with NumPy arrays, `Shape` objects and Python values.

    reuse: the trace of an equal earlier call will do.
    """
    started = time.perf_counter()
    name = name_of(kernel)
    function = kernel
    while isinstance(function, (Kernel, Launch)):
        if grid is None:
            grid = function.grid
        function = function.func if isinstance(function, Kernel) else function.kernel
    function_args, names = _shaped_arguments(function, name, args, kwargs)
    generation = generation_of(function)
    if generation is None and len(session.noted_generations()) == 1:
        generation = session.noted_generations()[0]
    programs = ProgramGrid(grid, generation=generation)
    key = None
    if reuse:
        key = _key(function, function_args, grid, target)
        if key is not None and key in _traces:
            return _traces[key]
    try:
        made = _trace(
            function, name, names, function_args, programs, generation, target, options, work,
            skip_unsupported, isinstance(kernel, (Kernel, Launch)),
        )  # fmt: skip
    except Regrid as regrid:
        if grid is not None:
            raise session.trace_error(
                f"launch grid: {name} is traced on 1 core, and launches a kernel on "
                f"{regrid.grid.cores}"
            ) from None
        programs = ProgramGrid(None)
        programs.cores = regrid.grid.cores
        programs.programs = [[()] for _ in range(programs.cores)]
        made = _trace(
            function, name, names, function_args, programs, generation, target, options, work,
            skip_unsupported, isinstance(kernel, (Kernel, Launch)),
        )  # fmt: skip
    made.seconds = time.perf_counter() - started
    if key is not None and not made.finished.get("used_contents"):
        if len(_traces) >= 8:
            _traces.pop(next(iter(_traces)))
        _traces[key] = made
    return made


@dataclass
class _Arguments:
    args: list[Any]
    kwargs: dict[str, Any]


def _shaped_arguments(
    function: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[_Arguments, list[str]]:
    """The arguments with tensors as Shapes, and the parameter names of the positional ones."""
    names: list[str] = []
    signature = specs.signature_of(function)
    for parameter in signature.parameters.values() if signature else ():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names += [f"arg{place}" for place in range(len(names), len(args))]
    shaped = [
        specs.shapes_in(value, f"{name}: argument {what}") for what, value in zip(names, args)
    ]
    named = {
        what: specs.shapes_in(value, f"{name}: argument {what}") for what, value in kwargs.items()
    }
    return _Arguments(shaped, named), names


def _host_arguments(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], now: Session
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a launch by a host function under trace, with its arrays as tensors."""
    shaped, names = _shaped_arguments(function, name_of(function), args, kwargs)
    return (
        [specs.tensors_in(value, what, now) for what, value in zip(names, shaped.args)],
        {what: specs.tensors_in(value, what, now) for what, value in shaped.kwargs.items()},
    )


def _key(function: Any, arguments: _Arguments, grid: Any, target: str) -> Any:
    try:
        parts = (
            function,
            _frozen(arguments.args),
            _frozen(arguments.kwargs),
            repr(grid),
            target,
        )
        hash(parts)
    except TypeError:
        return None
    return parts


def _frozen(value: Any) -> Any:
    if isinstance(value, specs.Shape):
        return ("shape", value.shape, str(value.dtype))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(_frozen, value))
    if isinstance(value, dict):
        return tuple((key, _frozen(part)) for key, part in value.items())
    if value is None or isinstance(value, (bool, int, float, str)):
        return (type(value).__name__, value)
    raise TypeError("no cache key")


def _trace(
    function: Callable[..., Any],
    name: str,
    names: Sequence[str],
    arguments: _Arguments,
    grid: ProgramGrid,
    generation: str | None,
    target: str,
    options: Mapping[str, Any],
    work: Sequence[tuple[float, str]],
    skip_unsupported: bool,
    decorated: bool,
) -> Trace:
    from trnsim import tensor

    native = trnsim.native()
    tensor.forget()  # of a trace that failed
    sessions = []
    results: Any = None
    returned: Any = None
    for core in range(grid.cores):
        compiler = OLDER_COMPILER if generation == "old" else {}
        builder = native.Builder(name, {**_CORES[target], **compiler, **options})
        _hide_frames(builder)
        now = Session(
            builder,
            target=target,
            grid=grid.shape,
            core=core,
            cores=grid.cores,
            generation=generation,
            skip_unsupported=skip_unsupported,
        )
        now.depth = 1 if decorated else 0
        sessions.append(now)
        with session.entered(now):
            args = [
                specs.tensors_in(value, what, now) for what, value in zip(names, arguments.args)
            ]
            kwargs = {
                what: specs.tensors_in(value, what, now) for what, value in arguments.kwargs.items()
            }
            for place, ids in enumerate(grid.programs[core]):
                now.begin_program(grid.shape, ids)
                value = function(*args, **kwargs)
                tensor.flush()
                if place == 0:
                    returned = value
                    _mark_outputs(now, value)
        if core == 0:
            results = _outputs(returned, name)
    skipped = sum((now.skipped for now in sessions), Counter())
    finished = native.finish(
        [now.builder for now in sessions],
        name=name,
        target=GENERATIONS[target],
        work=list(work),
        warnings=[
            f"skipped {count} x {call}: not supported" for call, count in sorted(skipped.items())
        ],
    )
    if not skipped and not finished.get("instructions"):
        raise session.trace_error(f"{name}: gives no instruction: there is nothing to run")
    finished["used_contents"] = any(now.used_contents for now in sessions)
    generations = list(dict.fromkeys(sum((now.generations for now in sessions), [])))
    return Trace(
        name=name,
        data=finished["bytes"],
        results=results,
        grid=grid,
        generations=generations,
        summaries=[now.builder.summary() for now in sessions],
        calls=sum((now.calls for now in sessions), Counter()),
        skipped=skipped,
        finished=finished,
    )


_hidden: set[str] = set()


def _hide_frames(builder: Any) -> None:
    """Places in errors and reports are of the kernel's files: hidden once for all builders."""
    ours = Path(session.PACKAGE).parent
    for folder in (str(ours), str(ours.resolve()), sysconfig.get_path("stdlib")):
        if folder not in _hidden:
            _hidden.add(folder)
            builder.hide_frames(folder)


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _tensors(part)]
    if isinstance(value, dict):
        return [tensor for part in value.values() for tensor in _tensors(part)]
    return [value] if _is_tensor(value) else []


def _is_tensor(value: Any) -> bool:
    from trnsim.tensor import Tensor

    return isinstance(value, Tensor)


def _mark_outputs(now: Session, returned: Any) -> None:
    """What is returned is an output; other shared tensors, when something is, are scratch."""
    set_kind = getattr(now.builder, "set_kind", None)
    tensors = [t for t in _tensors(returned) if t.memory == "hbm"]
    if set_kind is None or not tensors:
        return
    outputs = {tensor.view_.storage for tensor in tensors}
    for view in now.shared_tensors():
        if view.storage not in outputs:
            set_kind(view, "internal")
    inputs = now.input_storages
    for tensor in tensors:
        if tensor.view_.storage not in inputs:
            set_kind(tensor.view_, "output")


def _outputs(value: Any, kernel: str, name: str = "") -> Any:
    if isinstance(value, (tuple, list)):
        parts = [
            _outputs(part, kernel, f"{name or 'result'}[{place}]")
            for place, part in enumerate(value)
        ]
        if isinstance(value, list):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return {key: _outputs(part, kernel, f"{name}[{key!r}]") for key, part in value.items()}
    if not _is_tensor(value):
        return value
    return Output(name or value.name or "result", kernel, value.shape, _host_dtype(value))


def _host_dtype(tensor: Any) -> Any:
    """NumPy's dtype where it has one, else NKI's."""
    import numpy as np

    dtype = np.dtype(str(tensor.dtype))
    return tensor.dtype if dtype.metadata else dtype


def _simulated(made: Trace, config: str, overrides: Sequence[str] = ()) -> Any:
    from trnsim import report

    return report.simulate(
        made.data,
        name=made.name,
        config=config,
        overrides=overrides,
        trace_seconds=made.seconds,
        warnings=made.warnings,
    )


def run(
    kernel: Any,
    *args: Any,
    grid: Any = None,
    config: str | None = None,
    target: str | None = None,
    overrides: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    work: Sequence[tuple[float, str]] = (),
    skip_unsupported: bool = False,
    **kwargs: Any,
) -> Any:
    """Traces and simulates a kernel; gives its Report. See trnsim.run."""
    from trnsim import report

    if not report.can_simulate():
        raise RuntimeError(
            "trnsim.run: this build has no simulator, and no trn-sim command was found"
        )
    made = trace(
        kernel,
        args,
        kwargs,
        grid=grid,
        target=canonical_target(target) if target else _defaults.target,
        options=options or {},
        work=work,
        skip_unsupported=skip_unsupported,
    )
    _last[:] = [_simulated(made, config or _defaults.config, overrides)]
    return _last[0]


def last_report() -> Any:
    if not _last:
        raise RuntimeError("trnsim.last_report: no kernel has run yet")
    if isinstance(_last[0], Exception):
        raise _last[0]
    return _last[0]
