#!/usr/bin/python3
"""Checks reports that trn-sim makes against docs/reference/report.schema.json.

Example: tests/cli/check_schema.py build/release/bin/trn-sim
"""

import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests/golden/matmul_chain/program.trn"
SMALL = '.name "small"\n.core 0 program=0 rank=0\n.program 0\n.engine Vector\nNOP\n'


def trn_sim(command: str, *arguments: str) -> str:
    done = subprocess.run([command, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def reports(command: str) -> dict[str, Any]:
    """Reports that have as many sections as there are, and as few."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "small.trn").write_text(SMALL)
        trn_sim(command, "asm", str(folder / "small.trn"), "-o", str(folder / "small.bin"))
        trn_sim(command, "asm", str(PROGRAM), "-o", str(folder / "full.bin"))
        profiles = sorted((ROOT / "tests/data/profiles").glob("*.json"))
        runs = {
            "full": [str(folder / "full.bin")],
            "small": [str(folder / "small.bin")],
            "small without runtime": [
                str(folder / "small.bin"),
                "--set=chip.runtime.include=false",
                "--set=system.instance=none",
            ],
            "sensitivity": [str(folder / "full.bin"), "--sensitivity"],
            "replay": ["replay", str(profiles[0])],
        }
        return {
            name: json.loads(trn_sim(command, *arguments, "--config=trn2.3xlarge", "--report=json"))
            for name, arguments in runs.items()
        }


def main() -> int:
    schema = json.loads((ROOT / "docs/reference/report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    found = 0
    for name, report in reports(sys.argv[1]).items():
        for error in validator.iter_errors(report):
            found += 1
            print(f"{name}: {error.json_path}: {error.message}", file=sys.stderr)
    # A schema that lets anything through would pass as well.
    broken = reports(sys.argv[1])["full"]
    broken["summary"]["made_up"] = 1
    if validator.is_valid(broken):
        found += 1
        print("an unknown figure passed", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
