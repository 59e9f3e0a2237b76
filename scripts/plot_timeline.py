#!/usr/bin/python3
"""Draws a timeline: what each engine did or waited for, what DMA moved, and HBM's throughput.

Several timelines stand one above the other on one scale of time: the engines that did something,
and HBM's throughput. Needs the packages python3-matplotlib, python3-protobuf and
protobuf-compiler.

Example:
  trn-sim --config trn2.3xlarge trace.bin --timeline out.pftrace
  scripts/plot_timeline.py out.pftrace -o timeline.png
  scripts/plot_timeline.py before.pftrace after.pftrace -o both.png --title before --title after
"""

import argparse
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.patches import Patch, PathPatch  # noqa: E402
from matplotlib.path import Path as Curve  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402

from read_timeline import Slice, Thread, Timeline, read  # noqa: E402

ENGINES = ["Tensor", "Vector", "Scalar", "GpSimd", "Sync"]
INK, STALL, FAINT = "#263238", "#eceff1", "#b0bec5"
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {  # colour, how mnemonics begin
    "matmul": ("#1565c0", ("MATMUL",)),
    "weights": ("#90caf9", ("LDWEIGHTS",)),
    "activation": ("#8e24aa", ("ACT",)),
    "reduction": ("#00897b", ("TENSOR_REDUCE", "TENSOR_PARTITION", "BN_", "MAX8")),
    "copy": ("#9ccc65", ("COPY", "CAST", "MEMSET", "TRANSPOSE", "TENSOR_COPY", "IOTA")),
    "elementwise": (
        "#26a69a",
        ("TENSOR_", "SCALAR_TENSOR", "RECIPROCAL", "SELECT", "AFFINE", "RANGE"),
    ),
    "DMA trigger": ("#5d4037", ("DMA_",)),
    "other": ("#78909c", ("",)),
}
DMA = {"hbm to sbuf": "#ef6c00", "sbuf to hbm": "#ffb74d"}
DMA_OTHER = "#a1887f"
ENGINE_HEIGHT, DMA_HEIGHT, GAP = 0.78, 0.15, 0.35


def class_of(name: str) -> str:
    return next(c for c, (_, begins) in CLASSES.items() if name.startswith(begins))


def us(time: int) -> float:
    return time / 1000


def draw_engine(axes: Axes, thread: Thread, at: float, span: float) -> set[str]:
    """Returns the classes drawn."""
    bottom = at - ENGINE_HEIGHT / 2
    stalls = thread.outer("stall")
    axes.broken_barh(
        [(us(s.start), us(s.duration)) for s in stalls],
        (bottom + 0.12, ENGINE_HEIGHT - 0.24),
        facecolors=STALL,
        edgecolors="white",
        linewidth=0.6 if len(stalls) < 100 else 0,
    )
    for stall in stalls:
        label = stall.name.replace("_", " ")
        if us(stall.duration) > span * 0.0115 * len(label) * 0.75:
            axes.text(
                us(stall.start + stall.end) / 2,
                at - 0.015,
                label,
                ha="center",
                va="center",
                fontsize=6.5,
                color="#607d8b",
                path_effects=[withStroke(linewidth=2, foreground=STALL)],
                zorder=3,
            )
    by_class: dict[str, list[tuple[float, float]]] = {}
    for piece in thread.slices:
        if piece.category == "instruction" and piece.depth == 0:
            shown = max(us(piece.duration), span / 1500)  # a hair at least
            by_class.setdefault(class_of(piece.name), []).append((us(piece.start), shown))
    for name, bars in by_class.items():
        axes.broken_barh(
            bars,
            (bottom, ENGINE_HEIGHT),
            facecolors=CLASSES[name][0],
            edgecolors="white",
            linewidth=0.25 if median(width for _, width in bars) > span / 400 else 0,
        )
    return set(by_class)


def draw_dma(axes: Axes, thread: Thread, at: float, span: float) -> None:
    for piece in thread.slices:
        color = DMA.get(piece.name.split(",")[0], DMA_OTHER)
        axes.broken_barh(
            [(us(piece.start), max(us(piece.duration), span / 4000))],
            (at - DMA_HEIGHT * 0.42, DMA_HEIGHT * 0.84),
            facecolors=color,
            edgecolors="white",
            linewidth=0.3,
        )


def draw_flow(axes: Axes, before: Slice, after: Slice, rows: dict[str, float]) -> None:
    down = rows[before.thread] > rows[after.thread]

    def edge(piece: Slice, below: bool) -> float:
        half = ENGINE_HEIGHT / 2 if piece.thread in ENGINES else DMA_HEIGHT / 2
        return rows[piece.thread] + (-half if below else half)

    start = (us(before.end), edge(before, down))
    end = (us(after.start), edge(after, not down))
    middle = (start[1] + end[1]) / 2
    curve = Curve(
        [start, (start[0], middle), (end[0], middle), end],
        [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
    )
    axes.add_patch(PathPatch(curve, facecolor="none", edgecolor=INK, linewidth=0.6, alpha=0.45))


def means(samples: list[tuple[int, float]], width: float) -> list[tuple[float, float]]:
    """(start in ns, mean) of stretches of `width` ns, up to the last sample."""
    result: list[tuple[float, float]] = []
    if not samples:
        return result
    start, first = float(samples[0][0]), 0
    while start < samples[-1][0]:
        end, total = start + width, 0.0
        for index in range(first, len(samples) - 1):
            at, then = samples[index][0], samples[index + 1][0]
            if at >= end:
                break
            total += samples[index][1] * (min(then, end) - max(at, start))
            if then <= end:
                first = index + 1
        result.append((start, total / width))
        start = end
    return result


def draw_throughput(axes: Axes, timeline: Timeline, end: float, span: float) -> None:
    for name, color, label in (
        ("HbmUsage.read_throughput", DMA["hbm to sbuf"], "read"),
        ("HbmUsage.write_throughput", DMA["sbuf to hbm"], "written"),
    ):
        samples = means(timeline.counters[name].samples, max(100.0, span * 1000 / 500))
        times = [at / 1000 for at, _ in samples] + [end]
        values = [value / 1e9 for _, value in samples] + [0.0]
        axes.fill_between(
            times,
            values,
            step="post",
            color=color,
            alpha=0.85,
            linewidth=0,
            label=label,
        )
    finish_counter(axes, "HBM\nGB/s")


def draw_use(axes: Axes, timeline: Timeline, end: float) -> None:
    for name, color, label in (
        ("SbufUsage.avg_util_percent", "#546e7a", "SBUF"),
        ("PsumUsage.avg_util_percent", "#c2185b", "PSUM"),
    ):
        samples = timeline.counters[name].samples
        times = [us(at) for at, _ in samples] + [end]
        values = [value for _, value in samples] + [0.0]
        axes.step(times, values, where="post", color=color, linewidth=1.2, label=label)
    axes.legend(
        loc="upper right",
        ncols=2,
        frameon=False,
        fontsize=7,
        handlelength=1.2,
        borderpad=0,
    )
    finish_counter(axes, "in use\n%")


def finish_engines(axes: Axes) -> None:
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(axis="both", length=0)
    axes.tick_params(axis="x", labelbottom=False)
    axes.grid(axis="x", color=FAINT, linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)


def legend_of(used: set[str], pieces: list[Slice]) -> list[Patch]:
    """The classes drawn and the directions of DMA."""
    handles = [
        Patch(color=color, label=name) for name, (color, _) in CLASSES.items() if name in used
    ]
    handles.append(Patch(color=STALL, label="waits"))
    handles += [
        Patch(color=color, label=name)
        for name, color in DMA.items()
        if any(s.name.startswith(name) for s in pieces)
    ]
    return handles


def finish_counter(axes: Axes, label: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.locator_params(axis="y", nbins=3)


def draw(timeline: Timeline, title: str, flows: bool, out: Path) -> None:
    pieces = [s for t in timeline.threads.values() for s in t.slices]
    start = us(min((s.start for s in pieces), default=0))
    end = us(max((s.end for s in pieces), default=1))
    movers = [name for name in timeline.threads if name.startswith("DMA ")]
    rows = {name: -float(i) for i, name in enumerate(ENGINES)}
    top = -len(ENGINES) + 0.5 - GAP
    rows |= {name: top - DMA_HEIGHT * i for i, name in enumerate(movers)}
    lowest = min(rows.values())

    figure, (axes, rate, use) = plt.subplots(
        3,
        1,
        figsize=(11, 2.3 + 0.62 * (1 - lowest)),
        height_ratios=[1 - lowest, 1.0, 0.8],
        sharex=True,
        constrained_layout=True,
    )
    used: set[str] = set()
    for name in ENGINES:
        used |= draw_engine(axes, timeline.threads[name], rows[name], end - start)
    for name in movers:
        draw_dma(axes, timeline.threads[name], rows[name], end - start)
    if flows:
        for before, after in timeline.flows.values():
            if after.category != "dma" and before.thread != after.thread:
                draw_flow(axes, before, after, rows)
    ticks = [rows[name] for name in ENGINES]
    labels = list(ENGINES)
    if movers:
        ticks.append((rows[movers[0]] + rows[movers[-1]]) / 2)
        labels.append(f"{len(movers)} DMA\nengines")
    axes.set_yticks(ticks, labels)
    axes.set_ylim(lowest - 0.25, 0.55)
    axes.set_xlim(start, end)
    axes.margins(x=0)
    finish_engines(axes)
    handles = legend_of(used, pieces)
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    draw_throughput(rate, timeline, end, end - start)
    draw_use(use, timeline, end)
    use.set_xlabel("us from the launch", fontsize=9)
    figure.align_ylabels([rate, use])
    use.add_artist(use.get_legend())
    use.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.46, -0.75),
        ncols=len(handles),
        frameon=False,
        fontsize=8,
        handlelength=1.1,
        columnspacing=1.2,
    )
    figure.savefig(out, dpi=140)


def draw_several(timelines: list[Timeline], titles: list[str], out: Path) -> None:
    pieces = [[s for t in one.threads.values() for s in t.slices] for one in timelines]
    starts = [min((s.start for s in some), default=0) for some in pieces]
    ends = [max((s.end for s in some), default=1) for some in pieces]
    span = us(max(end - start for start, end in zip(starts, ends)))
    busy = [
        name for name in ENGINES if any(one.threads[name].outer("instruction") for one in timelines)
    ]
    rows = {name: -float(i) for i, name in enumerate(busy)}
    figure, grid = plt.subplots(
        2 * len(timelines),
        1,
        figsize=(11, 0.9 + (0.42 * len(busy) + 1.05) * len(timelines)),
        height_ratios=[0.42 * len(busy), 0.5] * len(timelines),
        sharex=True,
        constrained_layout=True,
    )
    used: set[str] = set()
    for index, (timeline, title) in enumerate(zip(timelines, titles)):
        axes, rate = grid[2 * index], grid[2 * index + 1]
        for name in busy:
            used |= draw_engine(axes, timeline.threads[name], rows[name], span)
        axes.set_yticks(list(rows.values()), busy)
        axes.set_ylim(-len(busy) + 0.45, 0.55)
        axes.set_xlim(0, span * 1.004)
        finish_engines(axes)
        axes.set_title(title, loc="left", fontsize=10.5, color=INK)
        draw_throughput(rate, timeline, us(ends[index]), span)
    for rate in grid[1::2]:
        rate.set_ylim(0, max(other.get_ylim()[1] for other in grid[1::2]))
        rate.tick_params(axis="x", length=0)
    figure.align_ylabels(list(grid[1::2]))
    grid[-1].tick_params(axis="x", length=3)
    grid[-1].set_xlabel("us from the launch", fontsize=9)
    handles = legend_of(used, [s for some in pieces for s in some])
    grid[-1].legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.46, -1.0),
        ncols=len(handles),
        frameon=False,
        fontsize=8,
        handlelength=1.1,
        columnspacing=1.2,
    )
    figure.savefig(out, dpi=140)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("timeline", type=Path, nargs="+", help=".pftrace files of trn-sim")
    parser.add_argument(
        "--title",
        action="append",
        default=[],
        help="one for each timeline; default: the trace and machine",
    )
    parser.add_argument(
        "--no-flows",
        action="store_true",
        help="without the lines from a cause to its effect (several timelines have none)",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help=".png or .svg")
    args = parser.parse_args()
    timelines = [read(file) for file in args.timeline]
    titles = [", ".join(one.labels) for one in timelines]
    titles[: len(args.title)] = args.title[: len(titles)]
    if len(timelines) > 1:
        draw_several(timelines, titles, args.output)
    else:
        draw(timelines[0], titles[0], not args.no_flows, args.output)


if __name__ == "__main__":
    main()
