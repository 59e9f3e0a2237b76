"""Decorators, launches and grids: what a script's call of a kernel does."""

from __future__ import annotations

import importlib
import sys
import tempfile
import textwrap
import types
import unittest
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from trace_support import NO_NATIVE, UNTIDY, has_native, trnsim
from trnsim import jit, loader, report, session
from trnsim.session import ProgramGrid, nc, spmd_dim


class Grids(unittest.TestCase):
    def test_no_grid_is_one_program_without_ids(self) -> None:
        grid = ProgramGrid(None)
        self.assertEqual((grid.shape, grid.cores, grid.programs), ((), 1, [[()]]))

    def test_two_in_the_new_api_are_two_cores(self) -> None:
        for dims in (2, (2,), [2]):
            grid = ProgramGrid(dims, generation="new")
            self.assertEqual((grid.cores, grid.programs), (2, [[(0,)], [(1,)]]))
        self.assertEqual(ProgramGrid(1, generation="new").programs, [[(0,)]])

    def test_old_grids_run_one_after_the_other(self) -> None:
        grid = ProgramGrid((2, 2), generation="old")
        self.assertEqual(grid.programs, [[(0, 0), (0, 1), (1, 0), (1, 1)]])
        self.assertEqual(ProgramGrid(2, generation="old").cores, 1)

    def test_nc_says_which_core(self) -> None:
        grid = ProgramGrid((nc(2), 2), generation="old")
        self.assertEqual(grid.programs, [[(0, 0), (0, 1)], [(1, 0), (1, 1)]])
        grid = ProgramGrid((2, nc(2)), generation="old")
        self.assertEqual(grid.programs, [[(0, 0), (1, 0)], [(0, 1), (1, 1)]])

    def test_spmd_dim_splits_a_dimension(self) -> None:
        grid = ProgramGrid(spmd_dim(nc(2), 2), generation="old")
        self.assertEqual((grid.shape, grid.programs), ((4,), [[(0,), (1,)], [(2,), (3,)]]))
        grid = ProgramGrid(spmd_dim(2, nc(2)), generation="old")
        self.assertEqual(grid.programs, [[(0,), (2,)], [(1,), (3,)]])

    def test_what_is_no_grid_is_said(self) -> None:
        for dims, generation, message in (
            (0, None, "expected at least 1, got 0"),
            ("x", None, "expected a number, got 'x'"),
            (nc(4), "old", "1 or 2 cores"),
            ((nc(2), nc(2)), "old", "only one dimension"),
            ((2, 2), "new", "one number, 1 or 2"),
            (4, "new", "one number, 1 or 2"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                ProgramGrid(dims, generation=generation)


class Decorators(unittest.TestCase):
    def test_with_and_without_arguments(self) -> None:
        def kernel(a: int) -> int:
            """Doc."""
            return a

        for decorator in (jit.jit, jit.benchmark, jit.baremetal, jit.profile, jit.simulate):
            for made in (
                decorator(kernel),
                decorator()(kernel),
                decorator(warmup=5, iters=10)(kernel),
                decorator(func=kernel, show_compiler_tb=True),
                decorator(decorator(kernel)),
            ):
                self.assertIsInstance(made, jit.Kernel)
                self.assertIs(made.func, kernel)
                self.assertEqual((made.__name__, made.__doc__), ("kernel", "Doc."))
        self.assertEqual(jit.jit(mode="benchmark")(kernel).mode, "benchmark")
        self.assertEqual(jit.jit("trace")(kernel).mode, "trace")

    def test_a_decorated_kernel_called_in_a_kernel_is_inlined(self) -> None:
        kernel = jit.jit(lambda a, b=1: (session.current().program_ids, a, b))
        with session.entered(session.Session(None)) as now:  # type: ignore[arg-type]
            now.begin_program((4,), (3,))
            self.assertEqual(kernel(5, b=6), ((3,), 5, 6))
            self.assertEqual(kernel[1](5), ((0,), 5, 1))
            self.assertEqual(now.program_ids, (3,))

    def test_methods_can_be_kernels(self) -> None:
        class Holder:
            @jit.jit
            def method(self, a: int) -> Any:
                return self, a

        holder = Holder()
        with session.entered(session.Session(None)):  # type: ignore[arg-type]
            self.assertEqual(holder.method(3), (holder, 3))

    def test_percentiles_are_those_of_the_report(self) -> None:
        result = jit.BenchmarkResult(types.SimpleNamespace(latency_us=12.5))
        self.assertEqual(result.nc_latency.get_latency_percentile(99), 12.5)
        with self.assertRaisesRegex(ValueError, "expected 0 to 100"):
            result.nc_latency.get_latency_percentile(101)

    def test_results_have_shapes_and_no_values(self) -> None:
        out = jit.Output("out", "kernel", (4, 6), np.dtype(np.float32))
        self.assertEqual((out.shape, out.ndim, out.size, len(out)), ((4, 6), 2, 24, 4))
        self.assertEqual((out[0, 1:3].shape, out.reshape(-1).shape), ((2,), (24,)))
        for use in (
            lambda: np.asarray(out),
            lambda: np.allclose(out, np.zeros((4, 6))),
            lambda: out + 1,
            lambda: 1 + out,
            lambda: out == 1,
            lambda: float(out),
            lambda: bool(out),
            lambda: list(out),
            lambda: out.sum(),
        ):
            with self.assertRaisesRegex(ValueError, "kernel: the values of its result out"):
                use()


timed = unittest.skipUnless(has_native() and report.can_simulate(), "no simulator is built")


@unittest.skipUnless(has_native(), NO_NATIVE)
class Launches(unittest.TestCase):
    """Kernels called as scripts call them."""

    @classmethod
    def setUpClass(cls) -> None:
        trnsim.activate()
        cls.folder = tempfile.TemporaryDirectory()
        sys.path.insert(0, cls.folder.name)

    @classmethod
    def tearDownClass(cls) -> None:
        sys.path.remove(cls.folder.name)
        cls.folder.cleanup()

    made = 0

    def module(self, text: str) -> Any:
        Launches.made += 1
        name = f"kernels_of_a_test_{Launches.made}"
        (Path(self.folder.name) / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    COPY = """
        import nki
        import nki.isa as nisa
        import nki.language as nl

        traced = 0

        @nki.jit
        def copy(a, times=1):
            global traced
            traced += 1
            out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
            for _ in range(times):
                tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=tile, src=a)
                nisa.dma_copy(dst=out, src=tile)
            return out
    """

    @timed
    def test_a_call_gives_shapes_and_leaves_a_report(self) -> None:
        copy = self.module(self.COPY).copy
        out = copy(np.zeros((128, 64), np.float16))
        self.assertEqual((out.shape, out.dtype), ((128, 64), np.float16))
        last = trnsim.last_report()
        self.assertGreater(last.device_time_us, 0)
        self.assertEqual(last.to_json()["schema"], "trn-sim-results/1")
        self.assertEqual(last.bound_by, last.to_json()["bound_by"])
        self.assertIn(last.bound_by["resource"], repr(last))
        self.assertIn("traced in", str(last))
        self.assertEqual(str(last), last.text)

    @timed
    def test_run_gives_the_report(self) -> None:
        copy = self.module(self.COPY).copy
        short = trnsim.run(copy, trnsim.Shape("bf16", 128, 64), times=3)
        longer = trnsim.run(copy, trnsim.Shape("bf16", 128, 64), times=30)
        self.assertLessEqual(short.device_time_us, longer.device_time_us)
        with tempfile.TemporaryDirectory() as folder:
            path = short.timeline(Path(folder) / "out.pftrace")
            self.assertGreater(path.stat().st_size, 0)
            self.assertEqual(short.save_trace(Path(folder) / "t.bin").read_bytes(), short.trace)

    def test_an_equal_call_is_not_traced_again(self) -> None:
        module = self.module(self.COPY)
        for _ in range(3):
            module.copy(np.zeros((128, 64), np.float32))
        self.assertEqual(module.traced, 1)
        module.copy(np.zeros((128, 32), np.float32))
        self.assertEqual(module.traced, 2)

    def test_chained_calls_take_results(self) -> None:
        copy = self.module(self.COPY).copy
        self.assertEqual(copy(copy(np.zeros((128, 64), np.float32))).shape, (128, 64))

    def test_contents_steer_loops(self) -> None:
        module = self.module(
            self.COPY
            + """
        @nki.jit
        def counted(a, counts):
            assert counts[1] > 2 and counts[0] == 3
            return copy(a, int(counts[0]))
        """
        )
        a = np.zeros((128, 64), np.float32)
        module.counted(a, np.array([3, 5], np.int32))
        with self.assertRaisesRegex(AssertionError, ""):
            module.counted(a, np.array([4, 5], np.int32))  # not the trace of the call before

    @timed
    def test_benchmark_measures(self) -> None:
        copy = self.module(self.COPY).copy
        measured = jit.benchmark(warmup=2, iters=3, save_neff_name="x.neff")(copy)
        measured(np.zeros((128, 64), np.float32))
        latency = measured.benchmark_result.nc_latency.get_latency_percentile(50)
        self.assertAlmostEqual(latency, trnsim.last_report().latency_us)

    def test_simulate_in_both_generations(self) -> None:
        copy = self.module(self.COPY).copy
        a = np.zeros((128, 64), np.float32)
        self.assertEqual(jit.simulate_kernel(copy, a).shape, (128, 64))
        self.assertEqual(jit.simulate(copy)(a).shape, (128, 64))

    def test_a_call_on_two_cores_gives_shapes(self) -> None:
        loaded = loader.load(UNTIDY / "lnc.py")
        self.addCleanup(loader.remove)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of simulators that know one core
            out = loaded.scope["halves"][2](np.zeros((128, 64), np.float32))
        self.assertEqual(out.shape, (128, 64))

    def test_two_cores_share_what_is_shared(self) -> None:
        trace = self.trace("lnc.py", "halves", 2)
        self.assertEqual((trace.grid.cores, trace.results.shape), (2, (128, 64)))

    def test_a_host_function_may_launch_on_two_cores(self) -> None:
        trace = self.trace("lnc.py", "launch", None)
        self.assertEqual(trace.grid.cores, 2)
        with self.assertRaisesRegex(ValueError, "launch grid: launch is traced on 1 core"):
            self.trace("lnc.py", "launch", 1)

    def test_a_host_function_may_hand_over_arrays(self) -> None:
        loaded = loader.load(UNTIDY / "lnc.py")
        self.addCleanup(loader.remove)
        trace = jit.trace(loader.find_kernel(loaded, "with_arrays"))
        self.assertEqual((trace.grid.cores, trace.results.shape), (2, (128, 64)))

    def test_old_grids_fill_one_tensor(self) -> None:
        trace = self.trace("old_grid.py", "rows", (4, 2), 512, 128)
        self.assertEqual((trace.generations[0], trace.results.shape), ("old", (512, 128)))
        self.assertEqual(trace.grid.cores, 1)
        self.assertEqual(self.trace("old_grid.py", "rows", (nc(2), 2), 256, 128).grid.cores, 2)

    def trace(
        self, file: str, kernel: str, grid: Any, rows: int = 128, columns: int = 64
    ) -> jit.Trace:
        loaded = loader.load(UNTIDY / file)
        self.addCleanup(loader.remove)
        shape = trnsim.Shape("bf16", rows, columns)
        return jit.trace(loader.find_kernel(loaded, kernel), [shape], grid=grid)


@unittest.skipUnless(has_native(), NO_NATIVE)
class Activation(unittest.TestCase):
    def test_a_real_package_that_is_imported_already_is_not_replaced(self) -> None:
        real = types.ModuleType("neuronxcc")
        real.__file__ = "/somewhere/neuronxcc/__init__.py"
        before = sys.modules.get("neuronxcc")
        sys.modules["neuronxcc"] = real
        try:
            with self.assertRaisesRegex(ImportError, "already imported from /somewhere"):
                trnsim.activate()
        finally:
            del sys.modules["neuronxcc"]
            if before is not None:
                sys.modules["neuronxcc"] = before

    def test_a_target_has_its_own_core(self) -> None:
        def kernel(x: Any) -> Any:
            from trnsim import nisa, nl

            seen.append(nisa.get_nc_version())
            tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            return x

        seen: list[Any] = []
        made = [
            jit.trace(kernel, (trnsim.Shape("fp32", 128, 64),), target=target)
            for target in ("trn1", "trn2")
        ]
        self.assertEqual([version.name for version in seen], ["gen2", "gen3"])
        self.assertNotEqual(made[0].data, made[1].data)

    def test_an_unknown_target_is_told(self) -> None:
        with self.assertRaisesRegex(ValueError, "expected trn2"):
            trnsim.activate(target="trn9")


if __name__ == "__main__":
    unittest.main()
