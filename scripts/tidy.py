#!/usr/bin/env python3
"""Runs clang-tidy over our own sources, in parallel, and remembers what was clean.

A file is checked again only when its preprocessed text, its compile command, or a .clang-tidy file
has changed. Findings are errors; the exit code is 1 when there are any.

Example: scripts/tidy.py --build-dir build/tidy sim/memory/psum.cc
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLANG_TIDY = "clang-tidy-16"
PREPROCESSOR = "clang++-16"


@dataclass(frozen=True)
class Unit:
    """One translation unit of the compile database."""

    source: Path
    directory: Path
    arguments: tuple[str, ...]


def load_units(build_dir: Path, only: set[Path]) -> list[Unit]:
    """Our own units, or those of `only`, sorted by path."""
    database = json.loads((build_dir / "compile_commands.json").read_text())
    units: dict[Path, Unit] = {}
    for entry in database:
        source = Path(entry["directory"], entry["file"]).resolve()
        if not source.is_relative_to(ROOT) or source.is_relative_to(ROOT / "build"):
            continue
        if only and source not in only:
            continue
        arguments = tuple(shlex.split(entry["command"]))
        units.setdefault(source, Unit(source, Path(entry["directory"]), arguments))
    return [units[source] for source in sorted(units)]


def fingerprint(unit: Unit, salt: bytes) -> str | None:
    """A hash of all that decides the outcome; None when the unit does not preprocess."""
    arguments = list(unit.arguments[1:])
    for flag, width in (("-o", 2), ("-c", 1)):
        while flag in arguments:
            at = arguments.index(flag)
            del arguments[at : at + width]
    command = [PREPROCESSOR, "-E", "-CC", *arguments]
    result = subprocess.run(command, cwd=unit.directory, capture_output=True)
    if result.returncode != 0:
        return None
    digest = hashlib.sha256(salt)
    digest.update("\0".join(unit.arguments).encode())
    digest.update(result.stdout)
    return digest.hexdigest()


def check(unit: Unit, build_dir: Path, cache: Path, salt: bytes) -> tuple[str, str, float]:
    """The state ("kept", "clean" or "failed"), the findings, and the seconds it took."""
    start = time.monotonic()
    key = fingerprint(unit, salt)
    if key and (cache / key).exists():
        return "kept", "", time.monotonic() - start
    result = subprocess.run(
        [CLANG_TIDY, "-p", str(build_dir), "--quiet", str(unit.source)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - start
    if result.returncode != 0:
        return "failed", result.stdout + result.stderr, seconds
    if key:
        (cache / key).touch()
    return "clean", "", seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "tidy")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("files", nargs="*", type=Path, help="sources to check; all by default")
    options = parser.parse_args()

    build_dir = options.build_dir.resolve()
    if not (build_dir / "compile_commands.json").exists():
        print(
            f"{build_dir}: no compile_commands.json; run cmake --preset tidy",
            file=sys.stderr,
        )
        return 2
    only = {path.resolve() for path in options.files}
    units = load_units(build_dir, only)

    configs = sorted(ROOT.glob("**/.clang-tidy"))
    salt = b"\0".join(path.read_bytes() for path in configs if "build" not in path.parts)
    cache = build_dir / "tidy-cache"
    cache.mkdir(exist_ok=True)

    start = time.monotonic()
    counts = {"kept": 0, "clean": 0, "failed": 0}
    slowest: list[tuple[float, Path]] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = {pool.submit(check, unit, build_dir, cache, salt): unit for unit in units}
        for done in concurrent.futures.as_completed(pending):
            state, findings, seconds = done.result()
            counts[state] += 1
            slowest.append((seconds, pending[done].source.relative_to(ROOT)))
            if state == "failed":
                print(findings, flush=True)
    print(
        f"clang-tidy: {len(units)} files, {counts['kept']} unchanged, {counts['failed']} with findings, "
        f"{time.monotonic() - start:.0f} s"
    )
    for seconds, source in sorted(slowest, reverse=True)[:3]:
        if seconds > 30:
            print(f"  slow: {source} {seconds:.0f} s")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
