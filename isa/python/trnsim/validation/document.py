"""The generated parts of README.md and docs/accuracy.md: tables of a result, between markers.

`<!-- accuracy: NAME -->` begins a part, and `<!-- end -->` ends it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_PART = re.compile(r"(<!-- accuracy: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_WORST = 25


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(_cell(cell) for cell in row)} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _percent(value: float | None, digits: int = 1, sign: bool = False) -> str:
    if value is None:
        return ""
    return f"{value:{'+' if sign else ''}.{digits}f} %"


def _source_cells(name: str, figures: Mapping[str, Any]) -> list[str]:
    worst = figures["worst"]
    return [
        name,
        str(figures["rows"]),
        _percent(figures["mape_percent"]),
        _percent(figures["median_percent"]),
        _percent(figures["bias_percent"], sign=True),
        _percent(figures["within_20_percent"], 0),
        _percent(figures.get("pairs_in_order_percent"), 0),
        _percent(figures["coverage_percent"], 0),
        f"{worst['error_percent']:+.0f} % ({worst['id']})",
    ]


_SOURCE_HEAD = (
    "source", "rows", "mean error", "median", "bias", "within 20 %", "pairs in order",
    "in error bar", "worst",
)  # fmt: skip


def short(found: Mapping[str, Any]) -> str:
    """The table of README.md: one line a source, and all."""
    lines = [_source_cells(one["source"], one) for one in found["sources"]]
    if found["overall"]["rows"]:
        lines.append(_source_cells("**all rows**", found["overall"]))
    return table(_SOURCE_HEAD, lines)


def sources(found: Mapping[str, Any]) -> str:
    """With rank correlation, width of the error bars, and where the rows are from."""
    head = (*_SOURCE_HEAD, "Kendall's tau", "half-width", "from")
    lines = []
    for one in (*found["sources"], {"source": "**all rows**", **found["overall"]}):
        if one["rows"]:
            tau = f"{one['kendall_tau']:.2f}" if "kendall_tau" in one else ""
            width = _percent(one["half_width_percent"])
            rest = [tau, width, one.get("publication", "")]
            lines.append([*_source_cells(one["source"], one), *rest])
    return table(head, lines)


def whole(found: Mapping[str, Any]) -> str:
    """The figures of the set beside what is aimed at."""
    overall, counters = found["overall"], found["counters"]
    lines = [
        ("rows", str(overall["rows"]), "at least 330"),
        ("mean error over rows", _percent(overall["mape_percent"]), "10 % or less"),
        (
            "mean over sources of their mean errors",
            _percent(overall["sources_mape_percent"]),
            "10 % or less",
        ),
        (
            "mean error, on-device rows of high confidence that did not spill",
            _percent(overall.get("sure", {}).get("mape_percent")),
            "6 % or less",
        ),
        ("rows within 20 %", _percent(overall["within_20_percent"]), "90 %"),
        (
            "pairs of variants over 10 % apart, in the right order",
            _percent(overall.get("pairs_in_order_percent")),
            "95 % within each grid",
        ),
        (
            "rows that did not spill whose HBM bytes are within 5 %",
            _percent(counters.get("hbm_bytes", {}).get("within_5_percent")),
            "all",
        ),
        ("measurements inside the error bars", _percent(overall["coverage_percent"]), "90 %"),
        ("median half-width of the bars", _percent(overall["half_width_percent"]), "12 % or less"),
    ]
    return table(("figure", "now", "aim"), lines)


def offsets(found: Mapping[str, Any]) -> str:
    both = {**found["offsets_us"], **found["apart"]["trn1"]["offsets_us"]}
    return table(
        ("offset_group", "a launch costs, us"),
        [(name, f"{value:.1f}") for name, value in both.items()],
    )


def counters(found: Mapping[str, Any]) -> str:
    lines = []
    for name, one in found["counters"].items():
        worst = one["worst"]
        lines.append(
            (
                name.removesuffix("_percent").replace("_", " "),
                str(one["rows"]),
                _percent(one["mean_percent"]),
                _percent(one["within_5_percent"], 0),
                f"{worst['difference_percent']:+.1f} % ({worst['id']})",
            )
        )
    return table(("counter", "rows", "mean difference", "within 5 %", "worst"), lines)


def worst(found: Mapping[str, Any]) -> str:
    """The rows that are furthest off."""
    ordered = sorted(found["rows"], key=lambda row: (-abs(row["error_percent"]), row["id"]))
    return _rows(ordered[:_WORST])


def _rows(rows: Iterable[Mapping[str, Any]]) -> str:
    return table(
        ("row", "kernel", "measured", "predicted", "error"),
        [
            (
                row["id"],
                f"{row['kernel']} {row['args']}",
                f"{row['measured']:.5g} {row['unit']}",
                f"{row['predicted']:.5g}",
                _percent(row["error_percent"], sign=True),
            )
            for row in rows
        ],
    )


def profiles(found: Mapping[str, Any]) -> str:
    """Replays of the profiles, then our kernels of the same shapes."""
    head = (
        "profile", "measured, us", "predicted, us", "error",
        "duration of an instruction: median, 90th percentile", "start, of the kernel: median",
    )  # fmt: skip
    lines = [
        (
            one["profile"],
            f"{one['measured_us']:.2f}",
            f"{one['predicted_us']:.2f}",
            _percent(one["error_percent"], 2, sign=True),
            f"{one['duration_error_percent']['median']:.2f} %, "
            f"{one['duration_error_percent']['p90']:.2f} %",
            _percent(one["start_error_percent_of_kernel"]["median"], 2),
        )
        for one in found["apart"]["replays"]
    ]
    return f"{table(head, lines)}\n{_rows(found['apart']['profile_kernels']['rows'])}"


def instructions(found: Mapping[str, Any]) -> str:
    head = ("row", "what", "settings", "measured, ns", "predicted, ns", "error")
    apart = found["apart"]["instructions"]
    compared = table(
        head,
        [
            (
                row["id"],
                row["quantity"],
                row["parameters"],
                f"{row['measured']:g}",
                f"{row['predicted']:.4g}",
                _percent(row["error_percent"], sign=True),
            )
            for row in apart["rows"]
        ],
    )
    return f"{compared}\n{_reasons(apart['left_out'])}"


def trn1(found: Mapping[str, Any]) -> str:
    part = found["apart"]["trn1"]
    said = f"{short(part)}\n{_rows(part['rows'])}"
    return f"{said}\n{_reasons(part['unmatched'])}" if part["unmatched"] else said


def left_out(found: Mapping[str, Any]) -> str:
    return _reasons([*found["unmatched"], *found["left_out"]])


def _reasons(entries: Iterable[Mapping[str, str]]) -> str:
    """Each reason once, with the ids that it holds for."""
    ids: dict[str, list[str]] = {}
    for entry in entries:
        ids.setdefault(entry["reason"], []).append(entry["id"])
    return table(("not compared", "because"), [(", ".join(of), why) for why, of in ids.items()])


PARTS = {
    "short": short,
    "whole": whole,
    "sources": sources,
    "offsets": offsets,
    "counters": counters,
    "worst": worst,
    "profiles": profiles,
    "instructions": instructions,
    "trn1": trn1,
    "left-out": left_out,
}


def update(text: str, found: Mapping[str, Any]) -> str:
    """A page with its generated parts made anew. Throws KeyError for a part that is not known."""
    return _PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]](found)}\n{part[4]}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the generated parts of pages anew.")
    parser.add_argument("result", metavar="RESULT.json", help="of trn-sim validate --report json")
    parser.add_argument("pages", metavar="PAGE.md", nargs="+")
    given = parser.parse_args()
    found = json.loads(Path(given.result).read_text(encoding="utf-8"))
    for page in map(Path, given.pages):
        page.write_text(update(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
