"""A result as text, as Markdown, and as the JSON that scripts read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trnsim.validation import methods, score
from trnsim.validation.rows import Row
from trnsim.validation.score import Scored

SCHEMA = "trn-sim-validation/1"


def figures(
    scored: Sequence[Scored],
    unmatched: Sequence[tuple[Row, str]],
    offsets: Mapping[str, float],
) -> dict[str, Any]:
    """All figures of some rows, as they are printed in JSON."""
    groups = score.by_source(scored)
    used = {one.row.offset_group for one in scored if one.row.metric_kind in methods.HAS_OFFSET}
    return {
        "overall": rounded(score.overall(scored)) if scored else {"rows": 0},
        "sources": [
            rounded({"source": name, "publication": of[0].row.source, **score.summarise(of)})
            for name, of in groups.items()
        ],
        "offsets_us": {group: offsets[group] / 1e3 for group in sorted(offsets) if group in used},
        "counters": rounded(score.counters(scored)),
        "rows": [rounded(_row(one)) for one in scored],
        "unmatched": [{"id": row.id, "reason": reason} for row, reason in unmatched],
    }


def _row(one: Scored) -> dict[str, Any]:
    """A row; times are in the unit in which they were measured."""
    row = one.row
    scale = row.measured / row.value
    figures: dict[str, Any] = {
        "id": row.id,
        "kernel": row.kernel,
        "args": row.args,
        "metric_kind": row.metric_kind,
        "offset_group": row.offset_group,
        "launches": one.prediction.launches,
        "unit": row.unit,
        "predicted": one.predicted / scale,
        "measured": row.value,
        "error_percent": one.error_percent,
        "low": one.low / scale,
        "high": one.high / scale,
    }
    if one.offset:
        figures["offset_us"] = one.offset * one.prediction.launches / 1e3
    theirs, ours = score.published(row), score.predicted_counters(one.prediction)
    both = {name: [ours[name], theirs[name]] for name in sorted(theirs) if name in ours}
    if both:
        figures["counters"] = both
    return figures


def rounded(value: Any) -> Any:
    """Floats to nine significant digits: what a sum's order changes is not shown."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return value


_HEAD = ("rows", "mean", "median", "bias", "in 20 %", "tau", "in order", "bars", "width", "worst")


def text(found: Mapping[str, Any]) -> str:
    """The printed form: rows, sources, all."""
    lines = [f"{'row':<12}{'predicted':>13}{'measured':>13} {'':<8}{'error':>9}  kernel"]
    lines += map(_row_text, found["rows"])
    lines += _apart_text(found.get("apart", {}))
    lines += ["", _line("source", _HEAD)]
    for source in found["sources"]:
        lines.append(_line(source["source"], _cells(source)))
    whole = found["overall"]
    if whole["rows"]:
        lines.append(_line("all", _cells(whole)))
        lines += ["", f"mean over sources of their means   {whole['sources_mape_percent']:.1f} %"]
        if "sure" in whole:
            lines.append(
                f"mean, high confidence, no spills   {whole['sure']['mape_percent']:.1f} % "
                f"({whole['sure']['rows']} rows)"
            )
    for name, counter in found["counters"].items():
        lines.append(
            f"{name.replace('_', ' '):<35}{counter['mean_percent']:.1f} % off, "
            f"{counter['within_5_percent']:.0f} % of {counter['rows']} rows within 5 %, "
            f"worst {counter['worst']['difference_percent']:+.1f} % ({counter['worst']['id']})"
        )
    if found["offsets_us"]:
        offsets = ", ".join(f"{name} {value:.1f}" for name, value in found["offsets_us"].items())
        lines.append(f"{'launch offsets, us':<35}{offsets}")
    for one in found["unmatched"]:
        lines.append(f"unmatched {one['id']}: {one['reason']}")
    for line in found.get("broken", []):
        lines.append(f"limit broken: {line}")
    return "\n".join(lines) + "\n"


def _cells(figures: Mapping[str, Any]) -> list[str]:
    worst = figures["worst"]
    return [
        str(figures["rows"]),
        f"{figures['mape_percent']:.1f} %",
        f"{figures['median_percent']:.1f} %",
        f"{figures['bias_percent']:+.1f} %",
        f"{figures['within_20_percent']:.0f} %",
        f"{figures['kendall_tau']:.2f}" if "kendall_tau" in figures else "",
        f"{figures['pairs_in_order_percent']:.0f} %" if "pairs" in figures else "",
        f"{figures['coverage_percent']:.0f} %",
        f"{figures['half_width_percent']:.1f} %",
        f"{worst['error_percent']:+.0f} % ({worst['id']})",
    ]


def _line(first: str, cells: Sequence[str]) -> str:
    *numbers, last = cells
    return f"{first:<8}" + "".join(f"{cell:>9}" for cell in numbers) + f"  {last}"


def _row_text(row: Mapping[str, Any]) -> str:
    return (
        f"{row['id']:<12}{row['predicted']:>13.6g}{row['measured']:>13.6g} {row['unit']:<8}"
        f"{row['error_percent']:>+7.1f} %  {row['kernel']} {row['args']}"
    )


def _apart_text(apart: Mapping[str, Any]) -> list[str]:
    """Profiles, instructions and Trainium1."""
    if not apart:
        return []
    lines = ["", "apart: profiles, replayed"]
    for one in apart["replays"]:
        lines.append(
            f"{one['profile']:<34}{one['predicted_us']:>9.2f}{one['measured_us']:>9.2f} us"
            f"{one['error_percent']:>+7.2f} %"
        )
    lines += [f"{one['id']}: {one['reason']}" for one in apart["not_replayed"]]
    lines += ["", "apart: our kernels for the profiles"]
    lines += map(_row_text, apart["profile_kernels"]["rows"])
    instructions = apart["instructions"]
    lines += ["", "apart: instructions and packets"]
    for row in instructions["rows"]:
        what = f"{row['quantity']} {row['parameters']}"
        lines.append(
            f"{row['id']:<12}{row['predicted']:>13.6g}{row['measured']:>13.6g} {row['unit']:<8}"
            f"{row['error_percent']:>+7.1f} %  {what}"
        )
    lines.append(f"{len(instructions['left_out'])} more are not compared: see the JSON")
    lines += ["", "apart: Trainium1"]
    lines += map(_row_text, apart["trn1"]["rows"])
    lines += [_line("source", _HEAD)]
    lines += [_line(one["source"], _cells(one)) for one in apart["trn1"]["sources"]]
    for name in ("profile_kernels", "trn1"):
        lines += [f"unmatched {one['id']}: {one['reason']}" for one in apart[name]["unmatched"]]
    return lines
