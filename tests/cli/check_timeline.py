#!/usr/bin/python3
"""Checks the timelines of all shipped traces and golden programs against their reports.

Each is parsed with protobuf's own parser. Its slices must nest, its flows have both ends, and its
sums be the report's: what each engine was active and stalled, what DMA moved and for how long.
With --kernels it checks those of the kernels of traces/kernels for one core, at the sizes of
tests/python/test_kernels.py; this needs the packages of the front end on the PYTHONPATH.
Usage: check_timeline.py TRN_SIM [--kernels] [TRACE ...], with further traces as text or binary.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

import read_timeline as timelines  # noqa: E402
from read_timeline import Slice, Timeline, covered  # noqa: E402

WAITS = {
    "wait_tensor": "Tensor",
    "wait_vector": "Vector",
    "wait_scalar": "Scalar",
    "wait_gpsimd": "GpSimd",
    "wait_sync": "Sync",
}


class Checker:
    def __init__(self, trn_sim: str, folder: Path) -> None:
        self.trn_sim = trn_sim
        self.folder = folder
        self.file = folder / "out.pftrace"

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.trn_sim, *arguments], capture_output=True, text=True, check=False
        )

    def run(self, *arguments: str) -> tuple[dict[str, Any], Timeline]:
        result = self.call(
            *arguments,
            "--config=trn2.3xlarge",
            "--report=json",
            f"--timeline={self.file}",
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout), timelines.read(self.file)


def near(got: float, expected: float, slack: float, what: str) -> None:
    assert abs(got - expected) <= slack, f"{what}: {got}, the report says {expected} (+-{slack})"


def check_engine(timeline: Timeline, account: dict[str, Any], length: float) -> None:
    """Times in the file are rounded to ns, so each stretch without a gap may be off by one."""
    name = next(n for n in timeline.threads if n.lower() == account["engine"])
    thread = timeline.threads[name]
    instructions = [s for s in thread.slices if s.category in ("instruction", "semaphore")]
    assert len(instructions) == account["instructions"], name
    stalls = thread.outer("stall")
    assert len(stalls) == len([s for s in thread.slices if s.category == "stall"])
    slack = len(stalls) + 1
    active = sum(s.duration for s in thread.outer("instruction"))
    near(active, account["busy_ns"], slack, f"{name} active")
    reasons = {s.name for s in stalls} | set(account["stalled_ns"])
    for reason in reasons:
        stalled = sum(s.duration for s in stalls if s.name == reason)
        exact = sum(s.arguments["stall_ns"] for s in stalls if s.name == reason)
        near(stalled, account["stalled_ns"].get(reason, 0), slack, f"{name} {reason}")
        near(exact, account["stalled_ns"].get(reason, 0), 1e-3, f"{name} {reason}")
    idle = length - active - sum(s.duration for s in stalls)
    near(idle, account["idle_ns"], 2 * slack, f"{name} idle")


def check_waits(timeline: Timeline) -> None:
    """What waited for somebody has a flow from there, and flows go forward in time."""
    for before, after in timeline.flows.values():
        assert before.start <= after.start, f"{before} releases {after}"
    for thread in timeline.threads.values():
        for piece in thread.slices:
            reason = piece.arguments.get("stall_reason", "")
            sources = {timeline.flows[f][0].thread for f in piece.flows_in}
            if reason == "wait_dma":
                assert any(s.startswith("DMA ") for s in sources), piece
            elif reason in WAITS:
                assert WAITS[reason] in sources, piece


def check_dma(timeline: Timeline, report: dict[str, Any]) -> None:
    summary = report["summary"]
    pieces = [s for t in timeline.threads.values() for s in t.slices if s.category == "dma"]
    modes = ("static_dma", "software_dynamic_dma", "hardware_dynamic_dma")
    total = sum(summary[f"{mode}_size"] for mode in modes)
    packets = sum(summary[f"{mode}_packet_count"] for mode in modes)
    assert sum(s.arguments["bytes"] for s in pieces) == total
    assert sum(s.arguments["packets"] for s in pieces) == packets
    active = summary["dma_active_time"] * 1e9
    near(covered(pieces), active, len(pieces) + 1, "DMA active")
    assert all(s.arguments["trigger"] for s in pieces)
    triggers = {
        (a.thread, a.start, a.name) for a, b in timeline.flows.values() if b.category == "dma"
    }
    assert len(triggers) == summary["dma_transfer_count"]

    for name, expected in (
        ("DmaUsage.current_throughput", total),
        ("HbmUsage.read_throughput", summary["hbm_read_bytes"]),
        ("HbmUsage.write_throughput", summary["hbm_write_bytes"]),
        (
            "HbmUsage.current_throughput",
            summary["hbm_read_bytes"] + summary["hbm_write_bytes"],
        ),
    ):
        moved = timeline.counters[name].integral() * 1e-9
        assert math.isclose(moved, expected, rel_tol=1e-9, abs_tol=1e-6), (
            name,
            moved,
            expected,
        )


def check_counters(timeline: Timeline, report: dict[str, Any]) -> None:
    for memory, name in (("sbuf", "SbufUsage"), ("psum", "PsumUsage")):
        use = report["memory"][memory]
        peak = 100 * use["partition_peak_bytes"] / use["partition_capacity_bytes"]
        values = [v for _, v in timeline.counters[f"{name}.avg_util_percent"].samples]
        assert all(0 <= v <= peak + 1 for v in values), (name, max(values), peak)
    pending = [v for _, v in timeline.counters["PendingDma.value"].samples]
    assert all(v >= 0 for v in pending) and (not pending or pending[-1] == 0)
    clock = timeline.counters["tensor_engine_clock_freq"].samples
    assert clock and all(v in (1.2, 2.4) for _, v in clock), clock


def clipped(pieces: list[Slice], low: int, high: int) -> int:
    return sum(max(0, min(s.end, high) - max(s.start, low)) for s in pieces)


def check_window(checker: Checker, trace: str, full: Timeline, length: float) -> None:
    low, high = int(length / 3), int(2 * length / 3)
    _, part = checker.run(trace, f"--window={low}ns:{high / 1000}us")
    assert part.about["window_from_ns"] == low and part.about["window_to_ns"] == high
    assert len(part.flows) <= len(full.flows)
    assert checker.run(trace, "--window=0:")[1] == full
    for name, thread in full.threads.items():
        for category in ("instruction", "stall", "dma"):
            outer = thread.outer(category)
            kept = part.threads[name].outer(category) if name in part.threads else []
            assert all(low <= s.start <= s.end <= high for s in kept)
            near(
                covered(kept),
                clipped(outer, low, high),
                2,
                f"{name} {category} in the window",
            )


def check_bound(checker: Checker, trace: str, full: Timeline) -> None:
    bound = full.about["events"] // 2
    report, part = checker.run(trace, f"--timeline-events={bound}")
    assert part.about["events"] == bound
    assert part.about["dropped_events"] == full.about["events"] - bound
    said = f"the timeline lacks {full.about['events'] - bound} of {full.about['events']} events"
    assert any(said in warning for warning in report["warnings"]), report["warnings"]


def check_refusals(checker: Checker, trace: str) -> None:
    out = f"--timeline={checker.file}"
    for arguments, message in (
        ([out, "--window=5us"], "expected A:B such as 10us:20us, got '5us'"),
        ([out, "--window=5us:2us"], "expected an end after the start, got '5us:2us'"),
        ([out, "--window=5us:2 parsecs"], "expected a time from the launch"),
        ([out, "--window=-5:2"], "expected a time from the launch"),
        ([out, "--window=1:1e30"], "expected a time from the launch"),
        ([out, "--timeline-events=some"], "--timeline-events"),
        (["--window=1us:2us"], "--timeline"),
        (["--timeline=/no/such/folder/out.pftrace"], "/no/such/folder/out.pftrace"),
    ):
        result = checker.call("run", "--config=trn2.3xlarge", trace, *arguments)
        assert result.returncode == 2, (arguments, result.returncode)
        assert message in result.stderr, (arguments, result.stderr)
        assert result.stdout == ""


def check(checker: Checker, trace: str) -> tuple[dict[str, Any], Timeline]:
    """The timeline of a trace against its report."""
    report, timeline = checker.run(trace)
    assert timeline.about["dropped_events"] == 0
    assert list(timeline.threads)[:5] == ["Tensor", "Vector", "Scalar", "GpSimd", "Sync"]
    for account in report["cores"][0]["engines"]:
        check_engine(timeline, account, report["device_time_ns"])
    check_waits(timeline)
    check_dma(timeline, report)
    check_counters(timeline, report)
    return report, timeline


def told(name: str, timeline: Timeline, size: int) -> None:
    print(f"{name}: {timeline.about['events']} events, {len(timeline.flows)} flows, {size} bytes")


def check_programs(checker: Checker, programs: list[Path]) -> None:
    for program in programs:
        trace = str(checker.folder / "trace.bin")
        if program.suffix == ".trn":
            assert checker.call("asm", str(program), "-o", trace).returncode == 0
        else:
            trace = str(program)
        report, timeline = check(checker, trace)
        first = checker.file.read_bytes()
        checker.run(trace)
        assert checker.file.read_bytes() == first, "two runs differ"
        check_window(checker, trace, timeline, report["device_time_ns"])
        check_bound(checker, trace, timeline)
        told(os.path.relpath(program, ROOT), timeline, len(first))
    check_refusals(checker, trace)


def check_kernels(checker: Checker) -> None:
    """All kernels for one core. A line of the kernel stands beside each instruction that has one."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import test_kernels as kernels

    assert not kernels.MISSING, kernels.MISSING
    cases = [case for case in kernels.CASES + kernels.OLD_CASES if case.cores == 1]
    assert len(cases) >= 40
    failed = []
    for case in cases:
        trace = checker.folder / "kernel.bin"
        trace.write_bytes(kernels.traced(case).data)
        try:
            _, timeline = check(checker, str(trace))
            file = f"{case.kernel.split(':')[0]}.py:"
            places = {s.place for t in timeline.threads.values() for s in t.slices}
            assert any(file in place for place in places), f"no slice names {file}"
        except (AssertionError, ValueError) as error:
            failed.append(f"{kernels.title(case)}: {error}")
            continue
        told(kernels.title(case), timeline, checker.file.stat().st_size)
    assert not failed, "\n".join(failed)


def main() -> None:
    trn_sim, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        checker = Checker(trn_sim, Path(name))
        if "--kernels" in more:
            check_kernels(checker)
            return
        programs = sorted(ROOT.glob("traces/*.trn"))
        programs += sorted(ROOT.glob("tests/golden/*/program.trn"))
        assert len(programs) >= 7
        check_programs(checker, programs + [Path(one).resolve() for one in more])


if __name__ == "__main__":
    main()
