"""The report of a simulated kernel, as scripts and notebooks read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trnsim


class Report:
    """What a run of a trace came to; `str()` is the printed report, `to_json()` all figures."""

    def __init__(
        self,
        data: str,
        text: str,
        *,
        trace: bytes,
        config: str,
        overrides: Sequence[str] = (),
        trace_seconds: float = 0.0,
        warnings: Sequence[str] = (),
    ) -> None:
        lines = [f"traced in       {trace_seconds:.2f} s"] if trace_seconds else []
        lines += [f"warning         {warning}" for warning in warnings]
        self.text = "\n".join([text.rstrip("\n"), *lines]) + "\n"
        self.trace = trace
        self.trace_seconds = trace_seconds
        self.warnings = list(warnings)  # of the tracer; the run's own are in the JSON
        self._config = config
        self._overrides = tuple(overrides)
        self._json = data
        self._figures: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """All figures, by the schema trn-sim-results/1 (docs/reference/report.md)."""
        if self._figures is None:
            self._figures = json.loads(self._json)
        return self._figures

    @property
    def device_time_us(self) -> float:
        """From the kernel's first instruction to its last completion."""
        return float(self.to_json()["device_time_ns"]) / 1e3

    @property
    def latency_us(self) -> float:
        """What nki.benchmark would print; the device time where no host is modelled."""
        figures = self.to_json()
        return float(figures.get("benchmark_latency_ns", figures["device_time_ns"])) / 1e3

    @property
    def bound_by(self) -> list[dict[str, Any]]:
        """What held the critical path: resource and share, the largest first."""
        return list(self.to_json().get("bound_by", []))

    @property
    def summary(self) -> dict[str, Any]:
        """The profiler's figures under AWS's names."""
        return dict(self.to_json().get("summary", {}))

    def timeline(self, path: str | Path) -> Path:
        """Writes the timeline (Perfetto, .pftrace); runs the trace again for it."""
        trnsim.native().run(
            self.trace, config=self._config, overrides=self._overrides, timeline=str(path)
        )
        return Path(path)

    def save_trace(self, path: str | Path) -> Path:
        """Writes the trace, for `trn-sim --config MACHINE PATH`."""
        Path(path).write_bytes(self.trace)
        return Path(path)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        bound = self.bound_by[0].get("resource", "?") if self.bound_by else "?"
        return f"<Report: {self.device_time_us:.3f} us, bound by {bound}>"
