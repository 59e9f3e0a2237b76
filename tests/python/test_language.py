"""nki.language, the packages that kernels import, and every name that public kernels use."""

from __future__ import annotations

import builtins
import csv
import dataclasses
import importlib
import math
import sys
import types
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import recorder
from recorder import Recorder, tracing
from trace_support import NO_NATIVE, ROOT

NAMES = Path(__file__).parent / "data" / "nki_names.csv"
PREFIXES = {
    "nl": "language",
    "nisa": "isa",
    "ncc": "compiler",
    "nt": "typing",
    "ncoll": "collectives",
    "nccl": "nccl",
}
# What exists and is refused by name when a kernel uses it, because the hardware lacks it.
LATER = {"nisa.nc_matmul_mx", "nisa.quantize_mx"}
LATER_TYPES = {"nl.float8_e4m3fn_x4", "nl.float8_e5m2_x4", "nl.float4_e2m1fn_x4"}

if recorder.NATIVE:
    from trnsim import loops, nisa, nisa_old, nl, session, tensor

    SHADOW = str(ROOT / "isa" / "python" / "shadow")
    if SHADOW not in sys.path:
        sys.path.insert(0, SHADOW)


def names() -> list[dict[str, str]]:
    with NAMES.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def find(package: str, name: str) -> Any:
    """The object of a dotted name, by imports and attributes."""
    head, *rest = name.split(".")
    path = [package] + ([PREFIXES[head]] if head in PREFIXES else [])
    found = importlib.import_module(".".join(path))
    for at, part in enumerate(rest):
        try:
            found = getattr(found, part)
        except AttributeError:
            if not hasattr(found, "__path__"):
                raise
            found = importlib.import_module(f"{found.__name__}.{part}")
    return found


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class Names(unittest.TestCase):
    """Each name that public kernels use at least twice is there, in the generation that uses it."""

    def test_all_names_are_supported_or_refused_by_name(self) -> None:
        checked = 0
        for row in names():
            if row["kind"] == "method":
                continue
            name = row["name"]
            old, new = int(row["samples_old"]), int(row["library"]) + int(row["library_test"])
            packages = (["neuronxcc.nki"] if old else []) + (["nki"] if new else [])
            if not packages:
                packages = ["neuronxcc.nki"] if "nccl" not in name else ["nki"]
            for package in packages:
                with self.subTest(name=name, package=package):
                    found = find(package, name)
                    if name in LATER:
                        with tracing(), self.assertRaisesRegex(ValueError, "needs trn3"):
                            found()
                    elif name in LATER_TYPES:
                        with tracing(), self.assertRaisesRegex(ValueError, "needs trn3"):
                            nl.ndarray((128, 8), found)
                    else:
                        self.assertFalse(
                            (getattr(found, "__doc__", "") or "").startswith("Refused"), name
                        )
                    checked += 1
        self.assertGreater(checked, 190)

    def test_all_methods_are_there(self) -> None:
        methods = [row["name"] for row in names() if row["kind"] == "method"]
        self.assertGreater(len(methods), 15)
        for name in methods:
            with self.subTest(name=name):
                self.assertTrue(hasattr(tensor.Tensor, name))

    def test_skipping_counts_what_is_refused(self) -> None:
        with tracing(skip_unsupported=True):
            from trnsim import nisa

            nisa.nc_matmul_mx(1, 2, 3)
            nisa.nc_matmul_mx(1, 2, 3)
            self.assertEqual(session.current().skipped["nisa.nc_matmul_mx"], 2)

    def test_unknown_names_offer_near_ones(self) -> None:
        language = importlib.import_module("nki.language")
        with self.assertRaisesRegex(AttributeError, "did you mean multiply"):
            language.multipy
        self.assertFalse(hasattr(language, "no_such_thing"))

    def test_imports_of_both_generations(self) -> None:
        text = """
import nki, nki.isa as nisa, nki.language as nl, nki.collectives as ncoll, nki.compiler as ncc
import nki.typing as nt
from nki.language import par_dim
import neuronxcc.nki as old
import neuronxcc.nki.isa as old_isa
import neuronxcc.nki.language as old_nl
import neuronxcc.nki.typing as old_nt
import neuronxcc.nki.compiler as old_ncc
from neuronxcc.nki import benchmark, baremetal, simulate_kernel
from neuronxcc.nki.language import par_dim, tile_size
from neuronxcc.nki.language.constants import sizeinbytes
from neuronxcc.nki._private import private_api
from neuronxcc.nki.compiler.backends.neuron.indexing import TileIndex
from neuronxcc.nki.isa.constants import dma_engine, engine, matmul_perf_mode
from neuronxcc.nki.nccl import collective_permute
def f(a: nt.tensor, b: nt.tensor[128, 512], c: nt.mutable_tensor, d: nki.dtype | None): ...
assert isinstance(nl.float32, nki.dtype)
assert sizeinbytes(old_nl.bfloat16) == 2
"""
        exec(compile(text, "kernel.py", "exec"), {})


class Dtypes(unittest.TestCase):
    def test_they_equal_their_names_and_numpy(self) -> None:
        from trnsim import dtypes as d

        self.assertEqual(d.float32, "float32")
        self.assertEqual(d.float32, np.float32)
        self.assertEqual(np.float32, d.float32)
        self.assertEqual(d.bfloat16, "bf16")
        self.assertNotEqual(d.bfloat16, d.float16)
        self.assertNotEqual(d.float32, None)
        self.assertNotEqual(d.float8_e4m3, d.float8_e4m3fn)
        self.assertEqual(np.dtype(d.int8).itemsize, 1)
        self.assertIn(d.int32, {d.int32: 1})
        self.assertEqual(d.dtype_of(np.dtype("uint16")), d.uint16)
        self.assertEqual(d.dtype_of("fp8_e5m2"), d.float8_e5m2)
        self.assertEqual(d.dtype_of(type("bfloat16", (), {})), d.bfloat16)
        self.assertEqual(d.float32(3), 3.0)
        self.assertEqual(d.fp32.min, -np.finfo(np.float32).max)
        self.assertAlmostEqual(d.bfp16.max, 3.3895314e38, delta=1e32)
        self.assertEqual(d.finfo(np.float16).max, 65504.0)
        with self.assertRaisesRegex(ValueError, "expected one of float32"):
            d.dtype_of("float64")
        with self.assertRaisesRegex(ValueError, "needs trn3"):
            d.dtype_of("float8_e8m0fnu")

    def test_results_of_two_types(self) -> None:
        from trnsim import dtypes as d

        self.assertIs(d.promote(d.bfloat16, d.float32), d.float32)
        self.assertIs(d.promote(d.bfloat16, d.float16), d.float32)
        self.assertIs(d.promote(d.int32, d.bfloat16), d.bfloat16)
        self.assertIs(d.promote(d.int8, d.int32), d.int32)


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class Language(unittest.TestCase):
    def setUp(self) -> None:
        enter = tracing("old")
        self.made: Recorder = enter.__enter__()
        self.addCleanup(enter.__exit__, None, None, None)
        self.x = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
        self.y = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
        self.hbm = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)

    def names(self) -> list[str]:
        tensor.flush()
        made = self.made.names
        self.made.made.clear()
        return made

    def test_tiles_of_different_ranks_meet_by_partitions(self) -> None:
        with tracing("old"):
            rows = nl.ndarray((8, 64), buffer=nl.sbuf)
            column = nl.ndarray((64,), buffer=nl.sbuf)
            with self.assertRaisesRegex(ValueError, r"add: y: .*\[1, 64\] .*, got \[64\]"):
                nl.add(rows[3, :], column)
            self.assertEqual(nl.add(rows, nl.ndarray((8,), buffer=nl.sbuf)).shape, (8, 64))

    def test_memories_are_known_without_an_import(self) -> None:
        """As the first compiler of the newer API had them: whole, or cut by partitions and bytes."""
        text = """
whole = sbuf.view(dtype="float32", shape=(128, 16))
part = sbuf[32:64, 1024:2048][:, 512:].view("bfloat16", (32, 256))
bank = psum[:, 2048:4096].view("float32", (128, 512))
out = hbm.view(dtype="float32", shape=(128, 16))
size = (sbuf[0:32, 0:128].start, sbuf[0:32, 0:128].size)
tile = nl.ndarray((8, 8), dtype="float32", buffer=psum)
"""
        scope: dict[str, Any] = {"nl": nl}
        with tracing():
            exec(text, scope)
            for wrong, message in (
                (
                    'sbuf[0:32, 0:16].view("float32", (64, 4))',
                    "at most 32 partitions and 16 bytes",
                ),
                (
                    'sbuf[0:32, 0:16].view("float32", (32, 5))',
                    "at most 32 partitions and 16 bytes",
                ),
                (
                    "sbuf[0:130, 0:512]",
                    r"partitions: expected bounds within 0:128, got 0:130",
                ),
                ("sbuf[0:32, 0:512:2]", "a slice without a step"),
                ("hbm[0:4, 0:4]", "expected sbuf or psum, got hbm"),
            ):
                with self.assertRaisesRegex(ValueError, message):
                    eval(wrong)
        memories = [scope[name].memory for name in ("whole", "part", "bank", "out", "tile")]
        self.assertEqual(memories, ["sbuf", "sbuf", "psum", "hbm", "psum"])
        self.assertEqual((scope["part"].shape, scope["part"].partition), ((32, 256), 32))
        self.assertEqual(scope["size"], ((0, 0), (32, 128)))
        self.assertFalse(hasattr(builtins, "sbuf"))
        with tracing("old"), self.assertRaises(NameError):
            eval("sbuf")

    def test_binary_operations(self) -> None:
        for name in (
            "add subtract multiply divide maximum minimum power mod fmod abs_max abs_min equal "
            "not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
        ).split():
            with self.subTest(name=name):
                op = getattr(nl, name)
                self.assertEqual(op(self.x, self.y).shape, (128, 512))
                self.assertEqual(op(self.x, 2.0, dtype=nl.bfloat16).dtype, nl.bfloat16)
                self.assertEqual(self.names(), ["TENSOR_TENSOR", "TENSOR_SCALAR"])
        i = nl.ndarray((128, 512), nl.int32, buffer=nl.sbuf)
        for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift".split():
            with self.subTest(name=name):
                getattr(nl, name)(i, i)
                getattr(nl, name)(i, 3)
                self.assertEqual(self.names(), ["TENSOR_TENSOR", "TENSOR_SCALAR"])

    def test_one_value_per_partition_broadcasts_over_the_rest(self) -> None:
        x = nl.ndarray((64, 128), nl.float32, buffer=nl.sbuf)
        biases = nl.ndarray((8, 64), nl.float32, buffer=nl.shared_hbm)
        self.assertEqual(nl.add(x, nl.load(biases[3, :])).shape, (64, 128))
        self.assertEqual(self.names(), ["dma_copy", "TENSOR_SCALAR"])
        self.assertEqual((nl.sum(x, axis=1, keepdims=True)[:, None] * x).shape, (64, 128))
        self.assertEqual(self.names(), ["TENSOR_REDUCE", "TENSOR_SCALAR"])

    def test_an_element_is_loaded_as_a_tile_of_one(self) -> None:
        bits = nl.ndarray((4, 4), nl.uint32, buffer=nl.shared_hbm)
        rows = nl.ndarray((128, 8), nl.uint32, buffer=nl.sbuf)
        one = nl.load(bits[2][1])
        self.assertEqual(one.shape, (1, 1))
        self.assertEqual(nl.bitwise_and(rows, nl.invert(one)).shape, (128, 8))

    def test_partitions_that_engines_do_not_reach_are_moved_by_dma(self) -> None:
        row = nl.ndarray((1, 64), nl.float32, buffer=nl.sbuf)
        self.x[5:6, 0:64] = nl.exp(row)
        self.assertEqual(self.names(), ["activation", "dma_copy"])
        nl.exp(self.x[7:8, :])
        self.assertEqual(self.names(), ["dma_copy", "activation"])
        self.x[96:97, 0:64] = nl.exp(row)
        self.assertEqual(self.names(), ["activation"])

    def test_functions(self) -> None:
        for name in (
            "exp log sqrt rsqrt square abs sign relu tanh sigmoid gelu gelu_apprx_tanh "
            "gelu_apprx_sigmoid gelu_dx gelu_apprx_sigmoid_dx silu silu_dx softplus mish erf "
            "erf_dx arctan"
        ).split():
            with self.subTest(name=name):
                getattr(nl, name)(self.x)
                self.assertEqual(self.names(), ["activation"])
        nl.reciprocal(self.x)
        nl.negative(self.x)
        nl.logical_not(self.x)
        self.assertEqual(self.names(), ["RECIPROCAL", "TENSOR_SCALAR", "TENSOR_SCALAR"])
        for name, count in (("floor", 2), ("ceil", 2), ("trunc", 4)):
            getattr(nl, name)(self.x)
            self.assertEqual(len(self.names()), count)
        for name in ("sin", "cos"):
            getattr(nl, name)(self.x)
            self.assertEqual(self.names(), ["TENSOR_SCALAR", "TENSOR_SCALAR", "activation"])
        nl.tan(self.x)
        self.assertEqual(self.names().count("activation"), 2)

    def test_rsqrt_runs_on_gpsimd_in_the_newer_generation(self) -> None:
        with tracing("new") as made:
            nl.rsqrt(nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf))
            with self.assertRaisesRegex(ValueError, "nl.rsqrt: x: .*GpSimd.*got psum"):
                nl.rsqrt(nl.ndarray((128, 512), nl.float32, buffer=nl.psum))
        self.assertEqual((made.names, made.made[0].engine), (["TENSOR_SCALAR"], "gpsimd"))

    def test_functions_are_operations_of_instructions(self) -> None:
        from trnsim import ops

        self.assertEqual(ops.alu_of("c", "op", nl.add), "ADD")
        self.assertEqual(ops.alu_of("c", "op", np.max), "MAX")
        self.assertEqual(ops.alu_of("c", "op", np.left_shift), "SHIFT_LEFT")
        self.assertEqual(ops.alu_of("c", "op", "multiply"), "MULTIPLY")
        self.assertEqual(ops.activation_of("c", "op", nl.gelu), "GELU")
        self.assertEqual(ops.activation_of("c", "op", np.exp), "EXP")
        self.assertEqual(ops.activation_of("c", "op", nl.copy), "COPY")

    def test_broadcasting(self) -> None:
        one = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
        nl.add(self.x, one)
        self.assertEqual(self.names(), ["TENSOR_SCALAR"])
        nl.subtract(one, self.x)
        tensor.flush()
        self.assertTrue(self.made.last("TENSOR_SCALAR").args[6])  # one - x
        self.names()
        half = nl.ndarray((128, 1), nl.bfloat16, buffer=nl.sbuf)
        nl.multiply(self.x, half)
        self.assertEqual(self.names(), ["TENSOR_TENSOR"])
        row = nl.ndarray((1, 512), nl.float32, buffer=nl.sbuf)
        wide = row.broadcast_to((128, 512))
        self.assertEqual(wide.shape, (128, 512))
        self.assertEqual(self.names(), ["MEMSET", "matmul", "copy"])
        nl.add(self.x, row)
        self.assertEqual(self.names()[-1], "TENSOR_TENSOR")
        self.assertEqual(self.hbm[0:1].broadcast_to((64, 512)).shape, (64, 512))
        self.assertEqual(self.names(), [])

    def test_operators(self) -> None:
        z = (self.x + 1.0) * self.y - self.x / 2.0
        z = -z
        self.assertEqual(z.shape, (128, 512))
        self.assertEqual(len(self.names()), 5)
        z = 1.0 - self.x
        self.assertTrue(self.made.made == [] and z.shape == (128, 512))
        self.assertEqual(self.names(), ["TENSOR_SCALAR"])
        self.x += self.y
        self.x *= 2.0
        tensor.flush()
        self.assertEqual(self.made.made[0].args[2].storage, self.x.view_.storage)
        self.assertEqual(self.names(), ["TENSOR_TENSOR", "TENSOR_SCALAR"])

    def test_reductions(self) -> None:
        for name in "sum max min prod all any".split():
            made = getattr(nl, name)(self.x, axis=1)
            self.assertEqual(made.shape, (128, 1))
            self.assertEqual(self.names(), ["TENSOR_REDUCE"])
        nl.mean(self.x, axis=[1])
        self.assertEqual(self.names(), ["TENSOR_REDUCE", "TENSOR_SCALAR"])
        self.assertEqual(nl.var(self.x, axis=1).shape, (128, 1))
        self.assertEqual(self.names(), ["BN_STATS", "BN_AGGR"])
        nl.softmax(self.x, axis=1)
        self.assertEqual(
            self.names(), ["TENSOR_REDUCE", "activation", "RECIPROCAL", "TENSOR_SCALAR"]
        )
        nl.rms_norm(self.x, self.y, axis=1, n=512)
        self.assertEqual(
            self.names(), ["activation", "activation", "TENSOR_SCALAR", "TENSOR_TENSOR"]
        )

    def test_selection(self) -> None:
        flags = self.x > self.y
        self.assertEqual(flags.dtype, nl.uint8)
        nl.where(flags, self.x, 0.0)
        self.assertEqual(self.names(), ["TENSOR_TENSOR", "SELECT_REDUCE"])
        nl.where(flags, self.x, self.y)
        self.assertEqual(self.names(), ["copy", "TENSOR_COPY_PREDICATED"])
        i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
        nl.where(i >= j, self.x, -1.0)
        self.assertEqual(self.names(), ["AFFINE_SELECT"])
        self.assertEqual(nl.dropout(self.x, 0.2).shape, (128, 512))

    def test_products_and_transposes(self) -> None:
        a = nl.ndarray((128, 64), nl.bfloat16, buffer=nl.sbuf)
        b = nl.ndarray((128, 512), nl.bfloat16, buffer=nl.sbuf)
        c = nl.ndarray((64, 512), nl.bfloat16, buffer=nl.sbuf)
        self.assertEqual(nl.matmul(a, b, transpose_x=True).shape, (64, 512))
        self.assertEqual(self.names(), ["matmul"])
        self.assertEqual(nl.matmul(a, c).shape, (128, 512))
        self.assertEqual(self.names(), ["transpose", "copy", "matmul"])
        self.assertEqual(nl.transpose(a).shape, (64, 128))
        self.assertEqual(self.names(), ["transpose"])

    def test_making_tensors(self) -> None:
        self.assertEqual(nl.zeros((128, 4), nl.int32, buffer=nl.sbuf).dtype, nl.int32)
        nl.ones((128, 4), nl.bfloat16)
        nl.full((128, 4), 3.0, np.float32)
        nl.zeros_like(self.x)
        self.assertEqual(self.names(), ["MEMSET"] * 4)
        self.assertEqual(nl.empty_like(self.x).memory, "sbuf")
        constant = nl.shared_constant(np.zeros((128, 128), np.float32))
        self.assertEqual((constant.memory, constant.shape), ("hbm", (128, 128)))
        eye = nl.shared_identity_matrix(128, nl.bfloat16)
        self.assertEqual((eye.memory, eye.shape, eye.dtype), ("sbuf", (128, 128), nl.bfloat16))
        self.assertEqual(self.names(), ["dma_copy"])
        nl.zeros((256, 512), nl.float32, buffer=nl.shared_hbm)
        self.assertIn("dma_copy", self.names())
        nl.rand((128, 4))
        nl.random_seed(3)
        self.assertEqual(self.names(), ["RNG", "TENSOR_SCALAR", "MEMSET", "SET_RNG_SEED"])

    def test_loads_and_stores(self) -> None:
        self.assertEqual(nl.load(self.hbm, dtype=nl.bfloat16).dtype, nl.bfloat16)
        nl.store(self.hbm, self.x)
        nl.store(self.hbm[0:64], value=self.x[0:64])
        self.assertEqual(self.names(), ["dma_copy"] * 3)
        product = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        nl.store(self.hbm, product)
        self.assertEqual(self.names(), ["copy", "dma_copy"])
        t = nl.ndarray((512, 128), nl.bfloat16, buffer=nl.shared_hbm)
        self.assertEqual(nl.load_transpose2d(t).shape, (128, 512))
        self.assertEqual(self.names(), ["dma_transpose"])
        f = nl.ndarray((256, 128), nl.float32, buffer=nl.shared_hbm)
        self.assertEqual(nl.load_transpose2d(f).shape, (128, 256))
        self.assertEqual(self.names(), ["dma_copy", "transpose", "copy"] * 2)
        with self.assertRaisesRegex(ValueError, "nl.load: src: expected a tensor in hbm, got sbuf"):
            nl.load(self.x)
        with self.assertRaisesRegex(ValueError, "nl.add: x: .*load it first.*got hbm"):
            nl.add(self.hbm, 1.0)
        self.assertEqual(nl.static_cast(3, np.float32), 3.0)
        self.assertEqual(nl.static_cast(self.x, nl.bfloat16).dtype, nl.bfloat16)

    def test_loop_reduce(self) -> None:
        for _ in nl.affine_range(2):
            for k in nl.affine_range(3):
                total = nl.loop_reduce(nl.exp(self.x), op=np.add, loop_indices=[k])
            nl.store(self.hbm, total)
        one = ["activation"] + ["activation", "TENSOR_TENSOR"] * 2 + ["dma_copy"]
        self.assertEqual(self.names(), one * 2)
        a = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.sbuf)
        for k in nl.affine_range(3):
            total = nl.loop_reduce(nisa_old.nc_matmul(a, a), op=np.add, loop_indices=[k])
        self.assertEqual(total.memory, "psum")
        self.assertEqual(self.names(), ["matmul"] * 3)

    def test_ranges_are_ranges(self) -> None:
        self.assertEqual(list(nl.affine_range(3)), [0, 1, 2])
        self.assertEqual(list(nl.sequential_range(1, 7, 2)), [1, 3, 5])
        self.assertEqual(len(nl.static_range(5)), 5)
        self.assertEqual(type(next(iter(nl.affine_range(3))) * 2), int)

    def test_device_loops(self) -> None:
        register = session.current().builder.register(4)
        for _ in nl.affine_range(tensor.Register(register)):
            nl.copy(self.x)
        self.assertEqual(self.names(), ["begin_loop", "copy", "end_loop"])
        nl.while_loop(tensor.Register(register), lambda r: r)
        self.assertEqual(self.names(), ["begin_loop", "end_loop"])
        condition = tensor.Register(register)
        while condition:
            nl.copy(self.x)
        self.assertEqual(self.names(), ["begin_loop", "copy", "end_loop"])

    def test_scheduling_and_printing(self) -> None:
        with nl.no_reorder():
            nl.copy(self.x)
        self.assertEqual(self.names(), ["fence", "copy", "fence"])
        nl.device_print("x", self.x)
        self.assertEqual(session.current().calls["nl.device_print"], 1)
        from trnsim import compiler

        kernel = lambda: 3  # noqa: E731
        for decorate in (
            compiler.skip_middle_end_transformations,
            compiler.enable_stack_allocator,
            compiler.no_reorder,
        ):
            self.assertIs(decorate(kernel), kernel)
        self.assertEqual(compiler.enable_stack_allocator(log_level=3)(kernel), kernel)
        self.assertEqual(compiler.force_auto_alloc(kernel)(), 3)

    def test_contents_are_refused_by_name(self) -> None:
        for what in (float, int, np.asarray, lambda t: [0][t], lambda t: t.item()):
            with self.assertRaisesRegex(ValueError, "tracing has no contents"):
                what(self.x)
        with self.assertRaisesRegex(ValueError, "tracing has no contents"):
            bool(self.x[0:1, 0:1])

    def test_a_comparison_of_tiles_has_no_truth(self) -> None:
        for choose in (
            lambda: max(self.x, 0.0),
            lambda: min(self.x, self.y),
            lambda: max(self.x, np.float32(0)),
            lambda: 1 if self.x == 0 else 2,
        ):
            with self.assertRaisesRegex(ValueError, "bool.. of a comparison of tiles .*nl.maximum"):
                choose()
        tensor.flush()
        self.names()
        self.assertIn(self.y, [self.x, self.y])  # asks whether it is the same tile, for nothing
        self.assertFalse(self.x == self.y)
        self.assertTrue(self.x != self.y)
        tensor.flush()
        self.assertEqual(self.names(), [])

    def test_numpy_and_methods_of_arrays_are_told_what_nl_has(self) -> None:
        self.assertEqual((np.float32(2) * self.x).shape, self.x.shape)
        self.assertEqual((2**self.x).shape, (+self.x).shape)
        for wanted, wrong in (
            (r"np.exp: expected arrays or numbers, got a tile \(use nl.exp\)", np.exp),
            (r"got an array \(nl.load\(nl.shared_constant", lambda t: t + np.ones((128, 512))),
        ):
            with self.assertRaisesRegex(ValueError, wanted):
                wrong(self.x)
        with self.assertRaisesRegex(AttributeError, "no attribute 'mean'; nl.mean is a function"):
            self.x.mean(axis=1)
        with self.assertRaisesRegex(
            ValueError, r"nl.store: value: .* broadcasts to \[128, 512\], got \[64, 512\]"
        ):
            nl.store(self.hbm, self.x[0:64])

    def test_arguments_of_another_kind_are_refused_by_name(self) -> None:
        t, hbm = self.x, self.hbm
        for wanted, call in (
            (
                "nisa.tensor_reduce: axis: .* within 1..1, got 2",
                lambda: nisa_old.tensor_reduce("add", t, 2),
            ),
            ("nl.max: axis: .*, got -2", lambda: nl.max(t, axis=-2)),
            ("nl.mean: axis: expected an int, got 'x'", lambda: nl.mean(t, axis="x")),
            ("nl.multiply: y: expected a tile .nisa.iota", lambda: t * nl.arange(512)[None, :]),
            ("nl.less: y: expected a tile .nisa.iota", lambda: nl.arange(512)[None, :] > t),
            ("nl.ndarray: shape: expected a tuple of ints, got None", lambda: nl.ndarray(None)),
            (
                "nl.ndarray: address: expected .partition, byte",
                lambda: nl.ndarray((4, 4), address=3),
            ),
            ("nl.ndarray: name: expected text, got 3", lambda: nl.ndarray((4, 4), name=3)),
            ("nl.broadcast_to: shape: expected a tuple", lambda: nl.broadcast_to(t, 4)),
            ("nl.log: math domain error, of -1", lambda: nl.log(-1)),
            ("dst: expected a tile, got 3", lambda: nisa_old.tensor_copy(t, dst=3)),
            ("nisa.reciprocal: dst: expected a tensor", lambda: nisa.reciprocal(None, t)),
            ("pattern: expected up to four .step, count", lambda: nisa.iota(t, [1, 512])),
            ("nisa.topk: k: expected at least 1, got -1", lambda: nisa.topk(t, t, t, -1)),
            ("nisa.dma_compute: srcs: expected 1 to 16", lambda: nisa.dma_compute(hbm, None)),
            (
                "nisa.dma_copy: dge_mode: expected a member",
                lambda: nisa.dma_copy(t, hbm, dge_mode=[]),
            ),
        ):
            with self.subTest(wanted), self.assertRaisesRegex(ValueError, wanted):
                call()

    def test_masked_statistics_have_the_whole_shape(self) -> None:
        rows = nl.arange(128)[:, None] < 72
        for made in (nl.var(self.x, axis=1, mask=rows), nl.mean(self.x, axis=1, mask=rows)):
            self.assertEqual(made.shape, (128, 1))
        self.assertEqual(nl.softmax(self.x, axis=1, mask=rows).shape, self.x.shape)
        tensor.flush()
        self.names()
        nothing = nl.arange(128)[:, None] >= 128
        for function in (nl.var, nl.softmax):
            function(self.x, axis=1, mask=nothing)
        tensor.flush()
        self.assertEqual(self.names(), [])

    def test_a_tensor_that_is_given_is_true(self) -> None:
        self.assertTrue(bool(self.x))

    def test_blocks_that_are_more_than_sbuf_are_tiles_of_their_own(self) -> None:
        big = nl.zeros((18, nl.par_dim(128), 8192), nl.bfloat16, buffer=nl.sbuf)
        self.assertEqual((big.shape, self.names()), ((18, 128, 8192), ["MEMSET"] * 18))
        self.assertNotEqual(big[0].view_.storage, big[1].view_.storage)
        for n in range(18):
            big[n] = nl.exp(big[n])
        self.assertEqual(self.names(), ["activation"] * 18)
        fits = nl.ndarray((4, nl.par_dim(128), 8192), nl.bfloat16, buffer=nl.sbuf)
        self.assertEqual(fits[0].view_.storage, fits[1].view_.storage)

    def test_allocators_place_tiles(self) -> None:
        from trnsim import compiler as ncc

        one = nl.ndarray(
            (4, nl.par_dim(128), 512), nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=4096)
        )
        self.assertEqual(one[0].view_.storage, one[3].view_.storage)
        two = nl.ndarray(
            (4, nl.par_dim(128), 512),
            nl.float32,
            buffer=ncc.sbuf.mod_alloc(base_addr=8192, num_free_tiles=(2,)),
        )
        self.assertEqual(two[0].view_.storage, two[2].view_.storage)
        self.assertNotEqual(two[0].view_.storage, two[1].view_.storage)
        self.assertEqual(two[1, 0:128, 0:256].shape, (128, 256))
        row = nl.ndarray(
            (4, nl.par_dim(128), 512),
            nl.float32,
            buffer=ncc.sbuf.mod_alloc(base_addr=65536, num_free_tiles=(4,)),
        )
        self.assertEqual(row[3].offset, 3 * 512)  # one tensor, since the blocks are in a row
        bank = nl.ndarray(
            (2, nl.par_dim(128), 512),
            nl.float32,
            buffer=ncc.psum.alloc(lambda idx, pdim, fdim: (idx[0], 0, 0)),
        )
        self.assertEqual(bank[1].memory, "psum")
        with self.assertRaisesRegex(ValueError, "block: expected 0..3, got 4"):
            two[4]
        fixed = nl.ndarray((128, 16), nl.float32, buffer=nl.sbuf, address=(0, 131072))
        self.assertEqual(fixed.memory, "sbuf")

    def test_grids(self) -> None:
        with tracing("old", grid=(4, 2), program_ids=(3, 1)):
            self.assertEqual((nl.program_id(0), nl.program_id(axis=1)), (3, 1))
            self.assertEqual((nl.num_programs(0), nl.num_programs(axes=[0, 1])), (4, 8))
            self.assertEqual(nl.program_ndim(), 2)
        self.assertEqual((nl.program_id(0), nl.num_programs(), nl.program_ndim()), (0, 1, 0))

    def test_plain_classes(self) -> None:
        class Config(nl.NKIObject):
            rows: int
            scale: float = 0.5
            names = ["a"]
            dtype = nl.bfloat16

            def area(self) -> float:
                return self.rows * self.scale

        class Wider(Config):
            extra: int = 3

        config = Wider(rows=4)
        self.assertEqual((config.rows, config.scale, config.extra, config.area()), (4, 0.5, 3, 2.0))
        self.assertEqual(Config(1, dtype=nl.float32).dtype, nl.float32)
        self.assertEqual(config, Wider(4, 0.5))
        config.scale = 2.0
        config.names.append("b")
        self.assertEqual(Wider(5, 1.0).names, ["a"])
        self.assertIsNone(Wider().rows)
        with self.assertRaisesRegex(ValueError, "got colour"):
            Wider(rows=1, colour=2)

    def test_a_dataclass_has_the_fields_without_annotation(self) -> None:
        @dataclasses.dataclass
        class Section(nl.NKIObject):
            rows: int
            offset = None
            names = ["a"]

        @dataclasses.dataclass
        class Sizes(nl.NKIObject):
            columns: int
            tiles: int  # not given by the kernel, but set below

            def __post_init__(self) -> None:
                self.tiles = self.columns // 128

        self.assertEqual(Sizes(columns=512).tiles, 4)
        section = Section(4, offset=128)
        self.assertEqual((section.rows, section.offset, section.names), (4, 128, ["a"]))
        self.assertIsNone(Section(rows=5).offset)

    def test_math_is_known_without_an_import(self) -> None:
        def tiles(n: int) -> int:
            return math.ceil(n / 128)

        bare = types.FunctionType(tiles.__code__, {"__builtins__": builtins})
        self.assertEqual(bare(300), 3)

    def test_tile_sizes(self) -> None:
        self.assertEqual(nl.tile_size.pmax, 128)
        self.assertEqual(nl.tile_size.gemm_moving_fmax, 512)
        self.assertEqual(nl.tile_size.psum_bank_fmax_bytes, 2048)

    def test_buffers(self) -> None:
        self.assertEqual(self.x.buffer, nl.sbuf)
        self.assertNotEqual(self.x.buffer, nl.psum)
        self.assertEqual(self.hbm.buffer, nl.shared_hbm)
        self.assertEqual(nl.ndarray((128, 4), nl.float32, buffer="psum").memory, "psum")
        with self.assertRaisesRegex(ValueError, "buffer: expected nl.sbuf"):
            nl.ndarray((128, 4), nl.float32, buffer="dram")

    def test_numbers_and_expressions_stay_what_they_are(self) -> None:
        self.assertEqual(nl.maximum(3, 4), 4)
        self.assertEqual(nl.sqrt(16.0), 4.0)
        self.assertTrue(math.isclose(nl.sin(1.0), math.sin(1.0)))
        i = nl.arange(4)
        self.assertEqual(list(nl.add(i, 2).array()), [2, 3, 4, 5])


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class Collectives(unittest.TestCase):
    def test_groups_and_limits(self) -> None:
        from trnsim import collectives as ncoll

        with tracing() as made:
            a = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
            b = nl.ndarray((512, 512), nl.float32, buffer=nl.shared_hbm)
            group = ncoll.ReplicaGroup([[0, 1, 2, 3]])
            ncoll.all_gather(srcs=[a], dsts=[b], replica_group=group, collective_dim=0)
            ncoll.all_reduce(srcs=[a], dsts=[a], replica_group=group, op=nl.add)
            ncoll.reduce_scatter([b], [a], group, 0, nl.add)
            ncoll.all_to_all([b], [b], group, 0)
            ncoll.collective_permute([a], [a], [[0, 1], [1, 2], [2, 3], [3, 0]])
            ncoll.collective_permute_implicit([[a]], [[a]], group)
            rank = ncoll.collective_permute_implicit_current_processing_rank_id(0, 0, group)
            self.assertIsInstance(rank, tensor.Register)
            self.assertIsInstance(ncoll.rank_id(), tensor.Register)
            self.assertEqual(
                made.names,
                [
                    "ALL_GATHER",
                    "ALL_REDUCE",
                    "REDUCE_SCATTER",
                    "ALL_TO_ALL",
                    "COLLECTIVE_PERMUTE",
                    "COLLECTIVE_PERMUTE_IMPLICIT",
                    "COLLECTIVE_PERMUTE_IMPLICIT_CURRENT_PROCESSING_RANK_ID",
                    "RANK_ID",
                ],
            )
            with self.assertRaisesRegex(ValueError, "op: expected add, maximum or minimum"):
                ncoll.all_reduce([a], [a], group, nl.multiply)
            with self.assertRaisesRegex(ValueError, "collective_dim: expected 0 in hbm, got 1"):
                ncoll.all_gather([a], [b], group, 1)
        made_groups = ncoll.ReplicaGroup.from_partition_op(8, ncoll.rg_partition_op.mod, 4)
        self.assertEqual(made_groups.groups, [[0, 4], [1, 5], [2, 6], [3, 7]])

    def test_two_cores(self) -> None:
        from trnsim import nisa

        with tracing(grid=(2,), program_ids=(1,), core=1, cores=2) as made:
            a = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            b = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            h = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
            nisa.sendrecv(src=a, dst=b, send_to_rank=0, recv_from_rank=0, pipe_id=0)
            nisa.core_barrier(h, (0, 1))
            nl.all_reduce(a, np.add, program_axes=[0])
        self.assertEqual(made.names, ["sendrecv", "core_barrier", "sendrecv", "TENSOR_TENSOR"])


if __name__ == "__main__":
    unittest.main()
