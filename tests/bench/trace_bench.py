#!/usr/bin/env python3
"""What tracing costs: microseconds per nisa call, deep loops, and a large product from Python to report.

Prints figures and asserts nothing. Each part runs in a process of its own, so that its peak of resident
memory is its own. The time of a call is also given as a multiple of a NumPy slice made in the same run.

Example: tests/bench/trace_bench.py --build-dir build/release
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CALLS = 2000
ROUNDS = 7


def find_trnsim(build_dir: Path) -> Any:
    sys.path.insert(0, str(build_dir / "share" / "trn-sim" / "python"))
    import trnsim

    trnsim.activate()
    return trnsim


def figures(started: float, **more: Any) -> dict[str, Any]:
    """Since `started`, and of this whole process and the simulator that it ran."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(
            own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2
        ),
        "peak_mb": round(own.ru_maxrss / 1024),
        **more,
    }


def calls(build_dir: Path) -> dict[str, Any]:
    """Microseconds of user time per call, the least of several rounds of many calls in one kernel."""
    trnsim = find_trnsim(build_dir)
    import neuronxcc.nki as old_nki
    import neuronxcc.nki.isa as old_nisa  # noqa: F401
    import neuronxcc.nki.language as old_nl
    import nki
    import nki.isa as nisa
    import nki.language as nl
    import numpy as np
    from trnsim import jit

    times: dict[str, float] = {}

    def measure(name: str, act: Callable[[int], None]) -> None:
        best = float("inf")
        for _ in range(ROUNDS):
            before = time.process_time()
            for i in range(CALLS):
                act(i)
            best = min(best, time.process_time() - before)
        times[name] = 1e6 * best / CALLS

    @nki.jit
    def new(x: Any) -> Any:
        def sbuf(*shape: int, dtype: Any = nl.float32) -> Any:
            return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)

        a, b, d, one = sbuf(128, 512), sbuf(128, 512), sbuf(128, 512), sbuf(128, 1)
        k, m = sbuf(128, 128, dtype=nl.bfloat16), sbuf(128, 512, dtype=nl.bfloat16)
        bank = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)

        def slices(i: int) -> None:
            s = i % 4 * 128
            nisa.tensor_tensor(
                dst=d[:, s : s + 128], data1=a[:, s : s + 128], data2=b[:, s : s + 128], op=nl.add
            )

        measure("tensor_tensor, three slices", slices)
        measure("activation", lambda i: nisa.activation(dst=d, op=nl.exp, data=a, scale=2.0))
        measure("nc_matmul", lambda i: nisa.nc_matmul(dst=bank, stationary=k, moving=m))
        measure("dma_copy", lambda i: nisa.dma_copy(dst=a, src=x[i % 8]))
        measure("tensor_reduce", lambda i: nisa.tensor_reduce(dst=one, op=nl.add, data=a, axis=1))
        nisa.dma_copy(dst=out, src=a)
        return out

    @old_nki.jit
    def old(x: Any) -> Any:
        out = old_nl.ndarray((128, 512), dtype=x.dtype, buffer=old_nl.shared_hbm)
        ip, jf = old_nl.arange(128)[:, None], old_nl.arange(512)[None, :]
        tiles: list[Any] = [None]

        def load(i: int) -> None:
            tiles[0] = old_nl.load(x[i % 8, ip, jf], mask=(ip < 100) & (jf < 500))

        measure("nl.load with a mask (older API)", load)
        old_nl.store(out[ip, jf], tiles[0])
        return out

    jit.trace(new, (), {"x": trnsim.Shape("fp32", (8, 128, 512))})
    jit.trace(old, (), {"x": trnsim.Shape("fp32", (8, 128, 512))})
    plain = np.zeros((128, 512), np.float32)
    measure("numpy slice", lambda i: plain[:, i % 4 * 128 : i % 4 * 128 + 128])
    unit = times.pop("numpy slice")
    return {
        name: {"us": round(value, 2), "slices": round(value / unit, 1)}
        for name, value in times.items()
    }


def kernel(file: Path, function: str) -> Any:
    from trnsim import loader

    return loader.find_kernel(loader.load(file), function)


def deep_loop(build_dir: Path) -> dict[str, Any]:
    """25 x 8 x 32 x 16 iterations, traced; the asked figures are 60 s and 2 GB."""
    trnsim = find_trnsim(build_dir)
    from trnsim import jit

    started = time.perf_counter()
    made = jit.trace(
        kernel(ROOT / "tests" / "python" / "data" / "deep_loop.py", "deep"),
        (),
        {
            "image": trnsim.Shape("bf16", (25, 128, 48 * 64)),
            "weights": trnsim.Shape("bf16", (8, 128, 16 * 128)),
        },
    )
    return figures(
        started, trace_bytes=len(made.data), instructions=made.finished.get("instructions")
    )


def product(build_dir: Path) -> dict[str, Any]:
    """4096^3 in bf16 by matmul.py:tiled, from Python to report; asked: about a second and 100 MB."""
    started = time.perf_counter()
    trnsim = find_trnsim(build_dir)
    imported = time.perf_counter()
    given = {name: trnsim.Shape("bf16", (4096, 4096)) for name in ("lhsT", "rhs")}
    report = trnsim.run(kernel(ROOT / "traces" / "kernels" / "matmul.py", "tiled"), **given)
    return figures(
        started,
        import_seconds=round(imported - started, 2),
        trace_seconds=round(report.trace_seconds, 2),
        trace_bytes=len(report.trace),
        device_time_us=round(report.device_time_us, 1),
    )


PARTS = {"calls": calls, "deep_loop": deep_loop, "product": product}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all by default")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    build_dir = options.build_dir.absolute()
    if options.here:
        print(json.dumps(PARTS[options.parts[0]](build_dir)))
        return 0
    for part in options.parts or PARTS:
        command = [sys.executable, __file__, "--here", "--build-dir", str(build_dir), part]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        print(f"{part}:")
        for name, value in json.loads(done.stdout.splitlines()[-1]).items():
            print(f"  {name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
