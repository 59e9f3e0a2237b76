#!/usr/bin/python3
"""Sets machine parameters to absurd values; each must make `trn-sim validate` fail.

Example: tests/validation/mutation_test.py build/release/bin/trn-sim
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile

# Each off by a factor that no machine has, or a mechanism gone or absurd.
MUTATIONS = (
    "chip.tensor.clock=24 GHz",
    "chip.tensor.cold_clock=0.1 GHz",
    "chip.vector.clock=96 MHz",
    "chip.scalar.clock=120 MHz",
    "chip.hbm.bandwidth_per_stack=7 GB/s",
    "chip.dma.bandwidth_per_engine=2.7 GB/s",
    "chip.dma.software.latency=50 us",
    "chip.dma.software.per_element=30 ns",
    "chip.dma.hardware.write.completion=40 us",
    "chip.semaphores.to_compute.vector.tensor=20 us",
    "chip.dma.packet_overhead=5 us",
    "chip.runtime.prologue=900 us",
)


def validate(trn_sim: str, cache: str, *sets: str) -> subprocess.CompletedProcess[str]:
    """Runs the quick rows."""
    given = [part for text in sets for part in ("--set", text)]
    command = [trn_sim, "validate", "--subset", "mutation", "--cache", cache, "--quiet", *given]
    return subprocess.run(command, capture_output=True, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trn_sim", metavar="TRN_SIM", help="the command")
    trn_sim = parser.parse_args().trn_sim
    failed = []
    with tempfile.TemporaryDirectory() as cache:
        done = validate(trn_sim, cache)
        if done.returncode:
            failed.append(f"unchanged: exit {done.returncode}\n{done.stdout}{done.stderr}")
        for mutation in MUTATIONS:
            done = validate(trn_sim, cache, mutation)
            broken = done.stdout.count("limit broken")
            print(f"{mutation:<50} exit {done.returncode}, {broken} limits broken")
            if done.returncode != 1 or not broken:
                failed.append(f"{mutation}: exit {done.returncode}, expected 1\n{done.stderr}")
    for text in failed:
        print(f"FAILED {text}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
