"""The kernels of traces/kernels: they compute what their references say, and trace and run.

Two ways. A NumPy stand-in for nki (traces/kernels/support) runs each kernel on numbers, which
needs nothing but NumPy. The front end traces each into a program, which the simulator runs; that
part is skipped where the native module is not built.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

KERNELS = Path(__file__).resolve().parents[2] / "traces" / "kernels"
sys.path.insert(0, str(KERNELS / "support"))

import numpy_nki  # noqa: E402
import numpy_nki_old  # noqa: E402

SIBLINGS = {path.stem for path in KERNELS.glob("*.py")}
MISSING = ""
try:
    import trnsim

    trnsim.native()
    trnsim.activate()
except ImportError as error:
    MISSING = str(error)


@dataclasses.dataclass(frozen=True)
class Case:
    """One kernel at a small size: arrays by dtype and shape, everything else as it is."""

    kernel: str  # file:function
    args: dict[str, Any]
    plain: str = "reference"  # of the module: what the kernel's own reference must equal
    cores: int = 1
    computes: bool = True  # the stand-in can run it


def bf16(*shape: int) -> tuple[str, tuple[int, ...]]:
    return ("bf16", shape)


def fp32(*shape: int) -> tuple[str, tuple[int, ...]]:
    return ("fp32", shape)


def index(values: Any) -> np.ndarray:
    return np.asarray(values, np.int32)[:, None]


PRODUCT = {"lhsT": fp32(256, 256), "rhs": fp32(256, 1024)}
LAYER = {"lhsT": fp32(256, 128), "rhs": fp32(256, 1024), "bias": fp32(1, 1024)}
HEAD = {name: fp32(128, 512) for name in "qkv"}
LONG_HEAD = {name: fp32(128, 1024) for name in "qkv"}
SCAN = {
    "u": fp32(256, 1024),
    "delta": fp32(256, 1024),
    "A": fp32(256, 4),
    "B": fp32(4, 1024),
    "C": fp32(4, 1024),
}
SQUARES = np.full((200, 384), 0.25, np.float32)  # moments that have a root
ROWS = index(np.random.default_rng(3).permutation(256)[:128])

CASES = [
    Case("matmul:tiled", PRODUCT),
    Case("matmul:tiled", {**PRODUCT, "tile_m": 128, "tile_n": 256, "tile_k": 64}),
    Case("matmul:hoisted", PRODUCT),
    Case("matmul:hoisted_lhs", {**PRODUCT, "tile_m": 128, "tile_n": 256, "tile_k": 64}),
    Case("matmul:blocked_free", {**PRODUCT, "tiles_m": 2, "tiles_n": 2}),
    Case("matmul:blocked_all", {**PRODUCT, "tiles_m": 1, "tiles_n": 2, "tiles_k": 1}),
    Case("matmul:blocked_all", {**PRODUCT, "tiles_m": 2, "tiles_n": 1, "tiles_k": 2}),
    *(
        Case(
            "matmul:blocked_order",
            {
                "lhs": bf16(256, 256),
                "rhs": bf16(256, 1024),
                "order": order,
                "tiles_m": 1,
                "tiles_n": 1,
                "tiles_k": 1,
                "transpose_lhs": transpose,
            },
            plain="blocked_order_reference",
        )
        for order, transpose in (("MNK", 0), ("NMK", 1), ("KNM", 0), ("MNK", 1))
    ),
    Case(
        "ffn:blocked",
        {
            "x": bf16(512, 512),
            "w_gate": bf16(512, 512),
            "w_up": bf16(512, 512),
            "w_down": bf16(512, 512),
            "tiles_m": 2,
            "tiles_n": 1,
            "tiles_k": 2,
        },
        plain="blocked_reference",
    ),
    Case("mlp:gelu_unfused", LAYER),
    Case("mlp:gelu_fused_scalar", LAYER),
    Case("mlp:gelu_taylor_vector", LAYER, plain="gelu_taylor_vector_reference"),
    Case("attention:fused", HEAD),
    Case("attention:fused", LONG_HEAD),
    Case("attention:unfused", HEAD),
    Case("attention:unfused", {name: bf16(128, 1024) for name in "qkv"}),
    Case(
        "flash_attention:causal",
        {"q": bf16(64, 1024), "k": bf16(64, 1024), "v": bf16(1024, 64)},
        plain="causal_plain_reference",
    ),
    Case(
        "flash_attention:decode",
        {
            "q": bf16(128, 8),
            "k_new": bf16(128, 1),
            "v_new": bf16(1, 128),
            "k_cache": bf16(128, 1024),
            "v_cache": bf16(1024, 128),
            "position": 700,
        },
        plain="decode_reference",
    ),
    Case(
        "vector_add:streamed",
        {"a": fp32(25600), "b": fp32(25600), "partitions": 128, "free": 50},
    ),
    Case("vector_add:streamed", {"a": fp32(64), "b": fp32(64), "partitions": 1, "free": 1}),
    Case("vector_add:rows", {"a": fp32(200, 384), "b": fp32(200, 384)}),
    Case("vector_add:tiles", {"a": bf16(200, 700), "b": bf16(200, 700)}),
    Case("dma:loads", {"x": fp32(8, 128, 512)}),
    Case("transpose:tensor_tiles", {"x": fp32(256, 128)}),
    Case("transpose:vector_blocks", {"x": fp32(128, 256)}),
    Case("transpose:dma", {"x": bf16(128, 256)}),
    Case("softmax:softmax", {"x": fp32(200, 1000)}),
    Case(
        "norm:rmsnorm",
        {"x": bf16(200, 768), "gamma": bf16(1, 768)},
        plain="rmsnorm_reference",
    ),
    Case(
        "norm:layernorm",
        {"x": fp32(200, 768), "gamma": fp32(1, 768), "beta": fp32(1, 768)},
        plain="layernorm_reference",
    ),
    Case("rope:rope", {"x": bf16(200, 4, 128), "cos": fp32(200, 64), "sin": fp32(200, 64)}),
    Case("scan:cumsum", {"x": fp32(130, 2500)}, plain="cumsum_reference"),
    Case(
        "scan:selective_scan",
        {
            "u": fp32(128, 256),
            "delta": fp32(128, 256),
            "A": fp32(128, 4),
            "B": fp32(4, 256),
            "C": fp32(4, 256),
        },
        plain="selective_scan_reference",
    ),
    Case("mamba:states_outside", SCAN),
    Case("mamba:channels_outside", SCAN),
    Case("mamba:channels_outside_reload", SCAN),
    Case("mamba:length_tiled", {**SCAN, "tile": 256}),
    Case("elementwise:silu", {"x": fp32(200, 384)}, plain="silu_reference"),
    Case(
        "elementwise:adamw",
        {"p": fp32(200, 384), "g": fp32(200, 384), "m": fp32(200, 384), "v": SQUARES},
        plain="adamw_reference",
    ),
    Case(
        "dense:product",
        {"lhs": fp32(128, 256), "rhs": fp32(256, 912), "block_n": 512},
        plain="product_reference",
    ),
    Case(
        "dense:transposed_product",
        {"lhsT": fp32(256, 512), "rhs": fp32(256, 912), "block_m": 256, "tile_n": 456},
        plain="transposed_product_reference",
    ),
    Case(
        "dense:swiglu",
        {
            "x": fp32(512, 512),
            "w_gate": fp32(512, 256),
            "w_up": fp32(512, 256),
            "w_down": fp32(256, 512),
        },
        plain="swiglu_reference",
    ),
    Case(
        "dense:product_softmax",
        {"lhs": fp32(2, 256, 64), "rhs": fp32(2, 64, 1024)},
        plain="product_softmax_reference",
    ),
    Case(
        "convolution:conv3x3",
        {"x": bf16(256, 18, 34), "w": bf16(3, 3, 256, 128), "bias": fp32(128, 1)},
        plain="conv3x3_reference",
    ),
    Case(
        "convolution:conv3x3_pool",
        {"x": bf16(128, 38, 34), "w": bf16(3, 3, 128, 128), "bias": fp32(128, 1)},
        plain="conv3x3_pool_reference",
    ),
    Case("moe:gather", {"tokens": bf16(256, 512), "index": ROWS}, plain="gather_reference"),
    Case(
        "moe:scatter",
        {"rows": bf16(128, 512), "index": ROWS, "count": 256},
        plain="scatter_reference",
    ),
    Case(
        "moe:expert",
        {"tokens": bf16(256, 256), "index": ROWS, "weight": bf16(256, 512), "count": 256},
        plain="expert_reference",
    ),
    Case("topk:topk", {"x": fp32(130, 400), "k": 16}, plain="topk_plain_reference"),
    Case("fp8:quantize", {"x": bf16(200, 512)}, plain="quantize_reference"),
    Case(
        "fp8:double_row",
        {"lhsT": ("fp8_e4m3", (512, 128)), "rhs": ("fp8_e4m3", (512, 1024))},
        plain="double_row_reference",
    ),
    Case("two_cores:split_m", PRODUCT, cores=2),
    Case("two_cores:split_k", PRODUCT, cores=2, computes=False),
]

OLD_CASES = [
    Case("old/matmul:tiled", PRODUCT),
    Case("old/matmul:hoisted", PRODUCT),
    Case("old/matmul:blocked_free", {**PRODUCT, "tiles_m": 2, "tiles_n": 2}),
    Case("old/matmul:blocked_all", {**PRODUCT, "tiles_m": 1, "tiles_n": 2, "tiles_k": 1}),
    Case("old/attention:fused", HEAD),
    Case("old/attention:fused", LONG_HEAD),
    Case("old/softmax:softmax", {"x": fp32(200, 1000)}),
    Case("old/norm:rmsnorm", {"x": bf16(200, 768), "gamma": bf16(1, 768)}),
]


def title(case: Case) -> str:
    given = ", ".join(
        f"{name}={value[0]}{list(value[1])}" if isinstance(value, tuple) else f"{name}={value}"
        for name, value in case.args.items()
        if not isinstance(value, np.ndarray)
    )
    return f"{case.kernel}({given})"


def arrays(case: Case) -> dict[str, Any]:
    """The case's arguments as numbers, the same every time."""
    rng = np.random.default_rng(1)

    def made(value: Any) -> Any:
        if isinstance(value, tuple):
            return rng.normal(0.0, 0.5, value[1]).astype(np.float32)
        return value

    return {name: made(value) for name, value in case.args.items()}


def computing(file: str) -> types.ModuleType:
    """A kernel's module over the NumPy stand-in."""
    path = KERNELS / f"{file}.py"
    spec = importlib.util.spec_from_file_location(f"computing_{file.replace('/', '_')}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        with (numpy_nki_old if file.startswith("old/") else numpy_nki).installed():
            spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
        sys.modules.pop("matmul", None)
    return module


def own_reference(module: types.ModuleType, function: str) -> Callable[..., Any]:
    return getattr(module, f"{function}_reference", None) or module.reference


def call(reference: Callable[..., Any], given: dict[str, Any]) -> Any:
    """The reference of those arguments that it knows (block sizes make no difference to most)."""
    known = inspect.signature(reference).parameters
    return reference(**{name: value for name, value in given.items() if name in known})


class Numbers(unittest.TestCase):
    def close(self, got: Any, wanted: Any) -> None:
        if isinstance(wanted, tuple):
            self.assertEqual(len(got), len(wanted))
            for g, w in zip(got, wanted):
                self.close(g, w)
            return
        self.assertEqual(got.shape, wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())

    def test_references_agree_with_the_plain_ones(self) -> None:
        for case in CASES:
            file, function = case.kernel.split(":")
            module, given = computing(file), arrays(case)
            own, plain = own_reference(module, function), getattr(module, case.plain)
            if plain is own:
                continue
            with self.subTest(title(case)):
                self.close(call(own, given), call(plain, given))

    def test_kernels_compute_their_references(self) -> None:
        for case in CASES:
            if not case.computes:
                continue
            file, function = case.kernel.split(":")
            module = computing(file)
            with self.subTest(title(case)):
                wanted = call(own_reference(module, function), arrays(case))
                self.close(getattr(module, function)(**arrays(case)), wanted)

    def test_the_older_forms_compute_the_same(self) -> None:
        for case in OLD_CASES:
            file, function = case.kernel.split(":")
            with self.subTest(title(case)):
                wanted = call(own_reference(computing(file[4:]), function), arrays(case))
                self.close(getattr(computing(file), function)(**arrays(case)), wanted)


@unittest.skipIf(MISSING, MISSING)
class Traces(unittest.TestCase):
    """Every kernel becomes a program that the machine runs to its end."""

    def test_every_kernel_traces_and_runs(self) -> None:
        for case in CASES + OLD_CASES:
            with self.subTest(title(case)):
                if case.cores > 1:  # runs use one core so far
                    self.assertGreater(len(traced(case).data), 0)
                else:
                    self.assertGreater(ran(case).device_time_us, 1.0)

    def test_both_generations_take_the_same_time(self) -> None:
        for case in OLD_CASES:
            new = dataclasses.replace(case, kernel=case.kernel.removeprefix("old/"))
            with self.subTest(title(case)):
                old_time, new_time = ran(case).device_time_us, ran(new).device_time_us
                self.assertAlmostEqual(old_time / new_time, 1.0, delta=0.02)


def kernel_of(case: Case) -> tuple[Any, dict[str, Any]]:
    """The kernel as the front end loads it, and its arguments."""
    from trnsim import loader

    file, function = case.kernel.split(":")
    for name in [n for n in sys.modules if n.removeprefix("_kernel_") in SIBLINGS]:
        del sys.modules[name]  # old/ has modules of the same names
    kernel = loader.find_kernel(loader.load(KERNELS / f"{file}.py"), function)
    given = {
        name: trnsim.Shape(*value) if isinstance(value, tuple) else value
        for name, value in case.args.items()
    }
    return kernel, given


def traced(case: Case) -> Any:
    """The trace of a case for its number of cores."""
    from trnsim import jit

    kernel, given = kernel_of(case)
    return jit.trace(kernel, (), given, grid=(case.cores,))


def ran(case: Case) -> Any:
    """The report of a case's run on a trn2.3xlarge."""
    kernel, given = kernel_of(case)
    return trnsim.run(kernel, **given, config="trn2.3xlarge")


if __name__ == "__main__":
    unittest.main()
