"""The report of a simulated kernel, as scripts and notebooks read it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trnsim


def can_simulate() -> bool:
    """Whether traces can be run here: by the compiled module, or by a trn-sim command."""
    return hasattr(trnsim.native(), "run") or _command() is not None


def simulate(
    trace: bytes,
    *,
    name: str,
    config: str,
    overrides: Sequence[str] = (),
    trace_seconds: float = 0.0,
    warnings: Sequence[str] = (),
) -> Report:
    """Runs a trace on a machine, a shipped name or a path."""
    report = Report(
        "",
        None,
        trace=trace,
        name=name,
        config=config,
        overrides=overrides,
        trace_seconds=trace_seconds,
        warnings=warnings,
    )
    run = getattr(trnsim.native(), "run", None)
    if run is not None:
        report._json, report._text = run(trace, config=config, overrides=list(overrides))
    else:
        report._json = report._by_command("--report", "json")
    return report


def _command() -> str | None:
    beside = os.path.normpath(os.path.join(trnsim._NATIVE, "..", "..", "bin", "trn-sim"))
    return beside if os.access(beside, os.X_OK) else shutil.which("trn-sim")


def _microseconds(nanoseconds: float) -> float:
    return round(nanoseconds / 1e3, 9)  # whole femtoseconds


class Report:
    """What a run of a trace came to; `str()` is the printed report, `to_json()` all figures."""

    def __init__(
        self,
        data: str,
        text: str | None,
        *,
        trace: bytes,
        name: str = "trace",
        config: str,
        overrides: Sequence[str] = (),
        trace_seconds: float = 0.0,
        warnings: Sequence[str] = (),
    ) -> None:
        self.trace = trace
        self.trace_seconds = trace_seconds
        self.warnings = list(warnings)  # of the tracer; the run's own are in the JSON
        self._config = config
        self._overrides = tuple(overrides)
        self._json = data
        self._text = text
        self._name = name
        self._figures: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """All figures, by the schema trn-sim-results/1 (docs/reference/report.md)."""
        if self._figures is None:
            self._figures = json.loads(self._json)
        return self._figures

    @property
    def text(self) -> str:
        """The printed report, with what the tracer has to add."""
        if self._text is None:
            self._text = self._by_command("--report", "text")
        lines = [f"traced in       {self.trace_seconds:.2f} s"] if self.trace_seconds else []
        lines += [f"warning         {warning}" for warning in self.warnings]
        return "\n".join([self._text.rstrip("\n"), *lines]) + "\n"

    @property
    def device_time_us(self) -> float:
        """From the kernel's first instruction to its last completion."""
        return _microseconds(self.to_json()["device_time_ns"])

    @property
    def latency_us(self) -> float:
        """What nki.benchmark would print; the device time where no host is modelled."""
        figures = self.to_json()
        return _microseconds(figures.get("benchmark_latency_ns", figures["device_time_ns"]))

    @property
    def bound_by(self) -> dict[str, Any]:
        """What held the critical path: resource and share, and all of it as critical_path."""
        return dict(self.to_json().get("bound_by", {}))

    @property
    def summary(self) -> dict[str, Any]:
        """The profiler's figures under AWS's names."""
        return dict(self.to_json().get("summary", {}))

    def timeline(self, path: str | Path) -> Path:
        """Writes the timeline (Perfetto, .pftrace); runs the trace again for it."""
        run = getattr(trnsim.native(), "run", None)
        if run is None:
            self._by_command("--timeline", os.path.abspath(path))
        else:
            run(
                self.trace,
                config=self._config,
                overrides=list(self._overrides),
                timeline=str(path),
            )
        return Path(path)

    def save_trace(self, path: str | Path) -> Path:
        """Writes the trace, for `trn-sim --config MACHINE PATH`."""
        Path(path).write_bytes(self.trace)
        return Path(path)

    def _by_command(self, *args: str) -> str:
        """What the trn-sim command prints for this trace."""
        command = _command()
        if command is None:
            raise RuntimeError("trn-sim: not found beside the compiled module, nor on the PATH")
        with tempfile.TemporaryDirectory(prefix="trnsim-") as folder:
            file = self.save_trace(Path(folder) / f"{self._name}.bin")
            sets = [part for override in self._overrides for part in ("--set", override)]
            given = [command, "run", "--quiet", "--config", self._config, *sets, *args, str(file)]
            done = subprocess.run(given, capture_output=True, text=True)
        if done.returncode:
            message = done.stderr.strip() or f"trn-sim: exit {done.returncode}"
            raise (ValueError if done.returncode == 2 else RuntimeError)(message)
        return done.stdout

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        bound = self.bound_by.get("resource", "nothing")
        return f"<Report: {self.device_time_us:.3f} us, bound by {bound}>"
