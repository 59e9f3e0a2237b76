"""Index expressions, masks, and parts of tensors of both generations."""

from __future__ import annotations

import unittest

import numpy as np
import recorder
from recorder import tracing
from trace_support import NO_NATIVE

from trnsim.index import ArrayIndex, Index, Mask, arange, ds, mgrid, par_dim


class Expressions(unittest.TestCase):
    """Index arithmetic equals NumPy's."""

    def check(self, index: Index, numbers: np.ndarray) -> None:
        self.assertNotIsInstance(index, ArrayIndex)
        self.assertEqual(index.shape, numbers.shape)
        self.assertTrue(np.array_equal(index.array(), numbers))

    def test_arange_and_new_axes(self) -> None:
        n = np.arange(6)
        self.check(arange(6)[:, None], n[:, None])
        self.check(arange(6)[None, :], n[None, :])
        self.check(arange(6)[None, None, :], n[None, None, :])
        self.check(arange(2, 12, 3), np.arange(2, 12, 3))
        self.check(arange(6)[1:5:2], n[1:5:2])
        self.check(arange(6)[..., None], n[..., None])

    def test_arithmetic_stays_affine(self) -> None:
        p, f = np.arange(4)[:, None], np.arange(6)[None, :]
        i, j = arange(4)[:, None], arange(6)[None, :]
        self.check(3 + i * 2 - j, 3 + p * 2 - f)
        self.check(10 - (i + 4 * j), 10 - (p + 4 * f))
        self.check(-i, -p)
        self.check((i * 4 + j * 2) // 2, (p * 4 + f * 2) // 2)
        self.check(np.int64(3) + i, 3 + p)

    def test_what_is_not_affine_becomes_numbers(self) -> None:
        i = arange(8)[None, :]
        self.assertIsInstance(i % 3, ArrayIndex)
        self.assertTrue(np.array_equal((i % 3).array(), np.arange(8)[None, :] % 3))
        self.assertIsInstance(i // 3, ArrayIndex)
        self.check(i % 16, np.arange(8)[None, :])

    def test_shapes_that_do_not_broadcast_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "shapes that broadcast"):
            arange(4)[:, None] + arange(5)[:, None]

    def test_mgrid_names_its_axes(self) -> None:
        grid = mgrid[0:4, 2:6, 0:3]
        p, x, y = grid
        self.assertIs(grid.p, p)
        self.assertIs(grid.x, x)
        self.assertIs(grid.y, y)
        dense = np.mgrid[0:4, 2:6, 0:3]
        self.assertTrue(
            np.array_equal((p + x * 10 + y).array(), dense[0] + dense[1] * 10 + dense[2])
        )

    def test_par_dim_is_an_int(self) -> None:
        self.assertEqual(par_dim(128) + 1, 129)


class Masks(unittest.TestCase):
    """The box of a mask encloses what NumPy finds true, as tightly as one can."""

    def box(self, mask: Mask, shape: tuple[int, ...]) -> list[tuple[int, int]] | None:
        found, exact = mask.box(shape)
        truth = np.broadcast_to(mask.array(), shape)
        if not truth.any():
            self.assertIsNone(found)
            return None
        assert found is not None
        where = tuple(slice(low, high) for low, high in found)
        outside = truth.copy()
        outside[where] = False
        self.assertFalse(outside.any())
        for axis, (low, high) in enumerate(found):
            rows = np.moveaxis(truth, axis, 0)
            self.assertTrue(rows[low].any() and rows[high - 1].any(), "the box is not tight")
        if exact:
            self.assertTrue(truth[where].all())
        return found

    def test_a_bound_on_one_axis_is_exact(self) -> None:
        i, j = arange(128)[:, None], arange(512)[None, :]
        self.assertEqual(self.box(i + 896 < 1000, (128, 512)), [(0, 104), (0, 512)])
        self.assertEqual(self.box(i >= 5, (128, 512)), [(5, 128), (0, 512)])
        self.assertEqual(self.box((i < 3) & (j * 2 <= 9), (128, 512)), [(0, 3), (0, 5)])
        self.assertEqual(self.box(7 > i, (128, 512)), [(0, 7), (0, 512)])
        self.assertEqual(self.box(10 - j > 3, (128, 512)), [(0, 128), (0, 7)])
        self.assertEqual(self.box(i == 4, (128, 512)), [(4, 5), (0, 512)])

    def test_nothing_is_left(self) -> None:
        i = arange(128)[:, None]
        self.assertIsNone(self.box(i + 1000 < 1000, (128, 512)))
        self.assertIsNone(self.box((i < 3) & (i > 7), (128, 512)))

    def test_a_triangle_falls_back_to_its_box(self) -> None:
        i, j = arange(8)[:, None], arange(8)[None, :]
        self.assertEqual(self.box(i >= j, (8, 8)), [(0, 8), (0, 8)])
        self.assertEqual(self.box(i >= j + 3, (8, 8)), [(3, 8), (0, 5)])
        self.assertEqual(self.box(i + j < 4, (8, 8)), [(0, 4), (0, 4)])

    def test_or_not_and_unequal(self) -> None:
        i, j = arange(8)[:, None], arange(8)[None, :]
        self.assertEqual(self.box((i < 2) | (i == 5), (8, 8)), [(0, 6), (0, 8)])
        self.assertEqual(self.box(~(i < 2), (8, 8)), [(2, 8), (0, 8)])
        self.assertEqual(self.box((i != 0) & (j < 4), (8, 8)), [(1, 8), (0, 4)])
        self.assertEqual(self.box((j % 4 == 1) & (j < 5), (8, 8)), [(0, 8), (1, 2)])

    def test_masks_of_one_axis_are_given_more(self) -> None:
        rows, columns = arange(8) < 5, (arange(6) * 2 > 3) & (arange(6) % 4 != 3)
        both = rows[:, None] & columns[None, :]
        wanted = rows.array()[:, None] & columns.array()[None, :]
        self.assertTrue(np.array_equal(both.array(), wanted))
        self.assertEqual(self.box(both, (8, 6)), [(0, 5), (2, 6)])
        self.assertEqual(self.box(both[2:7, 1:4], (5, 3)), [(0, 3), (1, 2)])

    def test_a_mask_is_no_truth_value(self) -> None:
        with self.assertRaisesRegex(ValueError, "many truths"):
            bool(arange(4) < 2)


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class Parts(unittest.TestCase):
    """Indexing gives the shape and place that the index says."""

    def test_slices_ints_and_ds(self) -> None:
        from trnsim import nl

        with tracing():
            t = nl.ndarray((8, 128, 512), nl.bfloat16, buffer=nl.shared_hbm)
            self.assertEqual(t[3].shape, (128, 512))
            self.assertEqual(t[3].offset, 3 * 128 * 512)
            self.assertEqual(t[1:3, nl.ds(32, 64), 0:512:2].shape, (2, 64, 256))
            self.assertEqual(t[..., 5].shape, (8, 128))
            self.assertEqual(t[3, nl.ds(64, 64)][2:4].offset, (3 * 128 + 66) * 512)
            tile = nl.ndarray((128, 4, 512), nl.float32, buffer=nl.sbuf)
            self.assertEqual(tile[:, 2].shape, (128, 512))
            self.assertEqual(tile[5].shape, (1, 4, 512))  # the partition dimension stays
            self.assertEqual(tile[64:96, 1, 0:10].shape, (32, 10))
            rows, columns = nl.affine_range(16, 32), nl.affine_range(512)
            self.assertEqual(t[3, rows, columns].shape, (16, 512))
            self.assertEqual(t[3, rows, columns].offset, (3 * 128 + 16) * 512)

    def test_expressions_select_patterns(self) -> None:
        from trnsim import nl

        with tracing("old"):
            t = nl.ndarray((1024, 4096), nl.float32, buffer=nl.shared_hbm)
            i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
            part = t[i + 256, j * 2 + 1]
            self.assertEqual(part.shape, (128, 512))
            self.assertEqual(part.offset, 256 * 4096 + 1)
            self.assertEqual(part.strides, (4096, 2))
            row = t[17, nl.arange(512)[None, :]]
            self.assertEqual(row.shape, (1, 512))
            turned = t[nl.arange(512)[None, :], nl.arange(64)[:, None]]
            self.assertEqual(turned.shape, (64, 512))
            self.assertEqual(turned.strides, (1, 4096))
            a, b, c = nl.mgrid[0:128, 0:4, 0:8]
            self.assertEqual(t[a, b * 1024 + c].shape, (128, 4, 8))
            self.assertEqual(t[a, b * 1024 + c].strides, (4096, 1024, 1))

    def test_transposed_tiles(self) -> None:
        """On chip partitions cannot move: .T is a copy; a permuted view serves DMA only."""
        from trnsim import nisa, nl, nl_math, tensor

        with tracing("old") as builder:
            a = nl.load(nl.ndarray((8, 32), buffer=nl.shared_hbm))
            b = nl.load(nl.ndarray((64, 32), buffer=nl.shared_hbm))
            self.assertEqual(nl.matmul(a, b.T).shape, (8, 64))
            self.assertEqual([m.name for m in builder.made].count("transpose"), 2)
            with self.assertRaisesRegex(ValueError, r"Tensor\.T: self: .*128.*\[8, 512\]"):
                nl.ndarray((8, 512), buffer=nl.sbuf).T
            self.assertEqual(nl.ndarray((8, 512), buffer=nl.shared_hbm).T.strides, (1, 512))
        with tracing() as builder:
            tile = nl.ndarray((32, 32), buffer=nl.sbuf)
            nisa.memset(tile, 0.0)
            out = nl.ndarray((32, 32), buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=tile.permute((1, 0)))
            self.assertEqual(builder.names[-1], "dma_copy")
            nisa.dma_copy(dst=out[0:4], src=tile.permute((1, 0))[0:4])
            nisa.tensor_copy(tile, tile.permute((1, 0)).permute((1, 0)))
            for use in (
                lambda t: nisa.tensor_copy(tile, t),
                lambda t: nisa.tensor_tensor(tile, tile, t, nl.add),
                lambda t: nisa.memset(t, 1.0),
                lambda t: nl_math.matmul(tile, t, True),
                lambda t: nisa.tensor_copy(tile[:, 0:4], t[:, 0:4]),
            ):
                with self.assertRaisesRegex(ValueError, r"permute: dims: .*nl\.transpose"):
                    use(tile.permute((1, 0)))
                    tensor.flush()
            cube = nl.ndarray((32, 32, 8), buffer=nl.sbuf)
            nisa.memset(cube, 0.0)
            nisa.tensor_copy(tile[:, 0:8], cube.permute((1, 0, 2))[3])
            with self.assertRaisesRegex(ValueError, "got them as dimension 1"):
                nisa.tensor_copy(cube, cube.permute((1, 0, 2)))

    def test_what_is_wrong_with_a_late_result_is_at_its_call(self) -> None:
        from trnsim import nl

        with self.assertRaisesRegex(ValueError, "HERE"), tracing():
            tile = nl.ndarray((32, 32), buffer=nl.sbuf)
            text = "\n\n\n\n\n\ny = nl.exp(tile.permute((1, 0)))\n\nz = nl.exp(tile)"
            try:
                exec(compile(text, "kernel.py", "exec"), {"nl": nl, "tile": tile})
            except ValueError as error:
                raise ValueError("HERE") if "kernel.py:7: " in str(error) else error

    def test_blocks_are_left_of_par_dim(self) -> None:
        from trnsim import nl

        with tracing("old"):
            t = nl.ndarray((4, 2, nl.par_dim(128), 512), nl.float32, buffer=nl.sbuf)
            self.assertEqual(t.shape, (4, 2, 128, 512))
            tile = t[3, 1]
            self.assertEqual(tile.shape, (128, 512))
            self.assertEqual(tile.offset, 7 * 512)
            i, j = nl.arange(128)[:, None], nl.arange(256)[None, :]
            self.assertEqual(t[2, 0, i, j + 256].offset, 4 * 512 + 256)

    def test_a_mask_cuts_what_reaches_out(self) -> None:
        from trnsim import nl

        with tracing("old") as made:
            t = nl.ndarray((1000, 512), nl.float32, buffer=nl.shared_hbm)
            i, j = nl.arange(128)[:, None], nl.arange(512)[None, :]
            tile = nl.load(t[i + 896, j], mask=i + 896 < 1000)
            self.assertEqual(tile.shape, (128, 512))
            nl.store(t[i + 896, j], tile, mask=i + 896 < 1000)
            dst, src = made.made[0].args[:2]
            self.assertEqual((dst.shape, src.shape), ((104, 512), (104, 512)))
            before = len(made.made)
            nl.load(t[i + 1024, j], mask=i + 1024 < 1000)
            self.assertEqual(len(made.made), before)
            with self.assertRaisesRegex(ValueError, "index of dimension 0.*896..1023"):
                nl.load(t[i + 896, j])

    def test_views(self) -> None:
        from trnsim import nl

        with tracing():
            t = nl.ndarray((128, 24, 64), nl.bfloat16, buffer=nl.sbuf)
            self.assertEqual(t.reshape((128, 1536)).shape, (128, 1536))
            self.assertEqual(t.reshape(128, 2, -1).shape, (128, 2, 768))
            self.assertEqual(t.permute((0, 2, 1)).strides[1:], (1, 64))
            self.assertEqual(t.select(1, 3).offset, 192)
            self.assertEqual(t.slice(2, 8, 24, 4).shape, (128, 24, 4))
            self.assertEqual(t.reshape_dim(1, (4, 6)).shape, (128, 4, 6, 64))
            self.assertEqual(t.flatten_dims(1, 2).shape, (128, 1536))
            self.assertEqual(t.expand_dim(1).shape, (128, 1, 24, 64))
            self.assertEqual(t.expand_dim(1).broadcast(1, 5).shape, (128, 5, 24, 64))
            self.assertEqual(t.expand_dim(1).squeeze_dim(1).shape, t.shape)
            self.assertEqual(t.view(nl.float32).shape, (128, 24, 32))
            made = t.rearrange(("p", ("a", "b"), "c"), ("p", "b", "a", "c"), {"a": 4})
            self.assertEqual((made.shape, made.strides[1:]), ((128, 6, 4, 64), (64, 384, 1)))
            self.assertTrue(t.is_contiguous())
            self.assertFalse(t.permute((0, 2, 1)).is_contiguous())
            self.assertEqual(len(t), 128)
            self.assertEqual((t.ndim, t.size, t.dtype), (3, 128 * 24 * 64, nl.bfloat16))
            self.assertEqual(t.get_pattern(), [[1536, 128], [64, 24], [1, 64]])

    def test_access_patterns(self) -> None:
        from trnsim import nl

        with tracing() as made:
            t = nl.ndarray((128, 1024), nl.bfloat16, buffer=nl.sbuf)
            part = t.ap([[1024, 128], [2, 16]], offset=4)
            self.assertEqual((part.shape, part.offset), ((128, 16), 4))
            h = nl.ndarray((4096, 256), nl.float32, buffer=nl.shared_hbm)
            part = h.ap([[256, 64], [1, 128]], offset=512)
            self.assertEqual((part.shape, part.offset), ((64, 128), 512))
            self.assertEqual(h.ap([[512, 64], [1, 256]], dtype=nl.bfloat16).dtype, nl.bfloat16)
            index = nl.ndarray((64, 1), nl.int32, buffer=nl.sbuf)
            rows = h.ap([[256, 64], [1, 256]], vector_offset=index, indirect_dim=0)
            self.assertTrue(rows.is_indirect())
            self.assertEqual(rows.shape, (64, 256))
            one = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
            moved = h.ap([[256, 64], [1, 256]], scalar_offset=one, indirect_dim=0)
            self.assertEqual(moved.shape, (64, 256))
            self.assertIn("register_load", made.names)
            with self.assertRaisesRegex(
                ValueError, r"ap: scalar_offset: .*part of offset\), got 7"
            ):
                h.ap([[256, 64], [1, 256]], scalar_offset=7)
            with self.assertRaisesRegex(ValueError, "scalar_offset or vector_offset"):
                h.ap([[256, 64], [1, 256]], scalar_offset=one, vector_offset=index)

    def test_tiles_of_indices_gather_and_scatter(self) -> None:
        from trnsim import nl, nisa

        with tracing("old") as made:
            table = nl.ndarray((5000, 512), nl.bfloat16, buffer=nl.shared_hbm)
            index = nl.ndarray((128, 1), nl.int32, buffer=nl.sbuf)
            j = nl.arange(256)[None, :]
            rows = nl.load(table[index[nl.arange(128)[:, None], 0], j + 64])
            self.assertEqual(rows.shape, (128, 256))
            nl.store(table[index, j], rows)
            gather, scatter = made.made[-2:]
            self.assertEqual(gather.named["index"].shape, (128, 1))
            self.assertEqual(gather.named["index_on"], "src")
            self.assertEqual(scatter.named["index_on"], "dst")
            with self.assertRaisesRegex(ValueError, "loads, stores and DMA only"):
                nisa.tensor_copy(rows, table[index, j])

    def test_registers_move_accesses(self) -> None:
        from trnsim import nl, nisa

        with tracing() as made:
            t = nl.ndarray((1024, 512), nl.float32, buffer=nl.shared_hbm)
            tile = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            for i in nl.dynamic_range(8):
                nisa.dma_copy(tile, t[nl.ds(i * 128, 128), :])
            nl.fori_loop(0, 4, lambda i: nisa.dma_copy(tile, t[nl.ds(i, 128), 0:512]))
            self.assertEqual(made.names.count("begin_loop"), 2)
            self.assertEqual(made.names.count("end_loop"), 2)
            self.assertEqual(made.names.count("dma_copy"), 2)


if __name__ == "__main__":
    unittest.main()
