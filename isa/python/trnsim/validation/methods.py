"""How a row was timed: what is run for it, and what of the report it is compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any

from trnsim import jit
from trnsim.validation import inputs
from trnsim.validation.predict import Failure, Figures, Machine, Request
from trnsim.validation.rows import Row, settings

# The builder's options by how a row was timed: nki.benchmark came with the older compiler.
BUILDER_OPTIONS: dict[str, dict[str, Any]] = {
    "profiled_total": {},
    "benchmark_latency": dict(jit.OLDER_COMPILER),
    "host_wall": {},
    "relative_throughput": {},
}
HAS_OFFSET = frozenset({"benchmark_latency"})
# What nki.benchmark reports over the device time where no source says otherwise: its median is 4
# to 10 us below the profiled total, which is 15.1 us over the device time.
DEFAULT_OFFSET_NS = 8600.0
MAX_OFFSET_NS = 120e3
# The 90 % interval of a launch offset, as a share of it: the two timings of one program in K-T44
# (`tiled` and `hoisted_lhs`, the same where loads are left out) differ by 16.2 us (rms) where they
# take less than 120 us, at an offset of 49.
OFFSET_SPREAD = 0.38
# Dispatch of one compiled graph from the host: 95 to 100 us (U-HST-002 of the measurements).
HOST_DISPATCH_NS = 97e3
PLATEAU_BYTES = 32768  # a partition's part of a transfer where throughput no longer grows

_NO_MEASUREMENT = {
    "": "no metric_kind: the row does not say how it was timed",
    "limit": "metric_kind limit: not a measurement",
    "ratio_only": "metric_kind ratio_only: only ratios between such rows mean something",
}


class Unmatched(Exception):
    """A row that cannot be predicted; the text says why."""


@dataclass(frozen=True)
class Prediction:
    """Nanoseconds (a share for a throughput) without the launch offset, which is paid `launches`
    times; low and high are the bounds of it."""

    value: float
    low: float
    high: float
    launches: int
    figures: Sequence[Figures]

    def total(self, name: str) -> float | None:
        """The sum of a summary figure over the launches."""
        found = [figures["summary"].get(name) for figures in self.figures]
        return None if any(value is None for value in found) else float(sum(found))


def machine_for(row: Row, config: str | None, sets: Sequence[str]) -> Machine:
    """The machine of a row's hardware. config: what stands for a trn2."""
    hardware = row.hardware.lower()
    if "lnc=2" in hardware and not re.search(r"\b(one|1) physical core\b", hardware):
        raise Unmatched("measured on two physical cores (LNC=2); one core is simulated")
    if hardware.startswith("trn1"):
        return Machine("trn1.2xlarge", "trn1", tuple(sets))
    if hardware and not hardware.startswith("trn2"):
        raise Unmatched(f"hardware {row.hardware}: expected trn2 or trn1")
    return Machine(config or "trn2.3xlarge", "trn2", tuple(sets))


def requests_for(row: Row, machine: Machine, options: Mapping[str, Any] = {}) -> list[Request]:
    """What is to be run for a row. options: of the builder, over those of the row's method."""
    if row.metric_kind in _NO_MEASUREMENT:
        raise Unmatched(_NO_MEASUREMENT[row.metric_kind])
    if row.metric_kind not in BUILDER_OPTIONS:
        raise Unmatched(
            f"metric_kind {row.metric_kind}: expected one of {', '.join(BUILDER_OPTIONS)}"
        )
    if not row.kernel:
        raise Unmatched("no kernel is named")
    relative = row.metric_kind == "relative_throughput"
    if not relative and not row.is_time:
        raise Unmatched(f"unit {row.unit}: expected ns, us, ms or s")
    try:
        given = settings(row.args)
        launches = inputs.launches(row.kernel, given)
        if relative:
            launches = _throughput_launches(row, given)
    except ValueError as error:
        raise Unmatched(str(error)) from None
    chosen = tuple(sorted({**BUILDER_OPTIONS[row.metric_kind], **options}.items()))
    return [Request(launch, machine, chosen) for launch in launches]


def _throughput_launches(row: Row, given: Mapping[str, Any]) -> list[inputs.Launch]:
    """The row's transfers, twice as many, and the same two of the plateau's size."""
    if row.kernel != "dma.loads":
        raise ValueError("relative_throughput: expected the kernel dma.loads")
    element = 4 if given["dtype"] in ("fp32", "int32", "uint32") else 2
    return [
        launch
        for free in (given["free"], PLATEAU_BYTES // element)
        for count in (given["count"], 2 * given["count"])
        for launch in inputs.launches(row.kernel, {**given, "count": count, "free": free})
    ]


def combine(row: Row, answers: Sequence[Figures | Failure]) -> Prediction:
    """The prediction of a row from the figures of its requests."""
    figures = []
    for answer in answers:
        if isinstance(answer, Failure):
            raise Unmatched(answer.reason)
        figures.append(answer)
    if row.metric_kind == "relative_throughput":
        return _throughput(row, figures)
    value = low = high = 0.0
    for one in figures:
        device = one["device_time_ns"]
        time = device
        if row.metric_kind == "profiled_total":
            if "profiled_total_ns" not in one:
                raise Unmatched("the machine has no runtime around the kernel: no profiled total")
            time = one["profiled_total_ns"]
        value += time
        low += time - (device - one.get("device_time_low_ns", device))
        high += time + (one.get("device_time_high_ns", device) - device)
    if row.metric_kind == "host_wall":
        value, low, high = (time + HOST_DISPATCH_NS for time in (value, low, high))
    return Prediction(value, low, high, len(figures), figures)


def _throughput(row: Row, figures: Sequence[Figures]) -> Prediction:
    """Throughput from the time that as many transfers again take, as a share of the plateau's. The
    bounds are those of both times, as if the two had nothing in common."""
    given = settings(row.args)
    element = 4 if given["dtype"] in ("fp32", "int32", "uint32") else 2
    rates = []
    for size, once, twice in (
        (given["free"] * element, figures[0], figures[1]),
        (PLATEAU_BYTES, figures[2], figures[3]),
    ):
        rates.append(size / max(twice["device_time_ns"] - once["device_time_ns"], 1e-9))
    share = rates[0] / rates[1]
    (shorter, longer), (plateau_shorter, plateau_longer) = map(_bar, (figures[1], figures[3]))
    low = share * max(1 - hypot(longer, plateau_shorter), 0.0)
    high = share * (1 + hypot(shorter, plateau_longer))
    return Prediction(share, low, high, 0, figures[:1])


def _bar(figures: Figures) -> tuple[float, float]:
    """How much shorter and longer the device time may be, as shares of it."""
    time = figures["device_time_ns"]
    low = figures.get("device_time_low_ns", time)
    high = figures.get("device_time_high_ns", time)
    return 1 - low / time, high / time - 1
