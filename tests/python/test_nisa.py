"""nki.isa of both generations: what is emitted, and what is refused."""

from __future__ import annotations

import types
import unittest
from typing import Any

import numpy as np
import recorder
from recorder import Recorder, tracing
from trace_support import NO_NATIVE

if recorder.NATIVE:
    from trnsim import by_value, calls, enums, nisa, nisa_old, nl, tensor


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class New(unittest.TestCase):
    """dst first; each call is one instruction."""

    def setUp(self) -> None:
        self.enter = tracing()
        self.made: Recorder = self.enter.__enter__()
        self.addCleanup(self.enter.__exit__, None, None, None)
        sbuf = lambda *shape, dtype=nl.float32: nl.ndarray(shape, dtype, buffer=nl.sbuf)
        self.sbuf = sbuf
        self.a, self.b, self.d = sbuf(128, 512), sbuf(128, 512), sbuf(128, 512)
        self.one = sbuf(128, 1)
        self.psum = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        self.hbm = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)

    def last(self, name: str, engine: str | None = "") -> Any:
        made = self.made.made[-1]
        self.assertEqual(made.name, name)
        if engine != "":
            self.assertEqual(made.engine, engine)
        return made

    def test_a_call_without_dst_is_told_that_dst_comes_first(self) -> None:
        with tracing():
            tile = nl.ndarray((128, 8), buffer=nl.sbuf)
            with self.assertRaisesRegex(ValueError, r"data: .* begin with dst\), got <ufunc"):
                nisa.tensor_scalar(tile, np.multiply, 5.0, False, np.subtract, 1.0)

    def test_elementwise(self) -> None:
        nisa.tensor_tensor(self.d, self.a, self.b, nl.add)
        self.assertEqual(self.last("TENSOR_TENSOR", "vector").args[3], "ADD")
        nisa.tensor_tensor(dst=self.d, data1=self.a, data2=self.b, op=np.power)
        self.last("TENSOR_TENSOR", "gpsimd")
        i = self.sbuf(128, 512, dtype=nl.int32)
        nisa.tensor_tensor(i, i, i, op=nl.add)
        self.last("TENSOR_TENSOR", "gpsimd")
        nisa.tensor_tensor(i, i, i, op=nl.bitwise_and)
        self.last("TENSOR_TENSOR", "vector")
        nisa.tensor_tensor(self.d, self.a, self.b, nl.add, engine=nisa.engine.gpsimd)
        self.last("TENSOR_TENSOR", "gpsimd")
        nisa.tensor_scalar(self.d, self.a, nl.multiply, 2.0, False, nl.add, self.one)
        args = self.last("TENSOR_SCALAR", "vector").args
        self.assertEqual((args[2], args[3], args[4]), ("MULTIPLY", "ADD", 2.0))
        nisa.scalar_tensor_tensor(self.d, self.a, nl.multiply, self.one, nl.add, self.b)
        self.last("SCALAR_TENSOR_TENSOR", "vector")
        nisa.tensor_tensor_scan(self.d, self.a, self.b, 0.0, nl.multiply, nl.add)
        self.last("TENSOR_TENSOR_SCAN", "vector")
        nisa.tensor_scalar_reduce(self.d, self.a, nl.add, 1.0, nl.max, self.one)
        self.last("TENSOR_SCALAR_REDUCE", "vector")
        nisa.tensor_scalar_cumulative(self.d, self.a, nl.multiply, nl.add, 1.0, 0.0)
        self.last("TENSOR_SCALAR_CUMULATIVE", "vector")
        nisa.reciprocal(self.d, self.a)
        self.last("RECIPROCAL", "vector")

    def test_copies_and_fills(self) -> None:
        nisa.tensor_copy(self.d, self.a)
        self.last("copy")
        nisa.tensor_copy(self.d, self.psum, engine=nisa.scalar_engine)
        nisa.memset(self.d, 0.0)
        self.last("MEMSET")
        flags = self.sbuf(128, 512, dtype=nl.uint8)
        nisa.tensor_copy_predicated(self.d, self.a, flags)
        self.assertIsNone(self.last("TENSOR_COPY_PREDICATED").args[1])
        nisa.tensor_copy_predicated(self.d, 1.0, flags)
        self.assertIsNone(self.last("TENSOR_COPY_PREDICATED").args[0])
        nisa.select_reduce(self.d, flags, self.a, -1.0, self.one, nisa.reduce_cmd.reset_reduce)
        self.last("SELECT_REDUCE")
        nisa.iota(self.sbuf(128, 512, dtype=nl.int32), [[1, 512]], 5, 512)
        self.assertEqual(self.last("IOTA", "gpsimd").args[1], (5, 512, [(1, 512)]))
        nisa.affine_select(self.d, [[-1, 512]], 0, 1, self.a, -9.0, nl.greater_equal)
        self.last("AFFINE_SELECT", "gpsimd")
        nisa.range_select(self.d, self.a, nl.greater_equal, nl.less, self.one, self.one)
        self.last("RANGE_SELECT")
        nisa.nc_stream_shuffle(self.d, self.a, [0] * 32)
        self.last("NC_STREAM_SHUFFLE")
        nisa.dropout(self.d, self.a, 0.1)
        self.last("DROPOUT")

    def test_reductions(self) -> None:
        nisa.tensor_reduce(self.one, nl.max, self.a, axis=1, negate=True)
        self.assertEqual(self.last("TENSOR_REDUCE").args[2:], ("MAX", "X", True))
        t = self.sbuf(128, 4, 128)
        nisa.tensor_reduce(self.sbuf(128, 4), nl.add, t, axis=[2])
        nisa.tensor_reduce(self.sbuf(128, 128), nl.add, t, axis=1)
        self.assertEqual(self.last("TENSOR_REDUCE").args[0].shape, (128, 128, 4))
        nisa.tensor_reduce(self.one, nl.add, t, axis=(1, 2))
        self.assertEqual(self.last("TENSOR_REDUCE").args[3], "XY")
        nisa.tensor_partition_reduce(self.sbuf(1, 512), nl.add, self.a)
        self.last("TENSOR_PARTITION_REDUCE", "gpsimd")
        nisa.bn_stats(self.sbuf(128, 6), self.a)
        nisa.bn_aggr(self.sbuf(128, 2), self.sbuf(128, 6))
        self.last("BN_AGGR", "vector")

    def test_scalar_engine(self) -> None:
        nisa.activation(self.d, nl.exp, self.a, bias=self.one, scale=0.5)
        made = self.last("activation")
        self.assertEqual(made.args[1], "EXP")
        self.assertEqual(made.named["scale"], 0.5)
        nisa.activation(self.d, np.tanh, self.a, reduce_op=nl.add, reduce_res=self.one)
        self.assertEqual(self.last("activation").named["reduce_command"], "RESET_REDUCE")
        nisa.activation_reduce(self.d, nl.square, self.a, nl.add, self.one)
        self.assertEqual(self.last("activation").args[1], "SQUARE")

    def test_tensor_engine(self) -> None:
        k = self.sbuf(128, 128, dtype=nl.bfloat16)
        m = self.sbuf(128, 512, dtype=nl.bfloat16)
        nisa.nc_matmul(self.psum, k, m)
        self.assertIsNone(self.last("matmul").named["accumulate"])
        nisa.nc_matmul(dst=self.psum, stationary=k, moving=m, accumulate=True)
        self.assertTrue(self.last("matmul").named["accumulate"])
        turned = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.psum)
        nisa.nc_transpose(turned, k)
        self.assertEqual(self.last("transpose").args[2], "tensor")
        small = self.sbuf(32, 32)
        nisa.nc_transpose(self.sbuf(32, 32), small)
        self.assertEqual(self.last("transpose").args[2], "vector")

    def test_search_and_gather(self) -> None:
        eight = self.sbuf(128, 8)
        nisa.max8(eight, self.a)
        nisa.nc_find_index8(self.sbuf(128, 8, dtype=nl.uint32), self.a, eight)
        nisa.nc_match_replace8(self.d, self.a, eight, -1e30)
        nisa.nc_n_gather(self.d, self.a, self.sbuf(128, 512, dtype=nl.uint32))
        nisa.local_gather(
            self.sbuf(128, 64), self.a, self.sbuf(128, 4, dtype=nl.uint16), num_valid_indices=64
        )
        names = ["MAX8", "NC_FIND_INDEX8", "NC_MATCH_REPLACE8", "NC_N_GATHER", "LOCAL_GATHER"]
        self.assertEqual(self.made.names[-5:], names)
        nisa.nonzero_with_count(
            self.sbuf(128, 513, dtype=nl.int32), self.sbuf(128, 512), index_offset=1
        )
        self.last("NONZERO_WITH_COUNT", "gpsimd")

    def test_dma(self) -> None:
        nisa.dma_copy(self.d, self.hbm)
        nisa.dma_copy(dst=self.hbm, src=self.d, dge_mode=nisa.dge_mode.swdge)
        self.assertEqual(self.last("dma_copy").named["mode"], "software")
        nisa.dma_compute(self.hbm, [self.hbm, self.d], reduce_op=nl.add)
        self.last("dma_compute")
        nisa.dma_compute(self.hbm, [self.hbm, self.d], [1.0, 1.0], nl.add)
        x = nl.ndarray((512, 128), nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_transpose(self.sbuf(128, 512, dtype=nl.bfloat16), x)
        self.last("dma_transpose")

    def test_registers(self) -> None:
        r = nisa.register_alloc(5)
        nisa.register_move(r, 7)
        nisa.register_load(r, self.sbuf(1, 1, dtype=nl.int32))
        nisa.register_store(self.sbuf(1, 1, dtype=nl.int32), r)
        self.assertIsInstance(r + 1, tensor.Register)
        with self.assertRaisesRegex(ValueError, "not known while tracing"):
            range(r)

    def test_instructions_can_be_ordered(self) -> None:
        first = nisa.memset(self.d, 0.0)
        self.assertIs(nisa.memset(self.d, 1.0).depends_on(first), first)

    def refused(self, pattern: str, call: Any, *args: Any, **named: Any) -> None:
        with self.assertRaisesRegex(ValueError, pattern) as caught:
            call(*args, **named)
        self.assertIn("test_nisa.py", str(caught.exception))

    def test_limits_name_call_operand_value_and_limit(self) -> None:
        half = self.sbuf(64, 512)
        self.refused(
            r"nisa.tensor_tensor: data2: .*\[128, 512\], got \[64, 512\]",
            nisa.tensor_tensor,
            self.d,
            self.a,
            half,
            nl.add,
        )
        self.refused(
            "data2: expected sbuf.*got psum",
            nisa.tensor_tensor,
            self.d,
            self.psum,
            self.psum,
            nl.add,
        )
        self.refused(
            "integers for a bitwise", nisa.tensor_tensor, self.d, self.a, self.b, nl.bitwise_or
        )
        self.refused(
            r"nisa.tensor_copy: src: 16 partitions may start at 0, 32, 64 or 96, got 16",
            nisa.tensor_copy,
            self.sbuf(16, 512),
            self.a[16:32],
        )
        self.refused(
            "src: 64 partitions may start at 0 or 64, got 32",
            nisa.tensor_copy,
            self.sbuf(64, 512),
            self.a[32:96],
        )
        self.refused(
            "nisa.nc_matmul: dst: expected a tile in psum, got sbuf",
            nisa.nc_matmul,
            self.d,
            self.sbuf(128, 128),
            self.a,
        )
        self.refused(
            "moving: expected at most 512 elements.*got 1024",
            nisa.nc_matmul,
            self.psum,
            self.sbuf(128, 128),
            self.sbuf(128, 1024),
        )
        self.refused(
            "fp32 is not mixed",
            nisa.nc_matmul,
            self.psum,
            self.sbuf(128, 128),
            self.sbuf(128, 512, dtype=nl.bfloat16),
        )
        self.refused(
            "nisa.dma_copy: src: .*DMA does not reach PSUM", nisa.dma_copy, self.hbm, self.psum
        )
        self.refused(
            "hwdge moves raw bytes",
            nisa.dma_copy,
            self.sbuf(128, 512, dtype=nl.bfloat16),
            self.hbm,
            dge_mode=nisa.dge_mode.hwdge,
        )
        self.refused(
            "add on the Scalar engine",
            nisa.activation,
            self.d,
            nl.exp,
            self.a,
            reduce_op=nl.max,
            reduce_res=self.one,
        )
        self.refused(
            "free axes within 1..1, got 0", nisa.tensor_reduce, self.one, nl.add, self.a, 0
        )
        self.refused(
            "at most \\[32, 32\\] on the vector engine",
            nisa.nc_transpose,
            self.d,
            self.a,
            engine=nisa.engine.vector,
        )
        self.refused(
            "operand0: expected a number or one value per partition",
            nisa.tensor_scalar,
            self.d,
            self.a,
            nl.add,
            self.sbuf(128, 2),
        )
        self.refused("32 numbers", nisa.nc_stream_shuffle, self.d, self.a, [0, 1])
        self.refused(
            "op: expected one of .*got foo", nisa.tensor_tensor, self.d, self.a, self.b, "foo"
        )
        self.refused(
            "128 partitions, got 129|at most 128 partitions", nl.ndarray, (129, 4), nl.float32
        )

    def test_what_only_v4_has_names_trn3(self) -> None:
        for name in ("nc_matmul_mx", "quantize_mx", "activate2", "rand2", "exponential"):
            self.refused(f"nisa.{name}: needs trn3", getattr(nisa, name), self.d)
        self.refused("float8_e4m3fn_x4 needs trn3", nl.ndarray, (128, 4), nl.float8_e4m3fn_x4)
        self.refused("priority.*trn3", nisa.dma_copy, self.d, self.hbm, priority=1)

    def test_reduced_axes_of_older_releases_count_from_the_innermost(self) -> None:
        data = nl.ndarray((128, 4, 16), nl.float32, buffer=nl.sbuf)
        rows = nl.ndarray((128, 4), nl.float32, buffer=nl.sbuf)
        columns = nl.ndarray((128, 16), nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(columns, nl.add, data, axis=1)
        self.assertEqual(self.made.last("TENSOR_REDUCE").args[0].shape, (128, 16, 4))
        nisa.tensor_reduce(rows, nl.add, data, axis=1)
        self.assertEqual(self.made.last("TENSOR_REDUCE").args[0].shape, (128, 4, 16))
        with self.assertRaisesRegex(ValueError, "dst: expected 2048 elements"):
            nisa.tensor_reduce(rows[:, 0:3], nl.add, data, axis=1)


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class Old(unittest.TestCase):
    """Results by value; masks; the transitional style."""

    def test_results_go_straight_into_what_they_are_assigned_to(self) -> None:
        with tracing("old") as made:
            t = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
            tile = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            tile[...] = nl.load(t)
            tile[...] = nisa_old.activation(nl.exp, tile)
            tile[:, 0:512] = nisa_old.tensor_scalar(tile, np.multiply, 2.0)
            self.assertEqual(made.names, ["dma_copy", "activation", "TENSOR_SCALAR"])
            self.assertEqual(made.made[-1].args[1].storage, tile.view_.storage)

    def test_a_product_of_a_transpose_takes_it_from_sbuf(self) -> None:
        with tracing("old") as made:
            x = nl.ndarray((128, 64), nl.bfloat16, buffer=nl.sbuf)
            w = nl.ndarray((64, 512), nl.bfloat16, buffer=nl.sbuf)
            turned = nisa_old.nc_transpose(x)
            self.assertEqual(turned.memory, "psum")
            nisa_old.nc_matmul(turned, w)
            self.assertEqual(made.names, ["transpose", "copy", "matmul"][: len(made.names)])

    def test_results_are_emitted_in_the_order_of_their_calls(self) -> None:
        with tracing("old") as made:
            t = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
            x = nl.load(t)
            y = nisa_old.activation(nl.exp, x)
            z = nisa_old.reciprocal(x)
            w = nisa_old.tensor_tensor(z, y, np.add)
            del w
            nl.store(t, x)
        self.assertEqual(
            made.names, ["dma_copy", "activation", "RECIPROCAL", "TENSOR_TENSOR", "dma_copy"]
        )

    def test_products_add_into_psum(self) -> None:
        with tracing("old") as made:
            a = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.sbuf)
            b = nl.ndarray((128, 512), nl.bfloat16, buffer=nl.sbuf)
            acc = nl.zeros((nl.par_dim(128), 512), nl.float32, buffer=nl.psum)
            for _ in nl.affine_range(3):
                acc[...] += nisa_old.nc_matmul(a, b)
            acc += nl.matmul(a, b, transpose_x=True)
            i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
            acc[i, j] += nisa_old.nc_matmul(a, b)
            self.assertEqual(made.names, ["matmul"] * 5)
            for one in made.made:
                self.assertIsNone(one.named["accumulate"])
                self.assertEqual(one.args[0].storage, acc._view.storage)
            y = nisa_old.nc_matmul(a, b)
            self.assertEqual((y.memory, y.dtype, y.shape), ("psum", nl.float32, (128, 512)))
            out = nl.copy(y, dtype=nl.bfloat16)
            self.assertIs(made.last("matmul").named["accumulate"], False)
            self.assertEqual((out.memory, out.dtype), ("sbuf", nl.bfloat16))

    def test_zeros_in_psum_cost_nothing_unless_read(self) -> None:
        with tracing("old") as made:
            acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            nl.copy(acc)
        self.assertEqual(made.names, ["MEMSET", "copy"])

    def test_masks_cut_all_operands(self) -> None:
        with tracing("old") as made:
            a = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
            mask = (i < 100) & (j < 300)
            row = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
            x = nisa_old.tensor_scalar(a, np.add, row, mask=mask)
            y = nisa_old.tensor_tensor(a, x, np.add, mask=mask)
            z = nisa_old.tensor_reduce(np.max, y, axis=(1,), mask=mask)
            self.assertEqual((x.shape, y.shape, z.shape), ((128, 512), (128, 512), (128, 1)))
        one, two, three = made.made
        self.assertEqual(one.args[0].shape, (100, 300))
        self.assertEqual(one.args[4].shape, (100, 1))
        self.assertEqual([v.shape for v in two.args[:3]], [(100, 300)] * 3)
        self.assertEqual((three.args[0].shape, three.args[1].shape), ((100, 300), (100, 1)))

    def test_an_empty_mask_emits_nothing(self) -> None:
        with tracing("old") as made:
            a = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            i = nl.arange(128)[:, None]
            nisa_old.activation(nl.exp, a, mask=i + 128 < 100)
        self.assertEqual(made.names, [])

    def test_affine_select_and_iota_take_expressions(self) -> None:
        with tracing("old") as made:
            a = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
            x = nisa_old.affine_select(pred=(i + 256 >= j), on_true_tile=a, on_false_value=-9.0)
            self.assertEqual(x.shape, (128, 512))
            nisa_old.iota(i * 512 + j, dtype=nl.int32)
        self.assertEqual(made.made[0].args[2], (256, 1, [(-1, 512)]))
        self.assertEqual(made.made[1].args[1], (0, 512, [(1, 512)]))

    def test_the_transitional_style(self) -> None:
        with tracing("old") as made:
            t = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
            d = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            nisa_old.dma_copy(dst=d, src=t)
            nisa_old.tensor_tensor(dst=d, data1=d, data2=d, op=nl.add)
            nisa_old.tensor_tensor(d, d, d, op=nl.add)
            nisa_old.activation(dst=d, op=nl.exp, data=d)
            nisa_old.activation(d, nl.exp, d)
            nisa_old.memset(d, 0.0)
            nisa_old.tensor_scalar(d, d, nl.add, 1.0)
            nisa_old.tensor_copy(d, d)
            nisa_old.dma_copy(dst=t, src=d)
            self.assertEqual(
                made.names,
                [
                    "dma_copy",
                    "TENSOR_TENSOR",
                    "TENSOR_TENSOR",
                    "activation",
                    "activation",
                    "MEMSET",
                    "TENSOR_SCALAR",
                    "copy",
                    "dma_copy",
                ],
            )
            for one in made.made[1:-1]:
                storages = [v.storage for v in one.args if hasattr(v, "storage")]
                self.assertTrue(all(s == d.view_.storage for s in storages))

    def test_integers_pass_the_pe_array_as_floats_of_their_size(self) -> None:
        for kind, dtype in ((nl.int32, "fp32"), (nl.uint16, "bf16")):
            with tracing("old") as builder:
                t = nl.load(nl.ndarray((128, 64), kind, buffer=nl.shared_hbm))
                made = nl.transpose(t)
                tensor.flush()
                self.assertEqual((made.shape, made.dtype), ((64, 128), kind))
                turned = builder.last("transpose").args
                self.assertEqual([view.dtype for view in turned[:2]], [dtype, dtype])

    def test_iota_of_a_number_is_one_element(self) -> None:
        with tracing("old") as builder:
            made = nisa_old.iota(nl.program_id(0) + 3, dtype=nl.int32)
            self.assertEqual(made.reshape((1, 1)).shape, (1, 1))
            self.assertEqual(builder.names, ["IOTA"])
            with self.assertRaisesRegex(ValueError, r"expr: expected an index expression, got 'x'"):
                nisa_old.iota("x")

    def test_one_value_per_partition_is_no_operand_of_tensor_tensor(self) -> None:
        with tracing("old") as builder:
            a = nl.load(nl.ndarray((4, 128), buffer=nl.shared_hbm))
            b = nl.load(nl.ndarray((4, 1), buffer=nl.shared_hbm))
            with self.assertRaisesRegex(ValueError, r"data2: .*got \[4, 1\]"):
                nisa_old.tensor_tensor(a, b, nl.add)
            with self.assertRaisesRegex(ValueError, "tensor_scalar takes one value per partition"):
                nisa_old.tensor_tensor(a, b, nl.add)
            nisa_old.tensor_tensor(a, b.broadcast_to((4, 128)), nl.add)
            nl.add(a, b)
            nl.copy(a)
            self.assertEqual(
                [n for n in builder.names if n.startswith("TENSOR")],
                ["TENSOR_TENSOR", "TENSOR_SCALAR"],
            )

    def test_dtype_and_shape_of_results(self) -> None:
        with tracing("old"):
            a = nl.ndarray((128, 512), nl.bfloat16, buffer=nl.sbuf)
            self.assertEqual(nisa_old.tensor_scalar(a, np.add, 1.0).dtype, nl.bfloat16)
            self.assertEqual(nisa_old.activation(nl.exp, a, dtype=nl.float32).dtype, nl.float32)
            self.assertEqual(nisa_old.activation(nl.exp, a, dtype=np.float16).dtype, nl.float16)
            self.assertEqual(nisa_old.bn_stats(a).shape, (128, 6))
            self.assertEqual(nisa_old.bn_aggr(nisa_old.bn_stats(a)).shape, (128, 2))
            self.assertEqual(nisa_old.max8(src=a).shape, (128, 8))
            self.assertEqual(nisa_old.nc_transpose(a[:, 0:128]).memory, "psum")
            self.assertEqual(nisa_old.nc_transpose(a[0:32, 0:32]).memory, "sbuf")
            self.assertEqual(nisa_old.memset((128, 4), 0, nl.int32).dtype, nl.int32)
            self.assertEqual(nisa_old.tensor_partition_reduce(np.add, a).shape, (1, 512))

    def test_places_are_those_of_the_calls(self) -> None:
        with tracing("old"):
            a = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            with self.assertRaisesRegex(ValueError, r"test_nisa.py:\d+: nisa.tensor_tensor: data2"):
                nisa_old.tensor_tensor(a, a[:, 0:4], np.add)


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class Enumerations(unittest.TestCase):
    def test_numbers_differ_by_generation(self) -> None:
        self.assertEqual(enums.NEW.dge_mode.none.value, 3)
        self.assertEqual(enums.OLD.dge_mode.none.value, 0)
        self.assertEqual(enums.NEW.engine.dma.value, 4)
        self.assertFalse(hasattr(enums.OLD.engine, "dma"))
        self.assertEqual(nisa.get_nc_version(), nisa.nc_version.gen3)
        self.assertGreaterEqual(nisa.get_nc_version(), nisa.nc_version.gen2)
        self.assertEqual(nisa.reduce_cmd.load_reduce.value, 4)
        self.assertEqual(nisa.matmul_perf_mode.double_row, "double_row")


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class ByValue(unittest.TestCase):
    """The package nki.isa: dst-first, and without dst a call gives a new tile back."""

    def setUp(self) -> None:
        self.isa = types.SimpleNamespace(**by_value.calls())
        self.enter = tracing()
        self.made: Recorder = self.enter.__enter__()
        self.addCleanup(self.enter.__exit__, None, None, None)
        self.x = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)
        self.w = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.sbuf)

    def emitted(self, tile: Any) -> Any:
        tile.view_
        return self.made.made[-1]

    def test_a_call_without_dst_gives_a_new_tile(self) -> None:
        isa, x = self.isa, self.x
        y = isa.tensor_scalar(x, np.multiply, 5.0, False, np.subtract, 1.0, True)
        self.assertEqual(y.shape, (128, 64))
        made = self.emitted(y)
        self.assertEqual(made.args[2:], ("MULTIPLY", "SUBTRACT", 5.0, 1.0, False, True))
        made = self.emitted(isa.activation(nl.exp, x, scale=0.5))
        self.assertEqual((made.name, made.args[1]), ("activation", "EXP"))
        self.assertEqual(self.emitted(isa.activation(op=nl.exp, data=x)).name, "activation")
        for shape, made in (
            ((128, 1), isa.tensor_reduce(nl.add, x, axis=1)),
            ((128, 64), isa.tensor_copy(x, dtype=nl.bfloat16)),
            ((128, 128), isa.nc_matmul(self.w, self.w)),
            ((128, 128), isa.nc_transpose(self.w, name="turn")),
            ((128, 8), isa.memset((128, 8), 0.0, nl.bfloat16)),
            ((128, 6), isa.bn_stats(x)),
            ((128, 64), isa.tensor_tensor(x, x, op=nl.add)),
            ((128, 8), isa.max8(src=x)),
        ):
            self.assertEqual(made.shape, shape)
        tensor.flush()

    def test_a_call_with_dst_is_dst_first(self) -> None:
        isa, x = self.isa, self.x
        d = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)
        for made in (
            isa.tensor_scalar(d, x, nl.add, 1.0),
            isa.tensor_scalar(dst=d, data=x, op0=nl.add, operand0=1.0),
            isa.tensor_scalar(d, data=x, op0=nl.add, operand0=1.0, name="plus"),
        ):
            self.assertIs(made, calls.DONE)
            self.assertEqual(self.made.made[-1].name, "TENSOR_SCALAR")
        self.assertIs(isa.memset(d, 0.0), calls.DONE)

    def test_what_fits_neither_form_is_told_of_both(self) -> None:
        isa, x = self.isa, self.x
        with self.assertRaisesRegex(
            ValueError,
            r"nisa.tensor_scalar: missing a required argument: 'op0'; expected \(dst, data, op0, "
            r"operand0, ...\), or without dst, for a new tile, \(data, op0, operand0, ...\)",
        ):
            isa.tensor_scalar(x, x)
        with self.assertRaisesRegex(ValueError, "nisa.tensor_tensor: data2: expected a tensor"):
            isa.tensor_tensor(x, x, 3.0, nl.add)
        with self.assertRaisesRegex(ValueError, "nisa.activation: .*begin with dst"):
            isa.activation(x, x, nl.exp)
        with self.assertRaisesRegex(
            ValueError, "tensor_copy: .*unexpected keyword argument 'mask'"
        ):
            isa.tensor_copy(x, x, mask=None)
        with self.assertRaisesRegex(
            ValueError, r"nisa.rng: missing .*'dst'; expected \(dst, ...\)"
        ):
            isa.rng()
        with self.assertRaisesRegex(ValueError, "tensor_copy: missing .*'src'; expected .dst, src"):
            isa.tensor_copy(dst=x)
        with self.assertRaisesRegex(ValueError, "memset: .*'dtype'; expected"):
            isa.memset(x, 0.0, dtype=nl.float32)
        with self.assertRaisesRegex(
            ValueError, "activation: .*'dtype'; expected .dst, op, data, b"
        ):
            isa.activation(dst=x, op=nl.exp, data=x, dtype=nl.float32)

    def test_a_result_that_nobody_takes_is_a_forgotten_dst(self) -> None:
        self.isa.activation_reduce(nl.exp, self.x, nl.add, nl.ndarray((128, 1)))
        tensor.flush()  # its sum was what it was for
        kept = self.isa.tensor_copy(self.x)
        tensor.flush()
        self.isa.tensor_copy(self.x)
        with self.assertRaisesRegex(ValueError, "nisa.tensor_copy: dst: expected a tile to write"):
            nl.ndarray((128, 1))
            tensor.flush()
        self.assertEqual(kept.shape, (128, 64))


if __name__ == "__main__":
    unittest.main()
