"""Pictures of a result: predicted against measured and a histogram of errors, as PNG and HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Twelve colours that stay apart, with a shape for each turn through them.
_COLOURS = (
    "#1b6ca8", "#e07a1f", "#2e8b57", "#c0392b", "#7d5ba6", "#8c6239",
    "#d1539b", "#5f6b6d", "#a8a400", "#17a2b8", "#1f2d3d", "#e5b700",
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d")
_BINS = tuple(range(-60, 61, 5))
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


def write(found: Mapping[str, Any], prefix: str) -> None:
    """Writes PREFIX.png and PREFIX.html."""
    Path(prefix).resolve().parent.mkdir(parents=True, exist_ok=True)
    _png(found, f"{prefix}.png")
    Path(f"{prefix}.html").write_text(_page(found), encoding="utf-8")


def _times(found: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows whose value is a time, by source, with microseconds beside the row's own unit."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in found["rows"]:
        scale = _MICROSECONDS.get(row["unit"])
        if scale is not None:
            times = {name: row[name] * scale for name in ("predicted", "measured", "low", "high")}
            source = row["id"].rpartition("-")[0] or row["id"]
            groups.setdefault(source, []).append({**row, **times})
    return groups


def _title(found: Mapping[str, Any]) -> str:
    whole = found["overall"]
    if not whole["rows"]:
        return "no rows could be predicted"
    return (
        f"{whole['rows']} measurements of {len(found['sources'])} sources: "
        f"mean error {whole['mape_percent']:.1f} %, "
        f"{whole['within_20_percent']:.0f} % of rows within 20 %"
    )


def _png(found: Mapping[str, Any], file: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.4), width_ratios=(1.15, 1))
    groups = _times(found)
    for index, (source, rows) in enumerate(groups.items()):
        left.scatter(
            [row["measured"] for row in rows],
            [row["predicted"] for row in rows],
            s=18,
            marker=_MARKERS[index // len(_COLOURS) % len(_MARKERS)],
            color=_COLOURS[index % len(_COLOURS)],
            alpha=0.75,
            linewidths=0,
            label=f"{source} ({len(rows)})",
        )
    span = _span(groups)
    for factor, style in ((1.0, "-"), (1.2, ":"), (0.8, ":")):
        left.plot(span, [factor * end for end in span], style, color="#555555", linewidth=0.9)
    left.set(xscale="log", yscale="log", xlim=span, ylim=span)
    left.set(xlabel="measured, us", ylabel="predicted, us", title="dotted: 20 % off")
    left.legend(fontsize=8, frameon=False, loc="upper left")
    left.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
    left.set_axisbelow(True)
    errors = [_clamped(row["error_percent"]) for row in found["rows"]]
    right.hist(errors, bins=list(_BINS), color=_COLOURS[0], edgecolor="white", linewidth=0.6)
    right.axvline(0, color="#555555", linewidth=0.9)
    right.set(xlabel="error, % (the outermost bars hold all beyond)", ylabel="rows")
    right.set_title("predicted over measured")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontsize(10)
    figure.suptitle(_title(found), fontsize=12)
    figure.tight_layout()
    figure.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _span(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[float, float]:
    """From below the least to above the greatest time."""
    values = [
        row[name] for rows in groups.values() for row in rows for name in ("measured", "predicted")
    ]
    if not values:
        return 1.0, 10.0
    return min(values) / 1.4, max(values) * 1.4


def _clamped(error: float) -> float:
    return min(max(error, _BINS[0] + 0.1), _BINS[-1] - 0.1)


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2d3d; margin: 2rem auto; max-width: 1150px;
  padding: 0 1rem; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
svg { width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: #44525f }
.pictures { display: grid; grid-template-columns: 1.15fr 1fr; gap: 1.5rem }
@media (max-width: 800px) { .pictures { grid-template-columns: 1fr } }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #e4e4e4 }
th, td { white-space: nowrap }
th:first-child, td:first-child, td.text, th.text { text-align: left }
td.text { white-space: normal; min-width: 16rem }
.off { color: #c0392b }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: 13px }
.key i { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; margin-right: .35rem }
"""


def _page(found: Mapping[str, Any]) -> str:
    groups = _times(found)
    key = "".join(
        f'<span><i style="background:{_COLOURS[index % len(_COLOURS)]}"></i>'
        f"{html.escape(source)} ({len(rows)})</span>"
        for index, (source, rows) in enumerate(groups.items())
    )
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>trn-sim: accuracy</title><style>{_STYLE}</style></head><body>",
        f"<h1>{html.escape(_title(found))}</h1>",
        f"<p>Machine {html.escape(found['config']['name'])}. Hover over a point for its row; dotted "
        "lines are 20 % off.</p>",
        f'<div class="pictures"><div>{_scatter_svg(groups)}<div class="key">{key}</div></div>'
        f"<div>{_histogram_svg(found)}</div></div>",
        "<h2>By source</h2>",
        _sources_table(found),
        "<h2>Every row</h2>",
        _rows_table(found),
    ]
    if found["unmatched"]:
        parts.append("<h2>Not predicted</h2><ul>")
        parts += [
            f"<li>{html.escape(one['id'])}: {html.escape(one['reason'])}</li>"
            for one in found["unmatched"]
        ]
        parts.append("</ul>")
    return "\n".join([*parts, "</body></html>\n"])


_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 560, 470, 58, 44, 14, 14


def _scatter_svg(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    low, high = (math.log10(end) for end in _span(groups))

    def x(value: float) -> float:
        return _LEFT + (math.log10(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)

    marks = [_svg_open("predicted against measured times, both in microseconds, log axes")]
    for exponent in range(math.ceil(low), math.floor(high) + 1):
        tick = 10.0**exponent
        marks.append(_line(x(tick), y(10**low), x(tick), y(10**high), "#e4e4e4"))
        marks.append(_line(x(10**low), y(tick), x(10**high), y(tick), "#e4e4e4"))
        marks.append(_text(x(tick), _HEIGHT - _BOTTOM + 16, f"{tick:,.0f}".replace(",", " ")))
        marks.append(_text(_LEFT - 6, y(tick) + 4, f"{tick:,.0f}".replace(",", " "), "end"))
    for factor in (1.0, 1.2, 0.8):
        start, end = max(10**low, 10**low / factor), min(10**high, 10**high / factor)
        dash = "" if factor == 1.0 else ' stroke-dasharray="2 3"'
        marks.append(_line(x(start), y(start * factor), x(end), y(end * factor), "#77828c", dash))
    for index, rows in enumerate(groups.values()):
        colour = _COLOURS[index % len(_COLOURS)]
        for row in rows:
            said = (
                f"{row['id']}: measured {row['measured']:.4g} us, predicted {row['predicted']:.4g} "
                f"us ({row['error_percent']:+.1f} %) {row['kernel']} {row['args']}"
            )
            marks.append(
                f'<circle cx="{x(row["measured"]):.1f}" cy="{y(row["predicted"]):.1f}" r="3.4" '
                f'fill="{colour}" fill-opacity=".7"><title>{html.escape(said)}</title></circle>'
            )
    marks.append(_text((_LEFT + _WIDTH) / 2, _HEIGHT - 8, "measured, us"))
    marks.append(_upright("predicted, us"))
    return "".join([*marks, "</svg>"])


def _histogram_svg(found: Mapping[str, Any]) -> str:
    step = _BINS[1] - _BINS[0]
    counts = [0] * (len(_BINS) - 1)
    for row in found["rows"]:
        counts[int((_clamped(row["error_percent"]) - _BINS[0]) // step)] += 1
    most = max([*counts, 1])
    width = (_WIDTH - _LEFT - _RIGHT) / len(counts)
    tall = _HEIGHT - _BOTTOM - _TOP
    marks = [_svg_open("how many rows have which error")]
    tick = 10 ** math.floor(math.log10(most)) or 1
    tick = tick if most / tick >= 3 else max(tick // 2, 1)
    for count in range(0, most + 1, tick):
        height = _HEIGHT - _BOTTOM - count / most * tall
        marks.append(_line(_LEFT, height, _WIDTH - _RIGHT, height, "#e4e4e4"))
        marks.append(_text(_LEFT - 6, height + 4, str(count), "end"))
    for index, count in enumerate(counts):
        height = count / most * tall
        said = f"{_BINS[index]:+} to {_BINS[index + 1]:+} %: {count} rows"
        marks.append(
            f'<rect x="{_LEFT + index * width + 0.5:.1f}" y="{_HEIGHT - _BOTTOM - height:.1f}" '
            f'width="{width - 1:.1f}" height="{height:.1f}" fill="{_COLOURS[0]}">'
            f"<title>{said}</title></rect>"
        )
    for index in range(0, len(_BINS), 4):
        marks.append(_text(_LEFT + index * width, _HEIGHT - _BOTTOM + 16, f"{_BINS[index]:+}"))
    middle = (_LEFT + _WIDTH) / 2
    marks.append(_text(middle, _HEIGHT - 8, "error, % (the outermost bars hold all beyond)"))
    marks.append(_upright("rows"))
    return "".join([*marks, "</svg>"])


def _svg_open(label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(label)}" '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}"{more}/>'


def _text(x: float, y: float, said: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(said)}</text>'


def _upright(said: str) -> str:
    middle = (_HEIGHT - _BOTTOM + _TOP) / 2
    turned = f'transform="rotate(-90 14 {middle:.0f})"'
    return f'<text x="14" y="{middle:.0f}" text-anchor="middle" {turned}>{html.escape(said)}</text>'


def _sources_table(found: Mapping[str, Any]) -> str:
    head = (
        "source",
        "rows",
        "mean error",
        "median",
        "bias",
        "within 20 %",
        "in error bar",
        "worst",
    )
    lines = [
        "<tr>" + "".join(f"<th>{name}</th>" for name in head) + "<th class=text>from</th></tr>"
    ]
    whole = {"source": "all", "publication": "", **found["overall"]}
    for source in (*found["sources"], *([whole] if whole["rows"] else [])):
        worst = source["worst"]
        cells = (
            source["source"],
            source["rows"],
            f"{source['mape_percent']:.1f} %",
            f"{source['median_percent']:.1f} %",
            f"{source['bias_percent']:+.1f} %",
            f"{source['within_20_percent']:.0f} %",
            f"{source['coverage_percent']:.0f} %",
            f"{worst['error_percent']:+.0f} % ({worst['id']})",
        )
        said = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        lines.append(f"<tr>{said}<td class=text>{html.escape(source['publication'])}</td></tr>")
    return f"<div class=scroll><table>{''.join(lines)}</table></div>"


def _rows_table(found: Mapping[str, Any]) -> str:
    lines = [
        "<tr><th>row</th><th>measured</th><th>predicted</th><th>error</th><th>low</th><th>high</th>"
        "<th class=text>kernel</th></tr>"
    ]
    for row in found["rows"]:
        off = " class=off" if abs(row["error_percent"]) > 20 else ""
        lines.append(
            f"<tr><td>{html.escape(row['id'])}</td><td>{row['measured']:.5g} "
            f"{html.escape(row['unit'])}</td><td>{row['predicted']:.5g}</td>"
            f"<td{off}>{row['error_percent']:+.1f} %</td><td>{row['low']:.5g}</td>"
            f"<td>{row['high']:.5g}</td>"
            f"<td class=text>{html.escape(row['kernel'])} {html.escape(row['args'])}</td></tr>"
        )
    return f"<div class=scroll><table>{''.join(lines)}</table></div>"
