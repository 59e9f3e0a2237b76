"""Loops that stay loops in the trace: the same time as unrolled, and small."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

from trace_support import NO_NATIVE, ROOT, has_native, trnsim

KERNELS = ROOT / "traces" / "kernels"
DEEP = Path(__file__).resolve().parent / "data" / "deep_loop.py"


def can_run() -> bool:
    if not has_native():
        return False
    from trnsim import report

    return report.can_simulate()


def bf16(*shape: int) -> Any:
    return trnsim.Shape("bf16", shape)


def deep(batch: int, rows: int = 8) -> dict[str, Any]:
    return {
        "image": bf16(batch, 128, (rows + 8) * 64),
        "weights": bf16(4, 128, 8 * 128),
        "batch": batch,
        "blocks": 4,
        "rows": rows,
        "taps": 8,
    }


CASES: list[tuple[Path, str, dict[str, Any]]] = [
    (DEEP, "deep", deep(6)),
    (KERNELS / "matmul.py", "tiled", {"lhsT": bf16(1024, 512), "rhs": bf16(1024, 2048)}),
    (KERNELS / "matmul.py", "hoisted", {"lhsT": bf16(1024, 512), "rhs": bf16(1024, 2048)}),
]


def kernel(file: Path, function: str) -> Any:
    from trnsim import loader

    sys.modules.pop(file.stem, None)
    return loader.find_kernel(loader.load(file), function)


@unittest.skipUnless(can_run(), NO_NATIVE)
class Rolling(unittest.TestCase):
    def test_a_loop_takes_the_time_of_its_iterations(self) -> None:
        for file, function, given in CASES:
            with self.subTest(f"{file.stem}:{function}"):
                times = []
                for roll in (True, False):
                    report = trnsim.run(
                        kernel(file, function),
                        **given,
                        config="trn2.3xlarge",
                        options={"roll": roll},
                    )
                    times.append(report.device_time_us)
                self.assertAlmostEqual(times[0] / times[1], 1.0, delta=0.005)

    def test_more_iterations_are_not_more_trace(self) -> None:
        from trnsim import jit

        def size(rows: int, **options: Any) -> int:
            given = deep(2, rows)
            return len(jit.trace(kernel(DEEP, "deep"), (), given, options=options).data)

        self.assertLess(size(64), 1.2 * size(32))
        self.assertLess(size(64), size(64, roll=False) / 20)


if __name__ == "__main__":
    unittest.main()
