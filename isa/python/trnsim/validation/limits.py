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


def kept(result: Mapping[str, Any]) -> dict[str, Any]:
    """Limits that the result keeps with some room: a tenth of an error and half a per cent, and
    five per cent over the number of rows; two per cent of a share."""
    whole = _kept(result["overall"])
    whole["rows_at_least"] = result["overall"]["rows"]
    if "sure" in result["overall"]:
        whole["sure.mape_percent_at_most"] = _above(
            result["overall"]["sure"]["mape_percent"], result["overall"]["sure"]["rows"]
        )
    whole["sources_mape_percent_at_most"] = _above(
        result["overall"]["sources_mape_percent"], len(result["sources"])
    )
    if "pairs_in_order_percent" in result["overall"]:
        share = result["overall"]["pairs_in_order_percent"]
        whole["pairs_in_order_percent_at_least"] = _below(share)
    parts = {
        "overall": whole,
        "sources": {source["source"]: _kept(source) for source in result["sources"]},
        "counters": {
            name: {"mean_percent_at_most": _above(counter["mean_percent"], counter["rows"])}
            for name, counter in result["counters"].items()
        },
    }
    return {name: part for name, part in parts.items() if part}


def _kept(figures: Mapping[str, Any]) -> dict[str, float]:
    return {
        "mape_percent_at_most": _above(figures["mape_percent"], figures["rows"]),
        "within_20_percent_at_least": _below(figures["within_20_percent"]),
    }


def _above(value: float, rows: int) -> float:
    return round(1.1 * value + 0.5 + 5.0 / rows, 1)


def _below(value: float) -> float:
    return max(0.0, round(value - 2.0, 1))


def as_yaml(sets: Mapping[str, Mapping[str, Any]]) -> str:
    """The file of limits: sets by name, each with its parts."""
    lines = [
        "# What `trn-sim validate` must reach, by set of rows; a broken limit is exit code 1.",
        "# `trn-sim validate [--subset NAME] --write-limits` writes what a run reaches, with a tenth",
        "# of an error, half a per cent and five per cent over the number of rows as room, or two",
        "# per cent of a share.",
    ]
    for set_name, parts in sets.items():
        lines.append(f"{set_name}:")
        for part, of_part in parts.items():
            lines.append(f"  {part}:")
            groups = {"": of_part} if part == "overall" else of_part
            for name, of_name in groups.items():
                indent = "    "
                if name:
                    lines.append(f"    {name}:")
                    indent = "      "
                lines += [f"{indent}{key}: {limit:g}" for key, limit in of_name.items()]
    return "\n".join(lines) + "\n"
