#!/usr/bin/env python3
"""Cuts a device profile down to what the importer, `replay` and their tests read.

Keeps the instruction rows of one subgraph, its clock states, active times and DMA queues, the
summary's and the metadata's few fields, and the network's name; one row a line, in the order of the
export. Times stay as they are: the tests compare with them, the importer does not read them.

Example: scripts/shrink_profile.py profile.json -o tests/data/profiles/profile.json
"""

import argparse
import json
import pathlib
import sys
from typing import Any

Row = dict[str, Any]

SECTIONS: dict[str, tuple[str, ...]] = {
    "neff_header": ("network_name",),
    "metadata": (
        "pe_clock_freq",
        "pe_clock_others",
        "first_hw_timestamp",
        "last_hw_timestamp",
    ),
    "summary": ("instance_type", "total_time"),
    "dma_queues_info": ("subgraph", "q_name", "q_idx", "q_eng_idx"),
    "ham": ("subgraph", "timestamp", "duration", "k", "n"),
    "active_time": ("subgraph", "engine", "start_ts", "end_ts"),
    "instruction": (
        "subgraph",
        "subgroup",
        "pc",
        "compiler_pc",
        "timestamp",
        "duration",
        "opcode",
        "operands",
        "layer",
        "bir_instruction_name",
        "nki_source_location",
    ),
}


def shrink(profile: dict[str, list[Row]], subgraph: str) -> dict[str, list[Row]]:
    """The sections and fields above; rows of other subgraphs are left out."""
    result: dict[str, list[Row]] = {}
    for section, keys in SECTIONS.items():
        rows = [r for r in profile.get(section, []) if r.get("subgraph", subgraph) == subgraph]
        kept = [{k: r[k] for k in keys if k in r} for r in rows]
        result[section] = kept
    return result


def dump(profile: dict[str, list[Row]]) -> str:
    """JSON with one row a line, so that differences can be read."""
    parts = []
    for section, rows in profile.items():
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        parts.append(f"{json.dumps(section)}:[\n{lines}\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("profile", type=pathlib.Path, help="JSON export of AWS's profiler")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--subgraph", default="sg00", help="core to keep (default: sg00)")
    args = parser.parse_args()
    try:
        profile = json.loads(args.profile.read_text())
    except (OSError, ValueError) as error:
        print(f"{args.profile}: {error}", file=sys.stderr)
        return 2
    args.output.write_text(dump(shrink(profile, args.subgraph)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
