"""Offsets of launch methods, errors, ranks, and what is said of them by source and overall."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import hypot
from statistics import fmean, median
from typing import Any

from trnsim.validation import inputs, methods
from trnsim.validation.methods import Prediction
from trnsim.validation.rows import Row, settings

OFFSET_STEP_NS = 100.0
APART_BY = 1.10  # pairs whose measured times differ by less are not asked for their order


@dataclass(frozen=True)
class Scored:
    """A row with its prediction, offset included: nanoseconds, or a share for a throughput."""

    row: Row
    prediction: Prediction
    offset: float

    @property
    def predicted(self) -> float:
        return self.prediction.value + self._added

    @property
    def low(self) -> float:
        return self.predicted - self._bar(self.prediction.value - self.prediction.low)

    @property
    def high(self) -> float:
        return self.predicted + self._bar(self.prediction.high - self.prediction.value)

    @property
    def error_percent(self) -> float:
        return 100.0 * (self.predicted / self.row.measured - 1.0)

    @property
    def inside(self) -> bool:
        return self.low <= self.row.measured <= self.high

    @property
    def half_width_percent(self) -> float:
        return 50.0 * (self.high - self.low) / self.predicted

    def _bar(self, device: float) -> float:
        """What the launches cost is as uncertain as it is, beside the device time."""
        return hypot(device, methods.OFFSET_SPREAD * self._added)

    @property
    def _added(self) -> float:
        return self.offset * self.prediction.launches


def fit_offset(pairs: Sequence[tuple[Prediction, float]]) -> float:
    """The launch offset with the least mean absolute percentage error; each pair is a prediction
    and its measurement. A multiple of 0.1 us within 0 to 120 us; the smaller of equals."""

    def error(offset: float) -> float:
        return fmean(abs(p.value + offset * p.launches - m) / m for p, m in pairs)

    steps = int(methods.MAX_OFFSET_NS / OFFSET_STEP_NS)
    return min((step * OFFSET_STEP_NS for step in range(steps + 1)), key=error)


def fit_offsets(predicted: Iterable[tuple[Row, Prediction]]) -> dict[str, float]:
    """One offset for each offset_group that nki.benchmark timed."""
    groups: dict[str, list[tuple[Prediction, float]]] = {}
    for row, prediction in predicted:
        if row.metric_kind in methods.HAS_OFFSET and row.offset_group:
            groups.setdefault(row.offset_group, []).append((prediction, row.measured))
    return {group: fit_offset(pairs) for group, pairs in sorted(groups.items())}


def offset_for(row: Row, offsets: Mapping[str, float]) -> float:
    """What a launch of a row costs over its device time."""
    if row.metric_kind not in methods.HAS_OFFSET:
        return 0.0
    return offsets.get(row.offset_group, methods.DEFAULT_OFFSET_NS)


def summarise(scored: Sequence[Scored]) -> dict[str, Any]:
    """Figures that a source and the whole set have in common. scored is not empty."""
    errors = [one.error_percent for one in scored]
    worst = max(scored, key=lambda one: abs(one.error_percent))
    pairs, right, tau = order(scored)
    figures: dict[str, Any] = {
        "rows": len(scored),
        "mape_percent": fmean(map(abs, errors)),
        "median_percent": median(map(abs, errors)),
        "bias_percent": fmean(errors),
        "within_20_percent": 100.0 * fmean(abs(error) <= 20.0 for error in errors),
        "worst": {"id": worst.row.id, "error_percent": worst.error_percent},
        "coverage_percent": 100.0 * fmean(one.inside for one in scored),
        "half_width_percent": median(one.half_width_percent for one in scored),
    }
    if tau is not None:
        figures["kendall_tau"] = tau
    if pairs:
        figures["pairs"] = pairs
        figures["pairs_in_order_percent"] = 100.0 * right / pairs
    return figures


def order(scored: Sequence[Scored]) -> tuple[int, int, float | None]:
    """Of variants of one workload: pairs whose measured times differ by over 10 %, those of them
    that are predicted in the right order, and Kendall's tau-b over all pairs."""
    pairs = right = concordant = discordant = tied_measured = tied_predicted = 0
    groups: dict[tuple[Any, ...], list[Scored]] = {}
    for one in scored:
        row = one.row
        key = (row.prefix, row.metric_kind, *inputs.workload(row.kernel, settings(row.args)))
        groups.setdefault(key, []).append(one)
    for group in groups.values():
        for a, b in combinations(group, 2):
            measured = _sign(a.row.measured - b.row.measured)
            predicted = _sign(a.predicted - b.predicted)
            concordant += measured * predicted > 0
            discordant += measured * predicted < 0
            tied_measured += measured == 0
            tied_predicted += predicted == 0
            apart = max(a.row.measured, b.row.measured) / min(a.row.measured, b.row.measured)
            if apart > APART_BY:
                pairs += 1
                right += measured == predicted
    total = sum(len(group) * (len(group) - 1) // 2 for group in groups.values())
    spread = (total - tied_measured) * (total - tied_predicted)
    tau = (concordant - discordant) / spread**0.5 if spread > 0 else None
    return pairs, right, tau


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def by_source(scored: Sequence[Scored]) -> dict[str, list[Scored]]:
    """Rows by the prefix of their id, in the order in which these appear."""
    groups: dict[str, list[Scored]] = {}
    for one in scored:
        groups.setdefault(one.row.prefix, []).append(one)
    return groups


def overall(scored: Sequence[Scored]) -> dict[str, Any]:
    """The figures of all rows, and the mean over sources of their mean errors."""
    figures = summarise(scored)
    figures["sources_mape_percent"] = fmean(
        fmean(abs(one.error_percent) for one in group) for group in by_source(scored).values()
    )
    sure = [
        one
        for one in scored
        if one.row.is_time
        and one.row.metric_kind != "host_wall"
        and one.row.confidence == "high"
        and one.row.spilled == "no"
    ]
    if sure:
        figures["sure"] = {
            "rows": len(sure),
            "mape_percent": fmean(abs(one.error_percent) for one in sure),
        }
    return figures


# What the notes of a row say of its counters.
_PUBLISHED: dict[str, tuple[re.Pattern[str], ...]] = {
    "hbm_bytes": (
        re.compile(r"HBM read ([\d,]+) B, written ([\d,]+) B"),
        re.compile(r"(?<!modelled )HBM bytes ([\d,]+)"),
        re.compile(r"(?<![\d,])([\d,]{9,}) B\b"),
    ),
    "dma_transfers": (re.compile(r"(?<!packets )transfers ([\d,]+)"), re.compile(r"([\d,]+) transfers")),
    "tensor_active_percent": (re.compile(r"TensorE (?:busy |active )?(?:[\d.]+ ms \()?([\d.]+)%"),),
    "vector_active_percent": (re.compile(r"VectorE (?:busy |active )?(?:[\d.]+ ms \()?([\d.]+)%"),),
    "dma_active_percent": (re.compile(r"DMA (?:busy |active )?(?:[\d.]+ ms \()?([\d.]+)%"),),
    "mfu_percent": (re.compile(r"MFU ([\d.]+)%"),),
}  # fmt: skip


_SHARES = {  # of one launch, in the report's summary
    "tensor_active_percent": "tensor_engine_active_time_percent",
    "vector_active_percent": "vector_engine_active_time_percent",
    "dma_active_percent": "dma_active_time_percent",
    "mfu_percent": "mfu_estimated_percent",
}


def published(row: Row) -> dict[str, float]:
    """The counters in the notes of a row."""
    found = {}
    for name, patterns in _PUBLISHED.items():
        for pattern in patterns:
            match = pattern.search(row.notes)
            if match:
                found[name] = sum(float(text.replace(",", "")) for text in match.groups())
                break
    return found


def predicted_counters(prediction: Prediction) -> dict[str, float]:
    """The same counters of a prediction; the share of several launches is left out."""
    found: dict[str, float] = {}
    read, written = prediction.total("hbm_read_bytes"), prediction.total("hbm_write_bytes")
    if read is not None and written is not None:
        found["hbm_bytes"] = read + written
    transfers = prediction.total("dma_transfer_count")
    if transfers is not None:
        found["dma_transfers"] = transfers
    for name, share in _SHARES.items():
        value = prediction.total(share)
        if value is not None and len(prediction.figures) == 1:
            found[name] = 100.0 * value
    return found


def counters(scored: Sequence[Scored]) -> dict[str, Any]:
    """Published counters against predicted ones, of rows that did not spill."""
    differences: dict[str, list[tuple[float, str]]] = {}
    for one in scored:
        if one.row.spilled != "no":
            continue
        ours = predicted_counters(one.prediction)
        for name, theirs in published(one.row).items():
            if name not in ours or theirs == 0:
                continue
            difference = (
                ours[name] - theirs
                if name.endswith("_percent")
                else 100.0 * (ours[name] / theirs - 1.0)
            )
            differences.setdefault(name, []).append((difference, one.row.id))
    return {
        name: {
            "rows": len(found),
            "mean_percent": fmean(abs(difference) for difference, _ in found),
            "within_5_percent": 100.0 * fmean(abs(difference) <= 5.0 for difference, _ in found),
            "worst": dict(zip(("difference_percent", "id"), max(found, key=lambda f: abs(f[0])))),
        }
        for name, found in sorted(differences.items())
    }
