"""What is compared apart from the averages: device profiles, and the instructions in them."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from trnsim.validation import inputs, places
from trnsim.validation.predict import Failure, Machine, Predictor, Request

Kind = tuple[str, str]  # engine and opcode, and the settings of U-PRF rows
_PACKETS = {"hardware_dynamic": False, "software_dynamic": True}  # inputs_by_software
_NO_PACKETS = "packets that fetch instructions; they are not simulated"


@dataclass(frozen=True)
class Instruction:
    """A predicted instruction of a replayed profile; times in ns from the kernel's start."""

    engine: str
    opcode: str
    operands: str
    start: float
    duration: float
    clock: str  # HAM=k8n8 while the Tensor engine's clock is full, and so on


@dataclass(frozen=True)
class Replay:
    """A profile, replayed: the `replay` part of the report, and its instructions."""

    name: str
    figures: Mapping[str, Any]
    instructions: Sequence[Instruction]


def replays(
    trn_sim: str, config: str, sets: Sequence[str]
) -> tuple[list[Replay], list[dict[str, str]]]:
    """All shipped profiles, replayed, and reasons for those that could not be."""
    found, failed = [], []
    for profile in sorted(places.folder("profiles").glob("*.json")):
        answer = _replay(trn_sim, profile, config, sets)
        if isinstance(answer, Replay):
            found.append(answer)
        else:
            failed.append({"id": profile.stem, "reason": answer.reason})
    return found, failed


def _replay(trn_sim: str, profile: Path, config: str, sets: Sequence[str]) -> Replay | Failure:
    given = [part for text in sets for part in ("--set", text)]
    with tempfile.TemporaryDirectory(prefix="trn-sim-validate-") as folder:
        table = Path(folder) / "rows.csv"
        command = [trn_sim, "replay", str(profile), "--quiet", "--report", "json"]
        command += ["--config", config, "--instructions", str(table), *given]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return Failure(f"exit {done.returncode}: {' '.join(done.stderr.split())[:400]}")
        with table.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    clock = _clock(json.loads(profile.read_text(encoding="utf-8")))
    instructions = [
        Instruction(
            row["engine"],
            row["opcode"],
            row["operands"],
            float(row["start_ts"]),
            float(row["duration_ns"]),
            clock(float(row["start_ts"])),
        )
        for row in rows
    ]
    return Replay(profile.stem, json.loads(done.stdout)["replay"], instructions)


def _clock(profile: Mapping[str, Any]) -> Any:
    """The state of the Tensor engine's clock at a time from the kernel's start."""
    kernel = [row for row in profile["instruction"] if "compiler_pc" in row]
    start = min(row["timestamp"] for row in kernel)
    windows = [
        (one["timestamp"] - start, one["timestamp"] + one["duration"] - start, one["k"], one["n"])
        for one in profile.get("ham", [])
    ]

    def state(time: float) -> str:
        for begin, end, k, n in windows:
            if begin <= time < end:
                return f"k{k}n{n}"
        return "none"

    return state


def profile_figures(found: Sequence[Replay]) -> list[dict[str, Any]]:
    """One entry a profile, as replayed."""
    entries = []
    for replay in found:
        figures = replay.figures
        entries.append(
            {
                "profile": replay.name,
                "measured_us": figures["measured_total_ns"] / 1e3,
                "predicted_us": figures["predicted_total_ns"] / 1e3,
                "error_percent": figures["total_error_percent"],
                "duration_error_percent": {
                    key: figures["duration_error_percent"][key] for key in ("median", "p90")
                },
                "start_error_percent_of_kernel": {
                    "median": figures["start_error_percent_of_kernel"]["median"]
                },
            }
        )
    return entries


def instruction_figures(
    found: Sequence[Replay], predictor: Predictor, machine: Machine
) -> dict[str, Any]:
    """The medians of instruction_rows.csv beside the same medians of the replays, and packets
    beside the mean packet of a transfer of that size alone."""
    durations, intervals = _medians(found)
    with (places.folder("validation") / "instruction_rows.csv").open(newline="") as file:
        published = list(csv.DictReader(file))
    packets = _packets(published, predictor, machine)
    rows, left_out = [], []
    for row in published:
        what, _, name = row["quantity"].partition(": ")
        value: float | str | None
        if what == "DMA packet time":
            value = packets.get((name, row["parameters"]), _NO_PACKETS)
        elif "includes waiting" in row["notes"]:
            value = "includes waiting: a property of the kernel around it"
        else:
            kind = (name.replace("TensorMatrix", "Tensor"), _sorted(row["parameters"]))
            table = durations if what == "instruction duration" else intervals
            value = table.get(kind)
            if value is None and kind in durations:
                value = "no two of that kind follow each other in the shipped profiles"
            elif value is None:
                value = "none of that kind within the kernels of the shipped profiles"
        if isinstance(value, str):
            left_out.append({"id": row["id"], "reason": value})
            continue
        measured = float(row["value"])
        rows.append(
            {
                "id": row["id"],
                "quantity": row["quantity"],
                "parameters": row["parameters"],
                "predicted": value,
                "measured": measured,
                "unit": row["unit"],
                "error_percent": 100.0 * (value / measured - 1.0),
            }
        )
    return {"rows": rows, "left_out": left_out}


def _medians(found: Sequence[Replay]) -> tuple[dict[Kind, float], dict[Kind, float]]:
    """Durations, and times from one start to the next of the same kind, by kind."""
    durations: dict[Kind, list[float]] = {}
    intervals: dict[Kind, list[float]] = {}
    for replay in found:
        last: dict[tuple[str, str], tuple[Kind, float]] = {}
        for one in sorted(replay.instructions, key=lambda i: i.start):
            kind = _kind(one)
            durations.setdefault(kind, []).append(one.duration)
            queue = (one.engine, one.opcode)
            before = last.get(queue)
            if before is not None and before[0] == kind:
                intervals.setdefault(kind, []).append(one.start - before[1])
            last[queue] = kind, one.start
    return (
        {kind: median(values) for kind, values in durations.items()},
        {kind: median(values) for kind, values in intervals.items()},
    )


_DTYPES = {"bf16": "bfloat16"}


def _kind(one: Instruction) -> Kind:
    """Engine, opcode and settings of an instruction in the words of instruction_rows.csv."""
    words: list[str] = []
    source = re.search(r"\bsrc=(\w+)@(\w+):", one.operands)
    if one.opcode == "COMPARE_BRANCH":
        condition = re.search(r"\bop=(\w+)", one.operands)
        words.append(f"op={condition[1] if condition else ''}")
    elif one.opcode == "DMA_DIRECT2D":
        words += _transfer(one.operands)
    elif source is not None:
        words += [_DTYPES.get(source[1], source[1]), f"src={source[2].upper()}"]
        words.append(f"free={_free(one.operands, 'src')}")
        if one.engine == "Tensor":
            words += _tensor(one, source[1])
        else:
            words += _elementwise(one)
    return f"{one.engine} {one.opcode}", _sorted(" ".join(words))


def _tensor(one: Instruction, dtype: str) -> list[str]:
    words = [f"HAM={one.clock}"]
    turned = "transpose=true" in one.operands
    if one.opcode == "LDWEIGHTS":
        words.append(f"transpose_mode={'ENABLED' if turned else 'DISABLED'}")
    given = re.search(r"\bpass=(\w+)", one.operands)
    if dtype == "fp32":
        if one.opcode == "MATMUL":
            words.append("fp32_mode=LOW_HIGH")
        else:
            words.append(f"fp32_mode={given[1].upper() if given else 'LOW'}")
    return words


def _elementwise(one: Instruction) -> list[str]:
    target = re.search(r"\bdst=(\w+)@(\w+):", one.operands)
    words = []
    if target is not None:
        words += [f"dst={target[2].upper()}", _DTYPES.get(target[1], target[1])]
        words.append(f"dfree={_free(one.operands, 'dst')}")
    function = re.search(r"\bfunction=(\w+)", one.operands)
    if function is not None:
        words.append(function[1])
    if one.opcode == "TENSOR_SCALAR":
        steps = [re.search(rf"\b{name}=(\w+)", one.operands) for name in ("op0", "op1")]
        words.append("ops=" + ",".join(step[1] if step else "BYPASS" for step in steps))
    return words


def _transfer(operands: str) -> list[str]:
    """`{2048}[2048,1][128,1]` of the source: bytes of a row, strides, counts."""
    source = re.search(r"\bsrc=\S+?\{(\d+)\}\[([\d,]+)\]\[([\d,]+)\]", operands)
    if source is None:
        return []
    strides, counts = source[2].split(","), source[3].split(",")
    if len(counts) == 1:
        strides, counts = [strides[0], "1"], [counts[0], "1"]
    strides, counts = [",".join(part) for part in (strides, counts)]
    return ["op=NONE", f"elem={source[1]}", f"[{strides}][{counts}]"]


def _free(operands: str, name: str) -> int:
    """The elements of a partition that an operand has."""
    shape = re.search(rf"\b{name}=\w+@\w+:\w+\[[^\]]*\]\[([\d,]+)\]", operands)
    product = 1
    for size in shape[1].split(",") if shape else ():
        product *= int(size)
    return product


def _sorted(words: str) -> str:
    return " ".join(sorted(words.split()))


def _packets(
    published: Sequence[Mapping[str, str]], predictor: Predictor, machine: Machine
) -> dict[tuple[str, str], float]:
    """The mean packet of a transfer to SBUF and back, in ns, by queue and size."""
    asked: dict[tuple[str, str], Request] = {}
    for row in published:
        what, _, name = row["quantity"].partition(": ")
        if what == "DMA packet time" and name in _PACKETS:
            size = int(row["parameters"].split()[0])
            settings = {"count": 1, "free": size // 4, "dtype": "fp32"}
            (launch,) = inputs.launches("dma.loads", settings)
            options = (("inputs_by_software", _PACKETS[name]),)
            asked[name, row["parameters"]] = Request(launch, machine, options)
    answers = predictor.predict(asked.values())
    found = {}
    for key, request in asked.items():
        answer = answers[request]
        if isinstance(answer, Failure):
            continue
        summary = answer["summary"]
        count = sum(summary[f"{name}_dma_packet_count"] for name in _PACKETS)
        found[key] = 1e9 * summary["dma_packet_time"] / count
    return found
