#!/usr/bin/python3
"""Reads a timeline that trn-sim wrote, checks its form, and prints what its threads did.

Needs the packages python3-protobuf and protobuf-compiler. As a module, it is what tests and plots
read timelines with.

Example:
  trn-sim --config trn2.3xlarge trace.bin --timeline out.pftrace
  scripts/read_timeline.py out.pftrace
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "sim" / "report" / "perfetto_trace.proto"


@dataclass
class Slice:
    """Times are whole ns; what starts and ends at one time lasts 0."""

    thread: str
    start: int
    name: str
    category: str
    arguments: dict[str, Any]
    place: str
    depth: int
    end: int = -1
    flows_out: list[int] = field(default_factory=list)
    flows_in: list[int] = field(default_factory=list)

    @property
    def duration(self) -> int:
        return self.end - self.start


@dataclass
class Thread:
    name: str
    rank: int
    slices: list[Slice] = field(default_factory=list)

    def outer(self, *categories: str) -> list[Slice]:
        """The slices that are in no other, of these categories."""
        return [s for s in self.slices if s.depth == 0 and s.category in categories]


@dataclass
class Counter:
    name: str
    unit: str
    rank: int
    samples: list[tuple[int, float]] = field(default_factory=list)

    def integral(self) -> float:
        """Value times ns, up to the last sample."""
        pairs = zip(self.samples, self.samples[1:])
        return sum(value * (then - at) for (at, value), (then, _) in pairs)


@dataclass
class Timeline:
    process: str = ""
    labels: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    threads: dict[str, Thread] = field(default_factory=dict)
    counters: dict[str, Counter] = field(default_factory=dict)
    flows: dict[int, tuple[Slice, Slice]] = field(default_factory=dict)


@cache
def messages() -> ModuleType:
    """Python classes of the format, made by protoc."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "protoc",
            f"--python_out={folder}",
            f"--proto_path={PROTO.parent}",
            PROTO.name,
        ]
        subprocess.run(command, check=True)
        source = Path(folder, "perfetto_trace_pb2.py")
        spec = importlib.util.spec_from_file_location("perfetto_trace_pb2", source)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


class Reader:
    """Packets into tracks. What is wrong with a file is a ValueError."""

    def __init__(self, proto: ModuleType) -> None:
        self.proto = proto
        self.timeline = Timeline()
        self.threads: dict[int, Thread] = {}
        self.counters: dict[int, Counter] = {}
        self.processes: set[int] = set()
        self.texts: dict[str, dict[int, str]] = {
            kind: {} for kind in ("category", "name", "argument", "value", "place")
        }
        self.events: dict[int, list[tuple[int, Any]]] = {}

    def read(self, path: Path) -> Timeline:
        trace = self.proto.Trace()
        trace.ParseFromString(path.read_bytes())
        for packet in trace.packet:
            self.add_texts(packet.interned_data)
            if packet.HasField("track_descriptor"):
                self.add_track(packet.track_descriptor)
            if packet.HasField("track_event"):
                self.events.setdefault(packet.track_event.track_uuid, []).append(
                    (packet.timestamp, self.resolve(packet.track_event))
                )
        for track, events in self.events.items():
            events.sort(key=lambda event: event[0])  # stable: as Perfetto does
            if track in self.threads:
                self.add_slices(self.threads[track], events)
            elif track in self.counters:
                self.counters[track].samples = [(at, event["value"]) for at, event in events]
            elif track in self.processes:
                for _, event in events:
                    self.timeline.about.update(event["arguments"])
            else:
                raise ValueError(f"events on track {track}, which nothing describes")
        for thread in sorted(self.threads.values(), key=lambda t: t.rank):
            self.timeline.threads[thread.name] = thread
        for counter in sorted(self.counters.values(), key=lambda c: c.rank):
            self.timeline.counters[counter.name] = counter
        self.add_flows()
        return self.timeline

    def add_texts(self, data: Any) -> None:
        def add(kind: str, entry: Any, text: str) -> None:
            if entry.iid in self.texts[kind]:
                raise ValueError(f"{kind} {entry.iid} is said twice")
            self.texts[kind][entry.iid] = text

        for entry in data.event_categories:
            add("category", entry, entry.name)
        for entry in data.event_names:
            add("name", entry, entry.name)
        for entry in data.debug_annotation_names:
            add("argument", entry, entry.name)
        for entry in data.debug_annotation_string_values:
            add("value", entry, entry.str.decode())
        for entry in data.source_locations:
            add("place", entry, f"{entry.file_name}:{entry.line_number}")

    def add_track(self, track: Any) -> None:
        if track.HasField("process"):
            self.processes.add(track.uuid)
            self.timeline.process = track.process.process_name
            self.timeline.labels = list(track.process.process_labels)
        elif track.HasField("thread"):
            self.threads[track.uuid] = Thread(track.thread.thread_name, track.sibling_order_rank)
        elif track.HasField("counter"):
            self.counters[track.uuid] = Counter(
                track.name, track.counter.unit_name, track.sibling_order_rank
            )

    def resolve(self, event: Any) -> dict[str, Any]:
        """An event with its texts. Raises KeyError for a text that has not been said yet."""
        arguments = {}
        for argument in event.debug_annotations:
            kind = argument.WhichOneof("value")
            value = getattr(argument, kind)
            if kind == "string_value_iid":
                value = self.texts["value"][value]
            arguments[self.texts["argument"][argument.name_iid]] = value
        return {
            "type": event.type,
            "name": self.texts["name"][event.name_iid] if event.name_iid else "",
            "category": ",".join(self.texts["category"][c] for c in event.category_iids),
            "arguments": arguments,
            "place": self.texts["place"].get(event.source_location_iid, ""),
            "value": event.double_counter_value,
            "flows_out": list(event.flow_ids),
            "flows_in": list(event.terminating_flow_ids),
        }

    def add_slices(self, thread: Thread, events: list[tuple[int, dict[str, Any]]]) -> None:
        types = self.proto.TrackEvent
        stack: list[Slice] = []
        for at, event in events:
            if event["type"] == types.TYPE_SLICE_BEGIN:
                new = Slice(
                    thread.name,
                    at,
                    event["name"],
                    event["category"],
                    event["arguments"],
                    event["place"],
                    len(stack),
                    flows_out=event["flows_out"],
                    flows_in=event["flows_in"],
                )
                stack.append(new)
                thread.slices.append(new)
            elif event["type"] == types.TYPE_SLICE_END:
                if not stack:
                    raise ValueError(f"{thread.name}: an end at {at} ns without a beginning")
                stack.pop().end = at
            else:
                raise ValueError(f"{thread.name}: an event of type {event['type']} at {at} ns")
        if stack:
            raise ValueError(f"{thread.name}: {stack[-1].name} at {stack[-1].start} ns has no end")

    def add_flows(self) -> None:
        begins: dict[int, Slice] = {}
        ends: dict[int, Slice] = {}
        for thread in self.timeline.threads.values():
            for piece in thread.slices:
                for side, flows in ((begins, piece.flows_out), (ends, piece.flows_in)):
                    for flow in flows:
                        if flow in side:
                            raise ValueError(f"flow {flow} has two beginnings or ends")
                        side[flow] = piece
        if begins.keys() != ends.keys():
            raise ValueError(f"flows without both ends: {sorted(begins.keys() ^ ends.keys())}")
        self.timeline.flows = {flow: (begins[flow], ends[flow]) for flow in sorted(begins)}


def read(path: Path) -> Timeline:
    """Raises ValueError, or what protobuf raises, when the file is not a sound timeline."""
    return Reader(messages()).read(path)


def covered(slices: Iterable[Slice]) -> int:
    """Time in at least one of them, ns."""
    total = reached = 0
    for piece in sorted(slices, key=lambda s: s.start):
        total += max(0, piece.end - max(piece.start, reached))
        reached = max(reached, piece.end)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("timeline", type=Path, help="a .pftrace file of trn-sim")
    options = parser.parse_args()
    timeline = read(options.timeline)
    print(f"{timeline.process}: {', '.join(timeline.labels)}")
    print(", ".join(f"{name} {value}" for name, value in timeline.about.items()))
    print(f"\n{'thread':<10}{'slices':>9}{'active, us':>14}{'stalled, us':>14}")
    for thread in timeline.threads.values():
        active = covered(thread.outer("instruction", "dma")) / 1000
        stalled = covered(thread.outer("stall")) / 1000
        print(f"{thread.name:<10}{len(thread.slices):>9}{active:>14.3f}{stalled:>14.3f}")
    print(f"\n{'counter':<32}{'samples':>9}{'most':>14}")
    for counter in timeline.counters.values():
        most = max((value for _, value in counter.samples), default=0)
        print(f"{counter.name:<32}{len(counter.samples):>9}{most:>14.4g} {counter.unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
