"""Stored limits: what a set of rows must reach, overall and by source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AT_MOST, AT_LEAST = "_at_most", "_at_least"


def broken(result: Mapping[str, Any], limits: Mapping[str, Any]) -> list[str]:
    """One line for each limit that the result breaks. limits: one set's part of the file."""
    lines = _broken("overall", result["overall"], limits.get("overall", {}))
    sources = {source["source"]: source for source in result["sources"]}
    for name, of_source in limits.get("sources", {}).items():
        lines += _broken(name, sources.get(name, {}), of_source)
    for name, of_counter in limits.get("counters", {}).items():
        lines += _broken(name, result["counters"].get(name, {}), of_counter)
    return lines


def _broken(place: str, figures: Mapping[str, Any], limits: Mapping[str, float]) -> list[str]:
    lines = []
    for key, limit in limits.items():
        name, most = key.removesuffix(AT_MOST), key.endswith(AT_MOST)
        if not most:
            name = key.removesuffix(AT_LEAST)
        value = _figure(figures, name)
        if value is None:
            lines.append(f"{place}: {name}: no such figure, expected {_bound(most, limit)}")
        elif (value > limit) if most else (value < limit):
            lines.append(f"{place}: {name} {value:.3g}, expected {_bound(most, limit)}")
    return lines


def _figure(figures: Mapping[str, Any], name: str) -> float | None:
    """`sure.mape_percent` is the figure of that name below `sure`."""
    found: Any = figures
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return None if found is None else float(found)


def _bound(most: bool, limit: float) -> str:
    return f"at {'most' if most else 'least'} {limit:g}"
