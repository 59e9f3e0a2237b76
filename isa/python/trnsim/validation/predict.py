"""Traces kernels and runs them, in parallel processes, each result kept by what it depends on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trnsim.validation import places
from trnsim.validation.inputs import Launch

_FORMAT = "2"  # of what the cache holds
_FIGURES = (
    "device_time_ns", "device_time_low_ns", "device_time_high_ns", "profiled_total_ns",
    "benchmark_latency_ns", "bound_by",
)  # fmt: skip
_SUMMARY = (
    "hbm_read_bytes", "hbm_write_bytes", "spill_save_bytes", "spill_reload_bytes",
    "dma_transfer_count", "dma_packet_time", "hardware_dynamic_dma_packet_count",
    "software_dynamic_dma_packet_count", "dma_active_time_percent", "mfu_estimated_percent",
    "tensor_engine_active_time_percent", "vector_engine_active_time_percent",
)  # fmt: skip

Figures = dict[str, Any]


class MachineError(ValueError):
    """The machine or an override of it is wrong; the text is trn-sim's."""


@dataclass(frozen=True)
class Machine:
    """What traces run on. target: the generation that kernels are traced for."""

    config: str
    target: str
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """One launch on one machine. options: of the builder."""

    launch: Launch
    machine: Machine
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why a request has no figures."""

    reason: str


@dataclass
class Predictor:
    """Answers requests. cache: the folder of results, or None."""

    trn_sim: str
    cache: Path | None
    jobs: int = 1
    progress: Callable[[int, int], None] | None = None
    _code: str = ""
    _machines: dict[Machine, str] = field(default_factory=dict)

    def check(self, machine: Machine) -> None:
        """Throws MachineError when the machine cannot be had."""
        if machine not in self._machines:
            self._machines[machine] = self._machine_key(machine)

    def predict(self, requests: Iterable[Request]) -> dict[Request, Figures | Failure]:
        """Figures of each distinct request."""
        wanted = sorted(set(requests), key=lambda r: (-r.launch.work, repr(r)))
        for request in wanted:
            self.check(request.machine)
        self._code = self._code or _code_key()
        with tempfile.TemporaryDirectory(prefix="trn-sim-validate-") as scratch:
            folder = self.cache or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            tasks = {r: _Task(r, self._trace_key(r), self._machines[r.machine]) for r in wanted}
            return self._all(tasks, _Work(self.trn_sim, str(folder), self.cache is not None))

    def _all(self, tasks: Mapping[Request, _Task], work: _Work) -> dict[Request, Figures | Failure]:
        found: dict[Request, Figures | Failure] = {}
        open_tasks = []
        for request, task in tasks.items():
            figures = _cached(task, work)
            if figures is None:
                open_tasks.append(task)
            else:
                found[request] = figures
        self._show(len(found), len(tasks))
        if self.jobs == 1:
            for task in open_tasks:
                found[task.request] = _perform(task, work)
                self._show(len(found), len(tasks))
        elif open_tasks:
            with ProcessPoolExecutor(self.jobs) as pool:
                futures = {pool.submit(_perform, task, work): task for task in open_tasks}
                for future in as_completed(futures):
                    try:
                        answer: Figures | Failure = future.result()
                    except BrokenProcessPool:
                        answer = Failure("the process that traced it was ended (out of memory?)")
                    found[futures[future].request] = answer
                    self._show(len(found), len(tasks))
        return {request: found[request] for request in tasks}

    def _show(self, done: int, of: int) -> None:
        if self.progress is not None:
            self.progress(done, of)

    def _trace_key(self, request: Request) -> str:
        return _digest_of(
            _FORMAT, self._code, repr(request.launch), repr(request.options), request.machine.target
        )

    def _machine_key(self, machine: Machine) -> str:
        """A digest of the simulator, of all configs, and of the machine's effective values."""
        sets = [part for text in machine.sets for part in ("--set", text)]
        command = [self.trn_sim, "run", "--config", machine.config, *sets, "--dump-config"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise MachineError(done.stderr.strip() or f"trn-sim: exit {done.returncode}")
        files = [Path(self.trn_sim), *sorted(places.folder("configs").rglob("*.yaml"))]
        given = Path(machine.config)
        if given.is_file():
            files += sorted(given.resolve().parent.parent.rglob("*.yaml"))
        return _digest_of(done.stdout, repr(machine), *map(_digest_of_file, files))


@dataclass(frozen=True)
class _Task:
    request: Request
    trace_key: str
    machine_key: str


@dataclass(frozen=True)
class _Work:
    trn_sim: str
    folder: str
    keep: bool


def _cached(task: _Task, work: _Work) -> Figures | None:
    trace = _file(work, task.trace_key, "bin")
    if not work.keep or not trace.is_file():
        return None
    return _read(_result_file(trace, task, work))


def _perform(task: _Task, work: _Work) -> Figures | Failure:
    """Traces and runs; in a process of its own, maybe."""
    trace = _file(work, task.trace_key, "bin")
    try:
        if not trace.is_file():
            _write(trace, _trace(task.request))
    except Exception as error:  # a kernel is somebody's code: it may raise anything
        return Failure(" ".join(f"tracing: {_said(error)}".split()))
    result = _result_file(trace, task, work)
    figures = _read(result)
    if figures is None:
        answer = _run(trace, task.request.machine, work.trn_sim)
        if isinstance(answer, Failure):
            return answer
        figures = answer
        _write(result, json.dumps(figures, sort_keys=True).encode())
    if not work.keep:
        trace.unlink(missing_ok=True)
        result.unlink(missing_ok=True)
    return figures


def _trace(request: Request) -> bytes:
    import trnsim
    from trnsim import jit, specs

    launch = request.launch
    name, _, function = launch.kernel.partition(".")
    trnsim.activate()
    kernel = _kernel(name, function)
    arguments: dict[str, Any] = {
        tensor: specs.Shape(launch.dtype, *shape) for tensor, shape in launch.shapes
    }
    for argument, value in launch.arguments:
        arguments[argument] = value
    args, kwargs = specs.bind(kernel, function, arguments)
    target = request.machine.target
    return jit.trace(kernel, args, kwargs, target=target, options=dict(request.options)).data


_loaded: dict[str, Any] = {}


def _kernel(name: str, function: str) -> Any:
    from trnsim import loader

    if name not in _loaded:
        _loaded[name] = loader.load(places.folder("kernels") / f"{name}.py")
    return loader.find_kernel(_loaded[name], function)


def _run(trace: Path, machine: Machine, trn_sim: str) -> Figures | Failure:
    sets = [part for text in machine.sets for part in ("--set", text)]
    command = [trn_sim, "run", "--quiet", "--report", "json", "--config", machine.config, *sets]
    done = subprocess.run([*command, str(trace)], capture_output=True, text=True)
    if done.returncode:
        said = " ".join(done.stderr.split()).replace(str(trace), "the trace")
        return Failure(f"running: exit {done.returncode}: {said[:400]}")
    report = json.loads(done.stdout)
    figures = {name: report[name] for name in _FIGURES if name in report}
    summary = report.get("summary", {})
    figures["summary"] = {name: summary[name] for name in _SUMMARY if name in summary}
    return figures


def _said(error: BaseException) -> str:
    from trnsim import loader

    return loader.describe(error)


def _file(work: _Work, key: str, suffix: str) -> Path:
    return Path(work.folder) / f"{key}.{suffix}"


def _result_file(trace: Path, task: _Task, work: _Work) -> Path:
    return _file(work, _digest_of(_FORMAT, _digest_of_file(trace), task.machine_key), "json")


def _read(file: Path) -> Figures | None:
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError):
        return None


def _write(file: Path, data: bytes) -> None:
    """All or nothing: another process may write the same."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem)
    with os.fdopen(handle, "wb") as out:
        out.write(data)
    os.replace(name, file)


def _digest_of(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:32]


def _digest_of_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _code_key() -> str:
    """A digest of all that makes traces: kernels, the tracer's Python and its compiled module."""
    import trnsim

    package = Path(trnsim._HERE)
    here = Path(__file__).resolve().parent
    files: list[Path] = [Path(str(trnsim.native().__file__))]
    for root in (package, package.parent / "shadow", places.folder("kernels")):
        files += [file for file in sorted(root.rglob("*.py")) if file.resolve().parent != here]
    return _digest_of(sys.version, *(_digest_of_file(file) for file in files))


def default_cache() -> Path:
    """$XDG_CACHE_HOME/trn-sim/validation, or below ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trn-sim" / "validation"
