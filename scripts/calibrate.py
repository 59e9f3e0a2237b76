#!/usr/bin/python3
"""Fits parameters of a chip to measurements and writes them with their intervals.

Each parameter of the list (configs/calibration/fit.yaml) is run at its value and on both sides of
it; through the three predictions of a row goes a parabola of its logarithm, and the sum of these is
what scipy minimises: the mean absolute logarithm of predicted over measured, plus a prior that
keeps parameters near what profiles show. The result is run in full, the parabolas are made anew
around it, and the next round begins; a round that does not make the error smaller ends the fit.

A source's launch offset belongs to its method and not to the machine: every error is taken at the
offset that suits its source best, within 0 to 120 us, and printed. The fit is checked by leaving
out one source after the other. Same inputs, same bytes. Needs the package python3-scipy.

Example: the parameters of the DMA queues on the small subset, a few minutes
  scripts/calibrate.py --subset ci --only chip.dma.software.interval -o /tmp/trn2.yaml
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
import yaml

ROOT = Path(__file__).resolve().parents[1]
OFFSET_US = (0.0, 120.0)
DEFAULT_OFFSET_US = 8.6  # of a source that says nothing of its own
SIGMAS_OF_90_PERCENT = 1.645
FIGURES = 4  # of a fitted value
ROUNDS = 4
SOURCE = "docs/sources.md#calibration"

Array = np.ndarray[Any, np.dtype[np.float64]]


# ---- what is read ----


@dataclass(frozen=True)
class Parameter:
    """A parameter that may be fitted; numbers are in `unit`."""

    path: str
    unit: str
    value: float  # where the prior has its middle
    low: float  # physical bounds
    high: float
    spread: float  # one sigma of the prior
    reason: str

    def text(self, value: float) -> str:
        return quantity(value, self.unit)

    def inside(self, value: float) -> float:
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Row:
    """A measurement and what a run predicts of it, in us (or a share, of a throughput)."""

    id: str
    source: str
    group: str  # rows that share a launch offset; empty: the measurement has none
    predicted_us: float  # without the offset
    measured_us: float
    launches: int = 1  # how often the offset is paid


def quantity(value: float, unit: str) -> str:
    return f"{value:.10g} {unit}".strip()


def rounded(value: float) -> float:
    return float(f"{value:.{FIGURES}g}")


def split_quantity(text: object, where: str) -> tuple[float, str]:
    match = re.fullmatch(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: (\S+))?", str(text))
    if match is None:
        raise SystemExit(f"calibrate.py: {where}: expected a number and its unit, got '{text}'")
    return float(match[1]), match[2] or ""


def check_keys(entry: object, keys: Iterable[str], where: str) -> dict[str, Any]:
    if not isinstance(entry, dict) or set(entry) != set(keys):
        raise SystemExit(f"calibrate.py: {where}: expected the keys {', '.join(keys)}")
    return entry


def read_parameters(file: Path, only: Sequence[str]) -> list[Parameter]:
    """The list of what may be fitted; every key must be there and no other."""
    document = check_keys(yaml.safe_load(file.read_text()), ["parameters"], str(file))
    parameters = []
    for entry in document["parameters"]:
        where = f"{file}: {entry.get('path', '?')}"
        check_keys(entry, ["path", "value", "low", "high", "spread", "reason"], where)
        numbers = [split_quantity(entry[key], where) for key in ("value", "low", "high", "spread")]
        (value, unit), (low, _), (high, _), (spread, _) = numbers
        if any(each != unit for _, each in numbers):
            raise SystemExit(f"calibrate.py: {where}: expected one unit, {unit or 'none'}")
        if not (low <= value <= high and low < high and spread > 0 and value > 0):
            raise SystemExit(f"calibrate.py: {where}: expected low <= value <= high, spread > 0")
        parameters.append(Parameter(entry["path"], unit, value, low, high, spread, entry["reason"]))
    unknown = set(only) - {parameter.path for parameter in parameters}
    if unknown:
        raise SystemExit(f"calibrate.py: --only: not in {file}: {', '.join(sorted(unknown))}")
    return [each for each in parameters if not only or each.path in only]


class Validation:
    """`trn-sim validate`, run with parameters set; the same settings are run once."""

    def __init__(self, command: Sequence[str], sets: Sequence[str], progress: bool) -> None:
        self._command = list(command)
        self._sets = list(sets)
        self._progress = progress
        self._done: dict[tuple[str, ...], list[Row]] = {}

    def rows(self, parameters: Sequence[Parameter], values: Sequence[float]) -> list[Row]:
        key = tuple(f"{p.path}={p.text(value)}" for p, value in zip(parameters, values))
        if key not in self._done:
            if self._progress:
                print(f"run {len(self._done) + 1}: {' '.join(key)}", file=sys.stderr)
            self._done[key] = self._run(key)
        return self._done[key]

    def _run(self, sets: Iterable[str]) -> list[Row]:
        command = [*self._command, "--report", "json"]
        for each in [*self._sets, *sets]:
            command += ["--set", each]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: a stored limit is broken
            raise SystemExit(f"calibrate.py: {shlex.join(command)}\n{done.stderr.strip()}")
        return [row_of(entry) for entry in json.loads(done.stdout)["rows"]]


def row_of(entry: dict[str, Any]) -> Row:
    """A row of the report. A source is what the ids of its rows have in common."""
    name = str(entry["id"])
    source = name.rsplit("-", 1)[0]
    scale = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}.get(entry.get("unit", "us"), 1.0)
    predicted = float(entry["predicted"]) * scale - float(entry.get("offset_us", 0))
    with_offset = entry.get("metric_kind") == "benchmark_latency"
    group = str(entry.get("offset_group") or source) if with_offset else ""
    measured = float(entry["measured"]) * scale
    return Row(name, source, group, predicted, measured, int(entry.get("launches", 1)))


# ---- the error ----


class Model:
    """Predictions as a function of the parameters: per row, a parabola each of the logarithm.

    x counts from the centre in sigmas of the prior.
    """

    def __init__(
        self, parameters: Sequence[Parameter], centre: Sequence[float], validation: Validation
    ) -> None:
        self.parameters = parameters
        self.centre = np.array(centre, dtype=float)
        self.spread = np.array([p.spread for p in parameters])
        self.rows = validation.rows(parameters, centre)
        self.base = np.log([row.predicted_us for row in self.rows])
        self.slope = np.zeros((len(parameters), len(self.rows)))
        self.bend = np.zeros_like(self.slope)
        for j, parameter in enumerate(parameters):
            points, logs = [], []
            for side in (-1, 1):
                value = rounded(parameter.inside(centre[j] + side * 2 * parameter.spread))
                if value == centre[j]:
                    continue
                there = [value if i == j else c for i, c in enumerate(centre)]
                changed = [row.predicted_us for row in validation.rows(parameters, there)]
                points.append((value - centre[j]) / parameter.spread)
                logs.append(np.log(changed) - self.base)
            if len(points) == 2:
                (a, b), (f, g) = points, logs
                self.bend[j] = (f / a - g / b) / (a - b)
                self.slope[j] = f / a - self.bend[j] * a
            elif points:
                self.slope[j] = logs[0] / points[0]

    def x_of(self, values: Sequence[float]) -> Array:
        return (np.array(values) - self.centre) / self.spread

    def log_predicted(self, x: Array) -> Array:
        return self.base + x @ self.slope + (x * x) @ self.bend


class Errors:
    """Errors of some rows at the offset that suits each group best."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.measured = np.array([row.measured_us for row in rows])
        self.launches = np.array([row.launches for row in rows], dtype=float)
        groups = sorted({row.group for row in rows if row.group})
        self.members = {
            group: np.array([i for i, row in enumerate(rows) if row.group == group])
            for group in groups
        }

    def of(self, predicted: Array, weights: Array) -> tuple[Array, dict[str, float]]:
        """log(predicted / measured) of every row, and the offsets in us.

        A weight is how often a row counts when its offset is looked for.
        """
        total = predicted.copy()
        offsets = {}
        for group, index in self.members.items():
            if not weights[index].any():  # nothing known of its method
                offsets[group] = DEFAULT_OFFSET_US
            else:
                offsets[group] = best_offset(
                    predicted[index], self.measured[index], self.launches[index], weights[index]
                )
            total[index] += offsets[group] * self.launches[index]
        return np.log(total / self.measured), offsets


def best_offset(predicted: Array, measured: Array, launches: Array, weights: Array) -> float:
    """To 0.1 us, by ever finer steps."""
    low, high = OFFSET_US
    best = low
    for step in (8.0, 1.0, 0.1):
        steps = np.arange(round((high - low) / step) + 1) * step + low
        errors = np.abs(np.log((predicted + steps[:, None] * launches) / measured)) @ weights
        best = float(steps[int(np.argmin(errors))])
        low, high = max(OFFSET_US[0], best - step), min(OFFSET_US[1], best + step)
    return round(best, 1)


@dataclass(frozen=True)
class Fit:
    values: list[float]
    objective: float


def fit(model: Model, errors: Errors, weights: Array, prior: float, middle: Sequence[float]) -> Fit:
    """The parameters with the least error over rows of weight, and near the prior's middle."""
    parameters = model.parameters
    x_middle = model.x_of(middle)
    # Parabolas hold as far as they were measured.
    low = [max(p.low, c - 3 * p.spread) for p, c in zip(parameters, model.centre)]
    high = [min(p.high, c + 3 * p.spread) for p, c in zip(parameters, model.centre)]
    x_low, x_high = model.x_of(low), model.x_of(high)

    def objective(x: Array) -> float:
        inside = np.clip(x, x_low, x_high)
        log_errors, _ = errors.of(np.exp(model.log_predicted(inside)), weights)
        distance = inside - x_middle
        return float(np.abs(log_errors) @ weights / weights.sum() + prior * (distance @ distance))

    start = np.clip(np.zeros(len(parameters)), x_low, x_high)
    found = scipy.optimize.minimize(
        objective,
        start,
        method="Powell",
        bounds=list(zip(x_low, x_high)),
        options={"xtol": 1e-3, "ftol": 1e-7, "maxiter": 50},
    )
    x = np.clip(np.atleast_1d(found.x), x_low, x_high)
    if objective(x) > objective(start):
        x = start
    values = [p.inside(rounded(v)) for p, v in zip(parameters, model.centre + x * model.spread)]
    return Fit(values, objective(model.x_of(values)))


def true_objective(
    rows: Sequence[Row], parameters: Sequence[Parameter], values: Sequence[float], prior: float
) -> float:
    """As `fit` has it, of a run and not of parabolas."""
    predicted = np.array([row.predicted_us for row in rows])
    log_errors, _ = Errors(rows).of(predicted, np.ones(len(rows)))
    distance = sum(((v - p.value) / p.spread) ** 2 for p, v in zip(parameters, values))
    return float(np.abs(log_errors).mean()) + prior * distance


def fit_in_rounds(
    parameters: Sequence[Parameter], validation: Validation, prior: float, rounds: int
) -> tuple[Model, list[float]]:
    middle = [p.value for p in parameters]
    values = list(middle)
    model = Model(parameters, values, validation)
    best = true_objective(model.rows, parameters, values, prior)
    for _ in range(rounds):
        errors = Errors(model.rows)
        found = fit(model, errors, np.ones(len(model.rows)), prior, middle)
        if found.values == values:
            break
        rows = validation.rows(parameters, found.values)
        now = true_objective(rows, parameters, found.values, prior)
        if now >= best - 1e-5:
            break
        values, best = found.values, now
        model = Model(parameters, values, validation)
    return model, values


# ---- how sure it is ----


@dataclass(frozen=True)
class LeftOut:
    """What a source's error is when the others alone decide."""

    source: str
    rows: int
    before_percent: float  # with the parameters as they were
    error_percent: float
    own_offset_percent: float  # and the source's own launch offset
    values: list[float]


def percent(log_errors: Array) -> float:
    return float(100 * np.abs(np.expm1(log_errors)).mean())


def cross_validate(
    model: Model, prior: float, validation: Validation, parabolas: bool
) -> list[LeftOut]:
    """Fits on all sources but one and tests on that one, in turn."""
    rows, errors = model.rows, Errors(model.rows)
    middle = [p.value for p in model.parameters]
    before = np.array([r.predicted_us for r in validation.rows(model.parameters, middle)])
    everything = np.ones(len(rows))
    result = []
    for source in sorted({row.source for row in rows}):
        here = np.array([row.source == source for row in rows])
        weights = np.where(here, 0.0, 1.0)
        if not weights.any():
            raise SystemExit("calibrate.py: expected rows of two sources at least")
        found = fit(model, errors, weights, prior, middle)
        if parabolas:
            predicted = np.exp(model.log_predicted(model.x_of(found.values)))
        else:
            tested = validation.rows(model.parameters, found.values)
            predicted = np.array([row.predicted_us for row in tested])
        result.append(
            LeftOut(
                source,
                int(here.sum()),
                percent(errors.of(before, everything)[0][here]),
                percent(errors.of(predicted, weights)[0][here]),
                percent(errors.of(predicted, everything)[0][here]),
                found.values,
            )
        )
    return result


def intervals(
    model: Model, values: Sequence[float], prior: float, draws: int, seed: int
) -> list[tuple[float, float]]:
    """90 % intervals by a bootstrap over sources.

    The prior's middle is drawn as well, so that a parameter of which the rows say nothing keeps
    the interval that it had.
    """
    generator = np.random.default_rng(seed)
    errors = Errors(model.rows)
    sources = sorted({row.source for row in model.rows})
    number = np.array([sources.index(row.source) for row in model.rows])
    found = []
    for _ in range(draws):
        counts = np.bincount(generator.integers(len(sources), size=len(sources)))
        counts = np.pad(counts, (0, len(sources) - len(counts)))
        noise = generator.standard_normal(len(values))
        middle = [p.value + z * p.spread for p, z in zip(model.parameters, noise)]
        found.append(fit(model, errors, counts[number].astype(float), prior, middle).values)
    result = []
    for j, parameter in enumerate(model.parameters):
        if draws:
            low, high = np.quantile([each[j] for each in found], [0.05, 0.95])
        else:
            reach = SIGMAS_OF_90_PERCENT * parameter.spread
            low, high = values[j] - reach, values[j] + reach
        result.append(
            (
                rounded(parameter.inside(min(float(low), values[j]))),
                rounded(parameter.inside(max(float(high), values[j]))),
            )
        )
    return result


def effects(model: Model, values: Sequence[float], ends: Sequence[tuple[float, float]]) -> Array:
    """Per parameter and row, the logarithm between the predictions at the interval's ends."""
    result = np.zeros((len(values), len(model.rows)))
    for j, (low, high) in enumerate(ends):
        logs = []
        for end in (low, high):
            there = [end if i == j else v for i, v in enumerate(values)]
            logs.append(model.log_predicted(model.x_of(there)))
        result[j] = logs[1] - logs[0]
    return result


def rest(log_errors: Array, effect: Array) -> float:
    """The half-width that, beside the parameters' own, has nine rows of ten inside."""
    own = np.square(effect / 2).sum(axis=0)
    needed = np.sqrt(np.maximum(0, np.square(log_errors) - own))
    return float(np.quantile(needed, 0.9))


# ---- what is written ----


def inline(acts_on: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in acts_on.items()) + "}"


def calibration_text(
    old: dict[str, Any],
    parameters: Sequence[Parameter],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    influence: Sequence[float],
    schedule: float,
    rows: str,
    date: str,
) -> str:
    """The calibration file with new values and intervals; what was not fitted stays."""
    fitted = {p.path: j for j, p in enumerate(parameters)}
    known = {entry["path"] for entry in old["parameters"]}
    missing = [path for path in fitted if path not in known]
    if missing:
        raise SystemExit(
            f"calibrate.py: the calibration file has no acts_on of {', '.join(missing)}"
        )
    lines = [
        "# Values and 90 % intervals of the chip's parameters; docs/concepts/error-bars.md says how",
        "# they make the error bar of a report. Written by scripts/calibrate.py.",
        f"chip: {old['chip']}",
        f"date: {date}",
        f"rows: [{rows}]",
        "parameters:",
    ]
    for entry in old["parameters"]:
        entry = dict(entry)
        j = fitted.get(entry["path"])
        if j is not None:
            parameter = parameters[j]
            entry["value"] = parameter.text(values[j])
            entry["low"], entry["high"] = (parameter.text(end) for end in ends[j])
            entry["influence_percent"] = round(influence[j], 2)
            if values[j] != parameter.value:
                entry["status"], entry["source"] = "der", SOURCE
        lines.append(f"  - path: {entry['path']}")
        for key in ("value", "low", "high", "influence_percent"):
            if key in entry:
                lines.append(f"    {key}: {entry[key]}")
        lines.append(f"    acts_on: {inline(entry['acts_on'])}")
        lines += [f"    {key}: {entry[key]}" for key in ("status", "source")]
    lines.append("unknowns:")
    for entry in old["unknowns"]:
        entry = dict(entry)
        if entry["name"] == "schedule":
            entry["low"], entry["high"] = rounded(math.exp(-schedule)), rounded(math.exp(schedule))
            entry["status"], entry["source"] = "der", SOURCE
        lines.append(f"  - name: {entry['name']}")
        lines += [f"    {key}: {entry[key]}" for key in ("low", "high")]
        lines.append(f"    acts_on: {inline(entry['acts_on'])}")
        lines += [f"    {key}: {entry[key]}" for key in ("status", "source")]
    return "\n".join(lines) + "\n"


def patched_chip(text: str, changes: dict[str, str]) -> str:
    """A chip file with new values: each with the status and the source of a calibration.

    changes: quantities by path within the file.
    """
    document = yaml.compose(text)
    places = []
    for path, value in changes.items():
        node = document
        for key in path.split("."):
            entries = {k.value: v for k, v in node.value} if node.id == "mapping" else {}
            if key not in entries:
                raise SystemExit(f"calibrate.py: the chip file has no '{path}'")
            node = entries[key]
        places.append((node.start_mark.index, node.end_mark.index, value))
    for begin, end, value in sorted(places, reverse=True):
        text = f"{text[:begin]}{{value: {value}, status: der, source: {SOURCE}}}{text[end:]}"
    return text


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def parameter_table(
    parameters: Sequence[Parameter],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    influence: Sequence[float],
) -> str:
    return table(
        ["parameter", "before", "fitted", "low", "high", "bounds", "influence %"],
        (
            (
                p.path,
                p.text(p.value),
                p.text(value),
                p.text(low),
                p.text(high),
                f"{p.low:g} to {p.high:g}",
                f"{change:.2f}",
            )
            for p, value, (low, high), change in zip(parameters, values, ends, influence)
        ),
    )


def cross_validation_table(folds: Sequence[LeftOut]) -> str:
    lines = [
        (
            fold.source,
            str(fold.rows),
            f"{fold.before_percent:.2f}",
            f"{fold.error_percent:.2f}",
            f"{fold.own_offset_percent:.2f}",
        )
        for fold in folds
    ]
    columns = [
        [fold.before_percent for fold in folds],
        [fold.error_percent for fold in folds],
        [fold.own_offset_percent for fold in folds],
    ]
    means = [f"{np.mean(column):.2f}" for column in columns]
    lines.append(("mean", str(sum(fold.rows for fold in folds)), *means))
    return table(
        ["source left out", "rows", "before %", "left out %", "with own offset %"],
        lines,
    )


# ---- the command ----


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument("--subset", help="a named part of the validation rows; default: all")
    rows.add_argument("--rows", type=Path, metavar="FILE.csv", help="other rows of that form")
    parser.add_argument("--config", default="trn2.3xlarge", help="machine (%(default)s)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="overrides of the machine"
    )
    parser.add_argument(
        "--fit",
        type=Path,
        default=ROOT / "configs/calibration/fit.yaml",
        metavar="FILE",
        help="what may be fitted, within which bounds (configs/calibration/fit.yaml)",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATH", help="of that list, these (repeat)"
    )
    parser.add_argument(
        "--calibration",
        type=Path,
        default=ROOT / "configs/calibration/trn2.yaml",
        metavar="FILE",
        help="the file whose values are replaced (configs/calibration/trn2.yaml)",
    )
    parser.add_argument("-o", "--output", type=Path, help="the new calibration file")
    parser.add_argument(
        "--write-chip", type=Path, metavar="FILE", help="a copy of the chip with the new values"
    )
    parser.add_argument(
        "--chip", type=Path, default=ROOT / "configs/chips/trn2.yaml", help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--prior",
        type=float,
        default=0.001,
        help="mean error that moving a parameter by one sigma must win (%(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the fit (%(default)s)")
    parser.add_argument(
        "--draws", type=int, default=100, help="of the bootstrap over sources (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the bootstrap (%(default)s)")
    parser.add_argument(
        "--parabolas",
        action="store_true",
        help="test left-out sources by the parabolas, without a run each",
    )
    parser.add_argument("--date", help="of the calibration, YYYY-MM-DD; default: today")
    parser.add_argument(
        "--command",
        default="trn-sim validate",
        help="what predicts the rows, with options of its own (%(default)s)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    parameters = read_parameters(args.fit, args.only)
    old = yaml.load(args.calibration.read_text(), yaml.BaseLoader)
    command = [*shlex.split(args.command), "--config", args.config]
    named = "all"
    if args.subset:
        command += ["--subset", args.subset]
        named = args.subset
    if args.rows:
        command += ["--rows", str(args.rows)]
        named = args.rows.name
    validation = Validation(command, args.set, not args.quiet)

    model, values = fit_in_rounds(parameters, validation, args.prior, args.rounds)
    rows = model.rows
    everything = np.ones(len(rows))
    predicted = np.array([row.predicted_us for row in rows])
    log_errors, offsets = Errors(rows).of(predicted, everything)
    first = validation.rows(parameters, [p.value for p in parameters])
    before, _ = Errors(first).of(np.array([row.predicted_us for row in first]), everything)

    ends = intervals(model, values, args.prior, args.draws, args.seed)
    effect = effects(model, values, ends)
    influence = [float(each) for each in 100 * np.abs(np.expm1(effect)).mean(axis=1)]
    schedule = rest(log_errors, effect)
    folds = cross_validate(model, args.prior, validation, args.parabolas)

    print(
        f"{len(rows)} rows: mean error {percent(before):.2f} % before, {percent(log_errors):.2f} %"
    )
    print(
        f"prior: {args.prior:g} a squared sigma; bootstrap: {args.draws} draws, seed {args.seed}\n"
    )
    print(parameter_table(parameters, values, ends, influence))
    print(
        f"\nbeside the parameters, nine rows of ten lie within {100 * math.expm1(schedule):.1f} %\n"
    )
    print(table(["launch offset", "us"], ((g, f"{o:.1f}") for g, o in offsets.items())))
    print()
    print(cross_validation_table(folds))

    if args.output:
        date = args.date or datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        text = calibration_text(old, parameters, values, ends, influence, schedule, named, date)
        args.output.write_text(text)
    if args.write_chip:
        changes = {
            p.path.removeprefix("chip."): p.text(value)
            for p, value in zip(parameters, values)
            if value != p.value
        }
        args.write_chip.write_text(patched_chip(args.chip.read_text(), changes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
