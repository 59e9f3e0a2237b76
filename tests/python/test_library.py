"""The kernels under the names of AWS's library: they compute what their references say, and run.

As in test_kernels: over the NumPy stand-in for nki, and through the front end and the simulator.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
import unittest
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import recorder
from trace_support import NO_NATIVE, ROOT, has_native, trnsim
from trnsim import report

sys.path.insert(0, str(ROOT / "traces" / "kernels" / "support"))

import numpy_nki  # noqa: E402

timed = unittest.skipUnless(has_native() and report.can_simulate(), "no simulator is built")
if has_native():
    trnsim.activate()


@contextmanager
def computing() -> Iterator[Callable[[str], Any]]:
    """Modules of the library by name, over the NumPy stand-in."""
    with numpy_nki.installed():
        nki = sys.modules["nki"]
    package = types.ModuleType("trnsim")
    package.__path__ = list(trnsim.__path__)
    vars(package).update(nl=nki.language, nisa=nki.isa)
    kept = {name: module for name, module in sys.modules.items() if name[:6] != "trnsim"}
    made = {"trnsim": package, "trnsim.jit": nki}
    with mock.patch.dict(sys.modules, {**kept, **made}, clear=True):
        yield lambda name: importlib.import_module(f"trnsim.library.{name}")


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).normal(0.0, 1.0, shape).astype(np.float32)


class Numbers(unittest.TestCase):
    def close(self, got: Any, wanted: Any) -> None:
        if isinstance(wanted, tuple):
            self.assertEqual(len(got), len(wanted))
            for g, w in zip(got, wanted):
                self.close(g, w)
            return
        self.assertEqual(got.shape, wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())

    def check(self, module: Any, kernel: str, *args: Any, **kwargs: Any) -> Any:
        """A kernel's results are its reference's, of those arguments that it knows."""
        got = getattr(module, kernel)(*args, **kwargs)
        reference = getattr(module, f"{kernel}_reference")
        given = inspect.signature(KERNELS[kernel].func).bind(*args, **kwargs).arguments
        known = inspect.signature(reference).parameters
        wanted = reference(**{name: value for name, value in given.items() if name in known})
        self.close(got, wanted)
        return wanted

    def test_flash_forward(self) -> None:
        with computing() as library:
            module = library("attention")
            config = module.FlashConfig
            q, k, v = numbers(1, 4, 64, 384), numbers(1, 2, 64, 768), numbers(1, 2, 768, 64)
            bias = numbers(1, 4, 384, 768)
            for more in (
                {},
                {"use_causal_mask": False},
                {"config": config(seq_tile_size=512)},
                {"use_causal_mask": False, "config": config(512, training=False)},
                {"logit_bias": bias, "softmax_scale": 0.3, "mixed_precision": False},
                {"logit_bias": bias, "use_causal_mask": False, "config": config(512)},
            ):
                with self.subTest(more=sorted(more)):
                    self.check(module, "flash_fwd", q, k, v, None, **more)
            turned = np.swapaxes(v, 2, 3).copy()
            more = {"config": config(512, should_transpose_v=True)}
            self.check(module, "flash_fwd", q, k, turned, None, **more)

    def test_flash_forward_of_more_queries_than_a_group(self) -> None:
        with computing() as library:
            module = library("attention")
            q, k, v = numbers(2, 1, 32, 1280), numbers(2, 1, 32, 1280), numbers(2, 1, 1280, 32)
            self.check(module, "flash_fwd", q, k, v, None, config=module.FlashConfig(512))

    def test_flash_backward(self) -> None:
        with computing() as library:
            module = library("attention")
            for d, seq in ((64, 640), (128, 256)):
                q, k, v, dy = (numbers(1, 2, d, seq, seed=i) for i in range(4))
                for bias in (None, numbers(1, 2, seq, seq)):
                    for causal in (False, True):
                        with self.subTest(d=d, seq=seq, causal=causal, bias=bias is not None):
                            rows = np.swapaxes(v, 2, 3)
                            o, lse = module.flash_fwd_reference(
                                q, k, rows, bias, use_causal_mask=causal
                            )
                            o = np.swapaxes(o, 2, 3).copy()
                            args = (q, k, v, o, dy, lse.copy(), None, bias, causal)
                            self.check(module, "flash_attn_bwd", *args)
            with mock.patch.object(module, "KEPT", 0):
                self.check(module, "flash_attn_bwd", *args)

    def test_the_gradients_are_those_of_differences(self) -> None:
        with computing() as library:
            module = library("attention")
            given = [numbers(1, 1, 8, 128, seed=i).astype(np.float64) for i in range(4)]
            gradients = module.flash_attn_bwd_reference(*given)

            def loss(tensors: list[np.ndarray]) -> float:
                q, k, v, dy = tensors
                out, _ = module.flash_fwd_reference(
                    q, k, np.swapaxes(v, 2, 3), use_causal_mask=False
                )
                return float((np.swapaxes(out, 2, 3) * dy).sum())

            for which, gradient in enumerate(gradients):
                more, less = ([t.copy() for t in given] for _ in range(2))
                more[which][0, 0, 3, 70] += 1e-4
                less[which][0, 0, 3, 70] -= 1e-4
                slope = (loss(more) - loss(less)) / 2e-4
                self.assertAlmostEqual(gradient[0, 0, 3, 70], slope, delta=1e-6)

    def test_small_heads(self) -> None:
        with computing() as library:
            module = library("attention")
            kernel = "fused_self_attn_for_SD_small_head_size"
            tensors = [numbers(2, 64, 256, seed=i) for i in range(2)] + [numbers(2, 256, 64)]
            self.check(module, kernel, *tensors)
            flat = [numbers(640, 64, seed=i) for i in range(3)]
            self.check(module, kernel, *flat, use_causal_mask=True)

    def test_resizing(self) -> None:
        with computing() as library:
            module = library("vision")
            for shape, out_shape in (
                ((2, 30, 20, 8), (2, 59, 38, 8)),  # the documentation's example
                ((1, 16, 16, 4), (1, 32, 48, 4)),
                ((1, 32, 30, 4), (1, 16, 7, 4)),
                ((1, 7, 5, 3), (1, 10, 13, 3)),
                ((1, 1, 5, 3), (1, 3, 5, 3)),
            ):
                with self.subTest(shape=shape, out_shape=out_shape):
                    kernel = "resize_nearest_fixed_dma_kernel"
                    self.check(module, kernel, numbers(*shape), out_shape)

    def test_resizing_takes_few_transfers(self) -> None:
        with computing() as library:
            steps_of = library("vision").steps_of
            for size, out_size, pieces in ((30, 59, 2), (16, 32, 1), (32, 16, 1), (20, 30, 3)):
                self.assertEqual(len(steps_of(size, out_size)), pieces)
                covered = sorted(
                    step.out + i * step.out_step + j
                    for step in steps_of(size, out_size)
                    for i in range(step.count)
                    for j in range(step.repeat)
                )
                self.assertEqual(covered, list(range(out_size)))

    def test_select_and_scatter(self) -> None:
        with computing() as library:
            module = library("vision")
            for shape in ((2, 130, 8, 8), (1, 3, 7, 9), (1, 2, 1, 5), (1, 2, 201, 301)):
                with self.subTest(shape=shape):
                    values = np.round(2 * numbers(*shape))  # many are equal
                    sources = numbers(*shape[:2], *((size + 1) // 2 for size in shape[2:]))
                    wanted = self.check(module, "select_and_scatter_kernel", values, sources)
                    np.testing.assert_allclose(wanted.sum(), sources.sum(), rtol=1e-3)

    def test_rope(self) -> None:
        with computing() as library:
            module = library("rope")
            x, cos, sin = numbers(128, 2, 3, 96), numbers(64, 2, 96), numbers(64, 2, 96, seed=2)
            for interleaved in (False, True):
                with self.subTest(interleaved=interleaved):
                    tiles = [numpy_nki.Tile(t, "float32", "sbuf") for t in (x, cos, sin)]
                    made = module.RoPE_sbuf(*tiles, convert_from_interleaved=interleaved)
                    wanted = module.RoPE_sbuf_reference(x, cos, sin, interleaved)
                    self.close(made.data, wanted)
                    module.RoPE_sbuf(*tiles, tiles[0], interleaved)
                    self.close(tiles[0].data, wanted)


def kernels() -> dict[str, Any]:
    """The library's kernels by name, as kernels' files import them."""
    if not has_native():
        return {}
    modules = [importlib.import_module(f"nki.kernels.{name}") for name in ("attention", "vision")]
    return {
        name: kernel
        for module in modules
        for name, kernel in vars(module).items()
        if getattr(kernel, "_trnsim_kernel", False)
    }


KERNELS = kernels()


def shapes(dtype: str, *all_shapes: tuple[int, ...]) -> list[Any]:
    return [trnsim.Shape(dtype, shape) for shape in all_shapes]


@timed
class Traces(unittest.TestCase):
    """Every kernel becomes a program that the machine runs to its end."""

    def time(self, kernel: str, *args: Any, **kwargs: Any) -> float:
        ran = trnsim.run(KERNELS[kernel], *args, **kwargs)
        self.assertEqual(ran.warnings, [])
        self.assertGreater(ran.device_time_us, 5.0)
        return float(ran.device_time_us)

    def test_flash_forward_and_backward(self) -> None:
        from nki.kernels.attention import FlashConfig

        (seed,) = shapes("int32", (1,))
        head, values = (1, 1, 128, 1024), (1, 1, 1024, 128)
        causal = self.time("flash_fwd", *shapes("bf16", head, head, values), seed)
        whole = self.time(
            "flash_fwd", *shapes("bf16", head, head, values), seed, use_causal_mask=False
        )
        self.assertLess(causal, whole)
        self.time("flash_fwd", *shapes("bf16", head, head, values), seed, dropout_p=0.1)
        small = (2, 1, 64, 512)
        config = FlashConfig(512, training=False, should_transpose_v=True)
        (bias,) = shapes("fp32", (2, 1, 512, 512))
        self.time(
            "flash_fwd", *shapes("fp32", small, small, small), seed, bias, 0.5, True, False, 0.0,
            config,
        )  # fmt: skip
        (lse,) = shapes("fp32", (1, 1, 128, 8))
        for more in ({"use_causal_mask": True, "mixed_precision": True}, {"dropout_p": 0.1}):
            self.time("flash_attn_bwd", *shapes("bf16", *[head] * 5), lse, seed, **more)

    def test_small_heads(self) -> None:
        kernel = "fused_self_attn_for_SD_small_head_size"
        batch = self.time(kernel, *shapes("bf16", (1, 64, 1024), (1, 64, 1024), (1, 1024, 64)))
        flat = self.time(kernel, *shapes("bf16", *[(1024, 64)] * 3))
        self.assertLess(batch, flat)  # which transposes besides

    def test_images(self) -> None:
        self.time(
            "resize_nearest_fixed_dma_kernel", *shapes("fp32", (2, 30, 20, 256)), (2, 59, 38, 256)
        )
        self.time("select_and_scatter_kernel", *shapes("fp32", (1, 64, 112, 112), (1, 64, 56, 56)))
        self.time("select_and_scatter_kernel", *shapes("fp16", (1, 200, 15, 15), (1, 200, 8, 8)))

    def test_rope_in_a_kernel(self) -> None:
        from neuronxcc.nki._private_kernels.RoPE import RoPE_sbuf
        from trnsim import nl

        def kernel(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tiles = [nl.load(t) for t in (x, cos, sin)]
            nl.store(out, RoPE_sbuf(*tiles, convert_from_interleaved=interleaved))
            return out

        for d in (64, 128):
            for interleaved in (False, True):
                x, cos, sin = shapes("bf16", (d, 2, 4, 256), *[(d // 2, 2, 256)] * 2)
                self.assertGreater(trnsim.run(kernel, x, cos, sin, interleaved).device_time_us, 5.0)

    def test_a_kernel_calls_one_and_goes_on(self) -> None:
        from trnsim import jit, nl

        def kernel(q: Any, k: Any, v: Any) -> Any:
            attended, _ = KERNELS["flash_fwd"](q, k, v, None)
            out = nl.ndarray((128, 64), dtype=q.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.load(attended[0, 0, 0:128, :]) * 2.0)
            return out

        tensors = shapes("bf16", (1, 1, 64, 512), (1, 1, 64, 512), (1, 1, 512, 64))
        made = jit.trace(kernel, tensors)
        self.assertEqual(made.results.shape, (128, 64))
        alone = jit.trace(KERNELS["flash_fwd"], [*tensors, None])
        self.assertEqual([r.shape for r in alone.results], [(1, 1, 512, 64), (1, 1, 128, 4)])
        products = [m.summaries[0]["instructions"]["MATMUL"] for m in (made, alone)]
        self.assertEqual(products[0], products[1])


@unittest.skipUnless(has_native(), NO_NATIVE)
class Launches(unittest.TestCase):
    def test_a_grid_shares_the_heads(self) -> None:
        from trnsim import jit, nl

        tensors = shapes("bf16", (2, 4, 64, 512), (2, 2, 64, 512), (2, 2, 512, 64))

        def products(grid: Any) -> list[int]:
            with mock.patch.object(jit.session, "noted_generations", lambda: ["old"]):
                made = jit.trace(KERNELS["flash_fwd"], [*tensors, None], grid=grid)
            return [core["instructions"]["MATMUL"] for core in made.summaries]

        (whole,) = products(None)
        for grid in ((2, 2), (2, 4), (2,), (3,)):
            self.assertEqual(products(grid), [whole])
        self.assertEqual(products((nl.nc(2), 2)), [whole // 2, whole // 2])

    def test_both_passes_draw_the_same_dropout(self) -> None:
        from trnsim import nl

        def draws(kernel: str, shape_list: list[tuple[int, ...]], **more: Any) -> Counter[Any]:
            """(number of the piece, its shape), one for each dropout."""
            with recorder.tracing() as made:
                tensors = [nl.ndarray(s, nl.bfloat16, buffer=nl.shared_hbm) for s in shape_list]
                seed = nl.ndarray((1,), nl.int32, buffer=nl.shared_hbm)
                KERNELS[kernel].func(*tensors, seed, dropout_p=0.25, **more)
            found, number = [], 0.0
            for one in made.made:
                if one.name == "TENSOR_SCALAR" and list(one.args[1].shape) == [1, 1]:
                    number = one.args[4]
                elif one.name == "DROPOUT":
                    found.append((number, tuple(one.args[1].shape)))
            self.assertTrue(all(count == 1 for count in Counter(found).values()))
            return Counter(found)

        head, values, lse = (1, 2, 64, 1152), (1, 2, 1152, 64), (1, 2, 128, 9)
        for causal in (False, True):
            forward = draws("flash_fwd", [head, head, values], use_causal_mask=causal)
            backward = draws("flash_attn_bwd", [head] * 5 + [lse], use_causal_mask=causal)
            self.assertEqual(forward, backward)
            self.assertEqual(len(forward), 30 if causal else 54)  # of 9 x 3 a head

    def test_wrong_shapes_are_refused_at_the_call(self) -> None:
        from trnsim import jit

        head, values = (1, 1, 64, 512), (1, 1, 512, 64)
        for kernel, given, message in (
            ("flash_fwd", [head, head, head, (1,)], r"flash_fwd: v: expected \[1, 1, 512, 64\]"),
            ("flash_fwd", [(1, 1, 64, 500), head, values, (1,)], "seq_q: expected a multiple of"),
            ("flash_fwd", [(1, 3, 64, 512), (1, 2, 64, 512), (1, 2, 512, 64), (1,)], "divides"),
            ("flash_attn_bwd", [head] * 5 + [(1, 1, 4, 128), (1,)], "lse_ref: expected"),
            ("select_and_scatter_kernel", [(1, 1, 8, 8), (1, 1, 8, 8)], "source_tensor"),
        ):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                jit.trace(KERNELS[kernel], shapes("fp32", *given))
        with self.assertRaisesRegex(ValueError, r"out_shape: expected \(1, out_h, out_w, 4\)"):
            kernel = KERNELS["resize_nearest_fixed_dma_kernel"]
            jit.trace(kernel, [*shapes("fp32", (1, 8, 8, 4)), (1, 16, 16, 3)])


@unittest.skipUnless(has_native(), NO_NATIVE)
class PrivateNames(unittest.TestCase):
    def test_sync_program(self) -> None:
        from neuronxcc.nki.language.iterators import sync_program

        with recorder.tracing() as made:
            sync_program()
            self.assertEqual(list(sync_program(3)), [0, 1, 2])
            self.assertEqual(made.names, [])
        with recorder.tracing(grid=(2,), program_ids=(1,), core=1, cores=2) as made:
            sync_program()
            self.assertEqual(made.names, ["core_barrier"])

    def test_front_ends_trace(self) -> None:
        from nki.compiler.frontend import NKIFrontend, ParserFrontend
        from trnsim import jit

        kernel = KERNELS["resize_nearest_fixed_dma_kernel"]
        image, size = trnsim.Shape("fp32", (1, 8, 8, 4)), (1, 16, 16, 4)
        wanted = jit.trace(kernel, [image, size])
        for frontend, args in (
            (ParserFrontend(kernel), (image, size)),
            (NKIFrontend(kernel, grid=1), (image, size)),
            (ParserFrontend(), (kernel, image, size)),
        ):
            made = frontend(*args)
            self.assertIs(frontend.trace, made)
            self.assertEqual((made.summaries, made.results.shape), (wanted.summaries, size))
        with self.assertRaisesRegex(ValueError, "ParserFrontend: kernel: expected a function"):
            ParserFrontend()(image)

    def test_what_is_not_published_is_refused_by_name(self) -> None:
        private = importlib.import_module("neuronxcc.nki._private.private_api")
        for name in ("attention_kernel", "mlp_kernel", "qkv_kernel", "row_tiled_mm_kernel"):
            with recorder.tracing(), self.assertRaisesRegex(ValueError, f"{name}: a private"):
                getattr(private, name)(1, 2)


if __name__ == "__main__":
    unittest.main()
