"""The trn-trace command: what it prints, writes and returns."""

from __future__ import annotations

import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

from trace_support import NO_NATIVE, ROOT, UNTIDY, has_native, trn_trace

A = "a=bf16[128,64]"


class Usage(unittest.TestCase):
    def test_help_shows_an_example_and_the_specs(self) -> None:
        done = trn_trace("--help")
        self.assertEqual(done.returncode, 0)
        for text in (
            "trn-trace matmul.py:tiled --arg lhsT=bf16",
            "@file.npy",
            "--skip-unsupported",
        ):
            self.assertIn(text, done.stdout)

    def test_wrong_usage_is_told(self) -> None:
        for args, message in (
            ([], "which kernel?"),
            (["x.py:k"], "expected -o TRACE"),
            (["x.py", "-o", "t"], "expected FILE.py:KERNEL"),
            (["x.py:k", "-o"], "expected one argument"),
            (["x.py:k", "--outptu", "t"], "unrecognized arguments"),
        ):
            done = trn_trace(*args)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn(message, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


@unittest.skipUnless(has_native(), NO_NATIVE)
class Traces(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "t.bin"

    def good(self, kernel: str, *args: str) -> str:
        """Traces; gives what was printed to stdout."""
        done = trn_trace(UNTIDY / kernel, *args, "-o", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.out.stat().st_size, 0)
        return done.stdout

    def bad(self, kernel: str, *args: str, code: int = 2) -> str:
        """Fails; gives what was printed to stderr."""
        self.out.unlink(missing_ok=True)
        done = trn_trace(UNTIDY / kernel, *args, "-o", self.out)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertFalse(self.out.exists())
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_untidy_files_trace_as_they_are(self) -> None:
        for kernel, *args in (
            ("3d.add.v2.py:add", "b=bf16[128,64]"),
            ("runs_on_import.py:copy",),
            ("runs_on_import.py:after_the_exit",),
            ("under_if.py:shown",),
            ("under_if.py:hidden",),
            ("under_if.py:guarded",),
            ("under_if.py:plain", "scale=0.5", 'more="text"'),
            ("under_if.py:into", "out=bf16[128,64]"),
            ("under_if.py:made_of_64",),
            ("under_if.py:Kernels.method",),
            ("package/kernels.py:configured", "config=None"),
            ("package/sub/deep.py:kernel",),
            ("bare/inner/deep/kernel.py:kernel",),
            ("wrapper.py:kernel",),
            ("factories.py:scaled", "factor=2.0", "rows=64"),
            ("factories.py:plain",),
            ("factories.py:launcher", "factor=2.0"),
            ("factories.py:calls",),
            ("factories.py:KERNELS.tripled",),
            ("factories.py:Holder.kernel",),
            ("factories.py:Holder.own",),
        ):
            with self.subTest(kernel):
                given = [part for arg in (A, *args) for part in ("--arg", arg)]
                self.good(kernel, *given)

    def test_the_same_command_writes_the_same_bytes(self) -> None:
        self.good("under_if.py:plain", "--arg", A)
        first = self.out.read_bytes()
        self.good("under_if.py:plain", "--arg", A)
        self.assertEqual(self.out.read_bytes(), first)

    def test_search_folders(self) -> None:
        error = self.bad("needs_search.py:kernel", "--arg", A)
        self.assertIn("needs_search.py:8: far_helper.copy_into: used by a call", error)
        self.good("needs_search.py:kernel", "--arg", A, "--search", str(UNTIDY / "elsewhere"))

    def test_arguments_of_every_kind(self) -> None:
        counts = self.folder / "counts.npy"
        np.save(counts, np.array([3, 5], np.int32))
        texts = [A, f"counts=@{counts}", "op=nl.add", "dtype=fp16", "sizes=(1,WIDTH)", "flag=True"]
        given = [part for arg in texts for part in ("--arg", arg)]
        self.good("steered.py:loops", *given, "--arg", 'name="y"')
        error = self.bad("steered.py:loops", "--arg", A, "--arg", "counts=int32[2]")
        self.assertRegex(error, r"steered\.py:15: .*no contents")

    def test_wrong_arguments_name_near_ones(self) -> None:
        for args, message in (
            (
                ["oout=bf16[1,1]"],
                r"--arg oout: no such argument of into\(a, out\); did you mean out\?",
            ),
            ([], r"missing argument out of into\(a, out\)"),
            (["out=bf61[1,1]"], r"did you mean bf16"),
            ([A], r"a is given twice"),
        ):
            given = [part for arg in (A, *args) for part in ("--arg", arg)]
            self.assertRegex(self.bad("under_if.py:into", *given), message)

    def test_wrong_kernels_name_near_ones(self) -> None:
        self.assertIn("no kernel plane; did you mean plain?", self.bad("under_if.py:plane"))
        self.assertIn("no_file.py: No such file", self.bad("no_file.py:kernel"))
        error = self.bad("misspelt_relative.py:kernel", "--arg", A)
        self.assertRegex(error, r"misspelt_relative\.py:3: ModuleNotFoundError: .*utlis")

    def test_what_a_factory_lacks_is_named(self) -> None:
        error = self.bad("factories.py:scaled", "--arg", A)
        self.assertIn("missing argument factor of scaled(factor, rows=128)", error)
        error = self.bad("factories.py:scaled", "--arg", "factor=2.0", "--arg", "b=1")
        self.assertIn("--arg b: no such argument of made(a)", error)

    def test_other_wrong_options(self) -> None:
        given = ("under_if.py:plain", "--arg", A)
        for args, message in (
            (["--target", "trn7"], "expected trn2"),
            (["--grid", "x"], "--grid x: expected N"),
            (["--grid", "3"], "launch grid"),
            (["--work", "32"], "--work 32: expected AMOUNT:UNIT"),
            (["--option", "no_such=1"], "--option no_such: no such option"),
            (["--search", "/no/such"], "no such folder"),
        ):
            self.assertIn(message, self.bad(*given, *args))
        done = trn_trace(UNTIDY / given[0], *given[1:], "-o", "/no/such/folder/t.bin")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/no/such/folder/t.bin: No such file", done.stderr)

    def test_errors_of_a_kernel_name_its_lines(self) -> None:
        error = self.bad("broken.py:divides", "--arg", A)
        self.assertRegex(error, r"broken\.py:14: ZeroDivisionError: ")
        self.assertRegex(error, r"broken\.py:10: in divides: return helper\(a, 0\)")
        self.assertNotIn("isa/python", error)
        error = self.bad("broken.py:asserts", "--arg", A)
        self.assertRegex(error, r"broken\.py:19: AssertionError: expected one row, got 128")
        error = self.bad("broken.py:misspells", "--arg", A)
        self.assertRegex(error, r"broken\.py:25: .*shared_hmb.*shared_hbm")
        error = self.bad("broken.py:forgets_dst", "--arg", A)
        self.assertRegex(
            error, r"broken\.py:30: nisa\.tensor_scalar: .*; expected \(dst, data, op0"
        )
        error = self.bad("old_grid.py:forgets_data", "--arg", A)
        self.assertRegex(error, r"old_grid\.py:\d+: TypeError: activation\(\) missing 1 .*'data'")
        error = self.bad("broken.py:does_nothing", "--arg", A)
        self.assertIn("does_nothing: gives no instruction", error)

    def test_what_is_not_installed_is_named_when_it_is_used(self) -> None:
        error = self.bad("3d.add.v2.py:branches_on_torch", "--arg", A)
        self.assertIn("3d.add.v2.py:44: torch.cuda.is_available(...): used as a truth", error)

    def test_grids(self) -> None:
        self.good("lnc.py:halves", "--arg", A, "--grid", "2")
        self.good("lnc.py:launch", "--arg", A)
        self.good("old_grid.py:rows", "--arg", "a=bf16[512,128]", "--grid", "4,2")
        text = self.good(
            "old_grid.py:rows", "--arg", "a=bf16[256,128]", "--grid", "nc(2),2", "--explain"
        )
        self.assertIn("grid 2, 2, 2 cores", text)
        self.assertIn("neuronxcc.nki", text)

    def test_explain_needs_no_output(self) -> None:
        done = trn_trace(
            UNTIDY / "3d.add.v2.py:add", "--arg", A, "--arg", "b=bf16[128,64]", "--explain"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("API           nki", "stood in for  torch", "calls:", "loops kept rolled: 0"):
            self.assertIn(text, done.stdout)
        self.assertRegex(done.stdout, r"\b3 nisa\.dma_copy")

    def test_explain_counts_the_loads_that_are_left_out(self) -> None:
        given = ["--arg", "lhsT=fp32[1024,128]", "--arg", "rhs=fp32[1024,1024]", "--explain"]
        tiled = f"{ROOT / 'traces' / 'kernels' / 'matmul.py'}:tiled"
        self.assertIn("loads left out: 8\n", trn_trace(tiled, *given).stdout)
        given += ["--option", "reuse_within_bytes=0"]
        self.assertIn("loads left out: 0\n", trn_trace(tiled, *given).stdout)

    def test_list(self) -> None:
        done = trn_trace(UNTIDY / "under_if.py", "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("plain(a, **kwargs)  line 22  (not decorated)", done.stdout)
        self.assertIn("shown(a)  line 17\n", done.stdout)
        self.assertIn("maker(n)  line 37  (makes a kernel)\n", done.stdout)

    def test_what_does_not_fit_is_exit_4(self) -> None:
        error = self.bad("too_large.py:psum", "--arg", A, code=4)
        self.assertRegex(error, r"too_large\.py:\d+.*psum")
        error = self.bad("too_large.py:spills", "--arg", A, "--no-spill", code=4)
        self.assertRegex(error, r"too_large\.py:\d+.*sbuf")
        self.good("too_large.py:spills", "--arg", A)

    def test_it_starts_quickly(self) -> None:
        best = min(self.elapsed("--version") for _ in range(3))
        self.assertLess(best, 0.3)

    def elapsed(self, *args: str) -> float:
        started = time.perf_counter()
        trn_trace(*args)
        return time.perf_counter() - started


if __name__ == "__main__":
    unittest.main()
