"""Argument specs: what `--arg name=value` means, and what it is told when it means nothing."""

from __future__ import annotations

import math
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np

from trace_support import NO_NATIVE, has_native, trnsim
from trnsim import specs, stand_in
from trnsim.specs import Shape, SpecError


class Parsing(unittest.TestCase):
    def test_masks_are_tensors_of_bool(self) -> None:
        name, value = specs.parse("mask=bool[128,64]")
        self.assertEqual((name, value.dtype, value.shape), ("mask", "bool", (128, 64)))

    def test_tensors_have_a_dtype_and_a_shape(self) -> None:
        name, value = specs.parse("lhsT=bf16[4096, 2*64]")
        self.assertEqual((name, value.shape, value.dtype), ("lhsT", (4096, 128), "bf16"))
        self.assertEqual(specs.parse("x=float32[1]")[1], Shape("float32", 1))
        self.assertEqual(repr(specs.parse("x=fp8_e4m3[2,3]")[1]), "fp8_e4m3[2,3]")

    def test_python_values(self) -> None:
        values = {
            "0.125": 0.125,
            "-3": -3,
            "1/8": 0.125,
            "2**-1": 0.5,
            "True": True,
            "None": None,
            '"text"': "text",
            "'a=b'": "a=b",
            "(1,2)": (1, 2),
            "()": (),
            "[1, 'x']": [1, "x"],
            '{"a": (1, None)}': {"a": (1, None)},
            "inf": math.inf,
            "-inf": -math.inf,
        }
        for text, value in values.items():
            self.assertEqual(specs.parse(f"x={text}"), ("x", value), text)

    def test_tuples_of_tensors(self) -> None:
        value = specs.parse("x=(bf16[8,8], (fp32[4], 3))")[1]
        self.assertEqual(value, (Shape("bf16", 8, 8), (Shape("fp32", 4), 3)))

    def test_names_are_those_of_the_kernels_file(self) -> None:
        scope = {"WIDTH": 32, "np": np, "Kinds": type("Kinds", (), {"fast": 7})}
        self.assertEqual(specs.parse("x=WIDTH", scope)[1], 32)
        self.assertEqual(specs.parse("x=(WIDTH * 2, Kinds.fast)", scope)[1], (64, 7))
        self.assertIs(specs.parse("x=np.float32", scope)[1], np.float32)
        self.assertEqual(specs.parse("x=math.pi")[1], math.pi)

    def test_what_is_wrong_is_said(self) -> None:
        scope = {"WIDTH": 32, "math": math}
        wrong = {
            "x": "expected name=value",
            "1x=3": "expected name=value",
            "x=bf61[4]": r"--arg x=bf61\[4\]: expected a dtype before \[, got bf61; did you mean bf16",
            "x=bf16[4,0]": "expected sizes of at least 1",
            "x=bf16[n]": "n is neither a dtype nor",
            "x=WIDHT": "WIDHT is neither.*did you mean WIDTH",
            "x=math.ceill": "math has no ceill; did you mean ceil",
            "x=hello world": 'text is "quoted"',
            "x=Config(3)": "an object is made in Python",
            "x=a.b": "a: unknown name",
            "x=lambda: 3": "expected a tensor",
            "x=1/0": "division by zero",
            "x='a'+1": "expected arithmetic on numbers",
            "x=@/no/such.npy": "No such file",
        }
        for text, message in wrong.items():
            with self.assertRaisesRegex(SpecError, message, msg=text):
                specs.parse(text, scope)

    def test_files_give_tensors_with_contents(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "counts.npy"
            np.save(file, np.array([[3, 4]], dtype=np.int64))
            value = specs.parse(f"x=@{file}")[1]
            self.assertEqual((value.shape, value.dtype), ((1, 2), "int32"))
            self.assertEqual(int(value.contents[0, 1]), 4)
            self.assertEqual(specs.parse(f"x=bf16@{file}")[1].dtype, "bf16")
            file.write_text("no array")
            with self.assertRaisesRegex(SpecError, "expected a NumPy file"):
                specs.parse(f"x=@{file}")


class Binding(unittest.TestCase):
    def test_arguments_are_bound_by_name(self) -> None:
        def kernel(a, b, scale=1.0, *, flag=False):  # type: ignore[no-untyped-def]
            return a, b, scale, flag

        args, kwargs = specs.bind(kernel, "kernel", {"b": 2, "a": 1, "flag": True})
        self.assertEqual(kernel(*args, **kwargs), (1, 2, 1.0, True))

    def test_positional_only_variable_and_keyword_arguments(self) -> None:
        def kernel(a, /, b, *rest, **more):  # type: ignore[no-untyped-def]
            return a, b, rest, more

        args, kwargs = specs.bind(kernel, "k", {"a": 1, "b": 2, "rest": (3, 4), "other": 5})
        self.assertEqual(kernel(*args, **kwargs), (1, 2, (3, 4), {"other": 5}))
        args, kwargs = specs.bind(kernel, "k", {"a": 1, "b": 2})
        self.assertEqual(kernel(*args, **kwargs), (1, 2, (), {}))

    def test_unknown_and_missing_names_are_told_with_the_signature(self) -> None:
        def kernel(lhsT: int, rhs: int, scale: float = 1.0) -> None:
            ...

        with self.assertRaisesRegex(
            SpecError,
            r"--arg lhs: no such argument of matmul\(lhsT, rhs, scale=1.0\); did you mean",
        ):
            specs.bind(kernel, "matmul", {"lhs": 1, "rhs": 2})
        with self.assertRaisesRegex(SpecError, r"missing arguments lhsT, rhs of matmul\(lhsT, rhs"):
            specs.bind(kernel, "matmul", {})


class CallersArguments(unittest.TestCase):
    def shapes(self, value: Any) -> Any:
        return specs.shapes_in(value, "k: argument a")

    def test_arrays_become_tensors_with_contents(self) -> None:
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        value = self.shapes(array)
        self.assertEqual((value.shape, value.dtype), ((2, 3), "fp32"))
        self.assertIs(value.contents, array)
        self.assertEqual(self.shapes(np.zeros(3)).dtype, "fp32")  # 64 bits are none of the device's
        self.assertEqual(self.shapes(np.zeros(3, bool)).dtype, "uint8")
        self.assertEqual(self.shapes(np.float32(2.5)), 2.5)
        self.assertIs(self.shapes(np.float32), np.float32)

    def test_arrays_of_the_devices_types_remember_them(self) -> None:
        specs.teach_numpy()
        array = np.random.rand(4, 8).astype("bfloat16").reshape(8, 4)
        self.assertEqual(self.shapes(array).dtype, "bf16")
        absent = stand_in.StandIn("ml_dtypes.float8_e5m2", "ml_dtypes")
        self.assertEqual(self.shapes(np.zeros(3, absent)).dtype, "fp8_e5m2")

    def test_collections_are_gone_through(self) -> None:
        value = self.shapes(([np.zeros((2, 2), np.float16)], {"k": Shape("bf16", 4)}, "text", None))
        self.assertEqual(value[0][0].dtype, "fp16")
        self.assertEqual(value[1:], ({"k": Shape("bf16", 4)}, "text", None))

    def test_objects_with_shape_and_dtype_are_tensors(self) -> None:
        class Described:
            shape = (3, 4)
            dtype = "torch.bfloat16"

        self.assertEqual(self.shapes(Described()), Shape("bfloat16", 3, 4))

    def test_what_is_no_tensor_is_named(self) -> None:
        for array in (np.array(["a"]), np.array([1 + 2j])):
            with self.assertRaisesRegex(SpecError, "k: argument a: expected numbers"):
                self.shapes(array)
        with self.assertRaisesRegex(SpecError, "expected at least one dimension"):
            self.shapes(np.array(3))
        with self.assertRaisesRegex(SpecError, "expected sizes of at least 1"):
            Shape("bf16", 0, 3)


@unittest.skipUnless(has_native(), NO_NATIVE)
class WithTheLanguage(unittest.TestCase):
    def test_operations_enumerators_and_dtypes(self) -> None:
        trnsim.activate()
        import nki.isa as nisa
        import nki.language as nl

        self.assertIs(specs.parse("op=nl.add")[1], nl.add)
        self.assertEqual(specs.parse("engine=nisa.engine.vector")[1], nisa.engine.vector)
        self.assertEqual(specs.parse("dtype=bf16")[1], nl.bfloat16)
        self.assertEqual(specs.parse("dtype=nl.bfloat16")[1], nl.bfloat16)
        with self.assertRaisesRegex(SpecError, "nl has no mutliply; did you mean multiply"):
            specs.parse("op=nl.mutliply")


if __name__ == "__main__":
    unittest.main()
