"""Measurements, as a CSV file has them: one row each, with the kernel and how it was timed."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REQUIRED = ("id", "value", "unit", "kernel", "args", "metric_kind")
OPTIONAL = (
    "source", "hardware", "op", "shapes", "dtype", "algorithm", "metric", "conditions",
    "confidence", "notes", "offset_group", "spilled",
)  # fmt: skip
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


class RowsError(ValueError):
    """A file that cannot be read as rows; the text names file, line and column."""


@dataclass(frozen=True)
class Row:
    """A measurement. value: in `unit`; args: the kernel's settings as text."""

    id: str
    value: float
    unit: str
    kernel: str
    args: str
    metric_kind: str
    other: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    def __getattr__(self, name: str) -> str:
        if name in OPTIONAL:
            return self.other.get(name, "")
        raise AttributeError(name)

    @property
    def prefix(self) -> str:
        """The source: `K-T44` of `K-T44-003`."""
        return self.id.rpartition("-")[0] or self.id

    @property
    def measured(self) -> float:
        """Nanoseconds; a share of the plateau for a relative throughput."""
        return self.value * _NANOSECONDS.get(self.unit, 1.0)

    @property
    def is_time(self) -> bool:
        return self.unit in _NANOSECONDS


def settings(text: str) -> dict[str, Any]:
    """`M=512 dtype=bf16` as a dictionary. Throws ValueError."""
    found: dict[str, Any] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier() or not value:
            raise ValueError(f"args: expected NAME=VALUE, got {word}")
        if name in found:
            raise ValueError(f"args: {name} is given twice")
        found[name] = _setting(value)
    return found


def _setting(value: str) -> Any:
    if re.fullmatch(r"[+-]?\d+", value):
        return int(value)
    try:
        return float(value)
    except ValueError:
        return {"True": True, "true": True, "False": False, "false": False}.get(value, value)


def read(path: str | Path) -> list[Row]:
    """The rows of a file. Throws RowsError that lists all that is wrong."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RowsError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise RowsError(f"{path}: byte {error.start}: expected UTF-8 text") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        header = next(reader, None)
        if header is None or not any(header):
            raise RowsError(f"{path}:1: expected a line with the names of the columns")
        _check_header(path, header)
        rows, errors, seen = [], [], {}
        for cells in reader:
            start, line = line + 1, reader.line_num
            if cells:
                row = _row(f"{path}:{start}", header, cells, errors)
                if row is not None and row.id in seen:
                    errors.append(f"{path}:{start}: id: {row.id} is in line {seen[row.id]} already")
                elif row is not None:
                    seen[row.id] = start
                    rows.append(row)
    except csv.Error as error:
        raise RowsError(f"{path}:{reader.line_num}: not CSV: {error}") from None
    if errors:
        raise RowsError("\n".join(errors))
    if not rows:
        raise RowsError(f"{path}: expected at least one row below the names of the columns")
    return rows


def _check_header(path: str | Path, header: list[str]) -> None:
    for name in REQUIRED:
        if name not in header:
            raise RowsError(
                f"{path}:1: {name}: no such column; expected at least {', '.join(REQUIRED)}"
            )
    for name in header:
        if header.count(name) > 1:
            raise RowsError(f"{path}:1: {name}: more than one column of this name")


def _row(place: str, header: list[str], cells: list[str], errors: list[str]) -> Row | None:
    if len(cells) != len(header):
        last = header[min(len(cells), len(header)) - 1]
        errors.append(
            f"{place}: {last}: expected {len(header)} columns, got {len(cells)} up to here"
        )
        return None
    given = {name: cell.strip() for name, cell in zip(header, cells)}
    value = math.nan
    try:
        value = float(given["value"])
    except ValueError:
        pass
    if not math.isfinite(value) or value <= 0:
        errors.append(f"{place}: value: expected a number above 0, got {given['value']!r}")
        return None
    if not given["id"]:
        errors.append(f"{place}: id: expected a name")
        return None
    return Row(
        given["id"],
        value,
        given["unit"],
        given["kernel"],
        given["args"],
        given["metric_kind"],
        {name: given.get(name, "") for name in OPTIONAL},
    )


def read_reasons(path: Path) -> list[tuple[str, str]]:
    """The ids of rows that are left out, each with its reason."""
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["id"], row["reason"]) for row in csv.DictReader(file)]
