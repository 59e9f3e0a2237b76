#!/usr/bin/python3
"""Draws a replay: each engine's instructions as measured and as predicted, on one time axis.

Needs the package python3-matplotlib.

Example:
  trn-sim replay profile.json --config trn2.3xlarge --instructions rows.csv -o replay.txt
  scripts/plot_replay.py profile.json rows.csv -o replay.png
"""

import argparse
import csv
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ENGINES = ["Tensor", "Vector", "Scalar", "GpSimd", "Sync"]
WAITING = {"EVENT_SEMAPHORE"}  # no activity
MEASURED, PREDICTED = "#37474f", "#ef6c00"

Row = tuple[float, float]  # start and duration, us


def measured_rows(profile: Path, subgraph: str) -> dict[str, list[Row]]:
    """The kernel's rows of one core, from the kernel's first instruction."""
    rows = [
        row
        for row in json.loads(profile.read_text())["instruction"]
        if row.get("subgraph") == subgraph and "compiler_pc" in row
    ]
    start = min(row["timestamp"] for row in rows)
    result: dict[str, list[Row]] = {engine: [] for engine in ENGINES}
    for row in rows:
        if row["opcode"] not in WAITING:
            result[row["subgroup"]].append(
                ((row["timestamp"] - start) / 1e3, row["duration"] / 1e3)
            )
    return result


def predicted_rows(table: Path) -> dict[str, list[Row]]:
    """The rows that --instructions wrote."""
    result: dict[str, list[Row]] = {engine: [] for engine in ENGINES}
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["opcode"] not in WAITING:
                result[row["engine"]].append(
                    (float(row["start_ts"]) / 1e3, float(row["duration_ns"]) / 1e3)
                )
    return result


def draw(
    measured: dict[str, list[Row]],
    predicted: dict[str, list[Row]],
    title: str,
    out: Path,
) -> None:
    figure, axes = plt.subplots(figsize=(11, 3.6), constrained_layout=True)
    for lane, engine in enumerate(ENGINES):
        for offset, rows, color in (
            (0.02, measured, MEASURED),
            (-0.38, predicted, PREDICTED),
        ):
            axes.broken_barh(
                rows[engine],
                (-lane + offset, 0.36),
                facecolors=color,
                edgecolors="white",
                linewidth=0.2,
            )
    axes.set_yticks([-lane for lane in range(len(ENGINES))], ENGINES)
    axes.set_xlabel("us from the kernel's first instruction")
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.01)
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in (MEASURED, PREDICTED)]
    axes.legend(
        handles,
        ["measured on a trn2.3xlarge", "predicted by trn-sim"],
        loc="lower right",
        frameon=False,
    )
    figure.savefig(out, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("profile", type=Path, help="the profiler's JSON export")
    parser.add_argument("table", type=Path, help="written by trn-sim replay --instructions")
    parser.add_argument("--subgraph", default="sg00", help="physical core (default: sg00)")
    parser.add_argument("--title", help="default: the profile's name")
    parser.add_argument("-o", "--output", type=Path, required=True, help=".png or .svg")
    args = parser.parse_args()
    draw(
        measured_rows(args.profile, args.subgraph),
        predicted_rows(args.table),
        args.title or args.profile.stem,
        args.output,
    )


if __name__ == "__main__":
    main()
