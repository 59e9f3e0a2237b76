"""Files of kernels are imported as they are; what is missing is stood in for, or named."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from trace_support import NO_NATIVE, UNTIDY, has_native, trnsim
from trnsim import loader, session, stand_in


class Isolated(unittest.TestCase):
    """Each test imports as if it were the first."""

    def setUp(self) -> None:
        self.modules = set(sys.modules)
        self.path = list(sys.path)
        self.meta_path = list(sys.meta_path)

    def tearDown(self) -> None:
        loader.remove()
        for name in set(sys.modules) - self.modules:
            if not name.startswith(("trnsim", "numpy")):
                del sys.modules[name]
        sys.path[:] = self.path
        sys.meta_path[:] = self.meta_path


class OwnFolder(Isolated):
    """Files in a folder of their own; they need neither NKI nor the compiled module."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, name: str, text: str, **kwargs: Any) -> loader.Loaded:
        return loader.load(self.write(name, text), **kwargs)


class Files(OwnFolder):
    def test_names_with_dots_dashes_and_leading_digits(self) -> None:
        for number, name in enumerate(("3d.conv.v2.py", "my-kernel.py", "1.py", "a b.py")):
            loaded = self.load(name, f"def kernel():\n    return {number}\n")
            self.assertEqual(loader.find_kernel(loaded, "kernel")(), number)

    def test_a_file_named_as_a_module_of_python_hides_it_from_nobody(self) -> None:
        random = sys.modules.get("random")
        loaded = self.load("random.py", "def kernel():\n    return 'ours'\n")
        self.assertEqual(loader.find_kernel(loaded, "kernel")(), "ours")
        self.assertIs(sys.modules.get("random"), random)

    def test_a_guard_of_main_is_not_executed(self) -> None:
        loaded = self.load("a.py", "ran = 0\nif __name__ == '__main__':\n    ran = 1\n")
        self.assertEqual(loaded.scope["ran"], 0)

    def test_a_failing_statement_does_not_take_the_kernel_with_it(self) -> None:
        loaded = self.load("b.py", "1 / 0\n\ndef kernel():\n    return 1\n\nraise SystemExit(2)\n")
        self.assertEqual(loader.find_kernel(loaded, "kernel")(), 1)
        self.assertEqual([failure.line for failure in loaded.failures], [1, 6])
        self.assertIn("b.py:1: ZeroDivisionError", str(loaded.failures[0]))

    def test_future_imports_hold_for_the_whole_file(self) -> None:
        text = "from __future__ import annotations\n\ndef kernel(a: no_such_name):\n    return 1\n"
        self.assertEqual(loader.find_kernel(self.load("c.py", text), "kernel")(0), 1)

    def test_the_files_own_arguments_are_only_its_name(self) -> None:
        loaded = self.load("d.py", "import sys\nseen = list(sys.argv)\n")
        self.assertEqual(loaded.scope["seen"], [str(self.folder / "d.py")])

    def test_a_kernel_under_a_condition_that_does_not_hold(self) -> None:
        loaded = self.load("e.py", "if 1 > 2:\n    def kernel():\n        return 7\n")
        self.assertEqual(loader.find_kernel(loaded, "kernel")(), 7)

    def test_a_syntax_error_names_its_line(self) -> None:
        with self.assertRaisesRegex(loader.LoadError, r"f\.py:2: SyntaxError: "):
            self.load("f.py", "x = 1\ndef (:\n")

    def test_a_missing_file_and_a_missing_kernel_are_named(self) -> None:
        with self.assertRaisesRegex(loader.LoadError, "none.py: No such file"):
            loader.load(self.folder / "none.py")
        loaded = self.load("g.py", "def outer():\n    def inner():\n        pass\n1 / 0\n")
        with self.assertRaisesRegex(
            loader.LoadError, r"g\.py:2: inner is inside of function outer"
        ):
            loader.find_kernel(loaded, "inner")
        with self.assertRaisesRegex(loader.LoadError, r"no kernel other\n.*failed:\n.*g\.py:4"):
            loader.find_kernel(loaded, "other")

    def test_relative_imports_without_packages(self) -> None:
        self.write("top/common.py", "value = 3\n")
        self.write("top/a/b/neighbour.py", "from ...common import value\n")
        loaded = self.load(
            "top/a/b/k.py", "from .neighbour import value\n\ndef kernel():\n    return value\n"
        )
        self.assertEqual(loader.find_kernel(loaded, "kernel")(), 3)

    def test_a_file_is_one_module_by_whatever_name_it_is_imported(self) -> None:
        self.write("pkg/__init__.py", "from .k import *\nfrom .k import Config\n")
        text = "class Config:\n    pass\n\ndef kernel():\n    import pkg\n    return pkg.Config\n"
        loaded = self.load("pkg/k.py", text)
        self.assertIs(loader.find_kernel(loaded, "kernel")(), loaded.scope["Config"])

    def test_imports_of_its_own_package_by_name_are_the_same_modules(self) -> None:
        for folder, marker in (("src", "src/__init__.py"), ("other", "other/none.txt")):
            self.write(marker, "")
            self.write(f"{folder}/lib_{folder}/core/__init__.py", "")
            self.write(f"{folder}/lib_{folder}/core/types.py", "class View:\n    pass\n")
            loaded = self.load(
                f"{folder}/lib_{folder}/core/k.py",
                f"from lib_{folder}.core.types import View\nfrom .types import View as Same\n",
            )
            self.assertIs(loaded.scope["View"], loaded.scope["Same"])

    def test_a_folder_named_like_our_packages_does_not_hide_them(self) -> None:
        for marker in ("kernels/nki/none.txt", "kernels/nki/__init__.py"):
            self.write(marker, "")
            path = self.write(
                "kernels/nki/norm.py",
                "from importlib.util import find_spec\nspec = find_spec('nki')\n",
            )
            self.assertTrue(session.is_ours(loader.load(path).scope["spec"].origin), marker)

    def test_a_package_whose_init_fails_in_part_still_serves_its_files(self) -> None:
        self.write("pkg/__init__.py", "from . import not_there\nfrom .good import *\n")
        self.write("pkg/good.py", "value = 4\n")
        loaded = self.load("pkg/k.py", "from .good import value\n")
        self.assertEqual(loaded.scope["value"], 4)
        self.assertIn("__init__.py:1: ImportError", str(loaded.failures[0]))
        other = self.load("wrapper.py", "from pkg.good import value\n")
        self.assertEqual(other.scope["value"], 4)

    def test_a_misspelt_part_of_ones_own_stays_an_import_error(self) -> None:
        self.write("pkg/__init__.py", "")
        self.write("pkg/helpers.py", "")
        for text in ("from .helprs import x\n", "from pkg.helprs import x\n"):
            with self.assertRaisesRegex(loader.LoadError, r"k\.py:1: ModuleNotFoundError.*helprs"):
                self.load("pkg/k.py", text)
        self.write("utils.py", "")
        with self.assertRaisesRegex(loader.LoadError, r"s\.py:1: ModuleNotFoundError.*'utlis'"):
            self.load("s.py", "import utlis\n")

    def test_search_folders_and_folders_above_are_looked_in(self) -> None:
        self.write("lib/far.py", "value = 5\n")
        text = "from far import value\n"
        self.assertEqual(self.load("x.py", text, search=[self.folder / "lib"]).scope["value"], 5)
        self.write("repo/common/things.py", "value = 6\n")
        loaded = self.load("repo/kernels/k.py", "from common.things import value\n")
        self.assertEqual(loaded.scope["value"], 6)
        with self.assertRaisesRegex(loader.LoadError, "no such folder"):
            self.load("x.py", text, search=[self.folder / "nowhere"])


class StandIns(OwnFolder):
    """No test machine has a package of this name."""

    def test_it_serves_as_decorator_base_type_and_argument(self) -> None:
        loaded = self.load(
            "a.py",
            """
import absent_pkg, absent_pkg.nn.functional as F
from absent_pkg.sub import thing, Other
from typing import Optional, List

@absent_pkg.jit
def one(x: Optional[absent_pkg.Tensor] = None) -> "thing":
    return 1

@absent_pkg.mark.parametrize("x", [1, 2])
def two(x: List[thing], y: Other | None = F.relu):
    return 2

class Model(absent_pkg.nn.Module, Other):
    def __init__(self):
        super().__init__()
        self.layer = absent_pkg.nn.Linear(3, 4)

model = Model()
with absent_pkg.no_grad():
    result = model.layer(absent_pkg.rand(3)) * 2 + 1
assert result.allclose(3) and not isinstance(3, absent_pkg.Tensor)
absent_pkg.backends.flag = True
for row in result:
    raise RuntimeError
version = absent_pkg.__version__.split(".")
""",
        )
        self.assertEqual(loaded.failures, [])
        self.assertEqual((loaded.scope["one"](), loaded.scope["two"](0)), (1, 2))
        self.assertIn("absent_pkg.nn.functional", loaded.stand_ins)

    def test_a_folder_of_the_same_name_does_not_hide_it(self) -> None:
        self.write("absent_pkg/other.py", "")
        text = "from absent_pkg.core import thing\nimport absent_pkg.nn.layers as layers\n"
        loaded = self.load("a.py", text)
        self.assertEqual(stand_in.name_of(loaded.scope["thing"]), "absent_pkg.core.thing")
        self.assertIn("absent_pkg.nn.layers", loaded.stand_ins)
        for name, text in (
            ("b.py", "import absent_pkg.othr\n"),
            ("absent_pkg/c.py", "from absent_pkg.engine import thing\n"),
            ("absent_pkg/c.py", "from .engine import thing\n"),
        ):
            with self.assertRaisesRegex(loader.LoadError, "ModuleNotFoundError"):
                self.load(name, text)

    def test_installed_modules_are_not_hidden(self) -> None:
        loaded = self.load("a.py", "import json\nimport numpy as np\nx = np.zeros(3)\n")
        self.assertEqual(loaded.scope["x"].shape, (3,))
        self.assertEqual(loaded.stand_ins, [])
        with self.assertRaisesRegex(
            loader.LoadError, r"b\.py:1: ModuleNotFoundError.*json\.nothing"
        ):
            self.load("b.py", "import json.nothing\n")

    def test_what_a_build_generates_is_stood_in_for(self) -> None:
        self.write("pkg/__init__.py", "")
        loaded = self.load("pkg/a.py", "from pkg import wire_pb2\nkind = wire_pb2.Message\n")
        self.assertEqual(stand_in.name_of(loaded.scope["kind"]), "pkg.wire_pb2.Message")
        with self.assertRaisesRegex(loader.LoadError, "cannot import name 'wire'"):
            self.load("pkg/b.py", "from pkg import wire\n")

    def test_extensions_that_a_setup_builds_are_stood_in_for(self) -> None:
        self.write("top/setup.py", "Extension(\n    name='wired.core', sources=[])\n")
        self.write("top/wired/__init__.py", "from . import core\nfrom . import gone\n")
        text = "from wired.core import Kernel\nimport wired\n"
        loaded = self.load("top/tests/a.py", text)
        self.assertEqual(stand_in.name_of(loaded.scope["Kernel"]), "wired.core.Kernel")
        self.assertIn("wired/__init__.py:2: ImportError", str(loaded.failures[0]))
        with self.assertRaisesRegex(loader.LoadError, "No module named 'wired.other'"):
            self.load("top/tests/b.py", "from wired.other import Kernel\n")

    def test_optional_imports_of_installed_modules_still_fail(self) -> None:
        """As NumPy's of a package that it can do without."""
        stand_in.install()
        scope: dict[str, Any] = {}
        installed = os.path.join(os.path.dirname(os.__file__), "pretend_module.py")
        exec(
            compile("try:\n import absent_b\nexcept ImportError:\n ok = 1", installed, "exec"),
            scope,
        )
        self.assertEqual(scope["ok"], 1)

    def test_tensors_made_by_it_have_shapes(self) -> None:
        loaded = self.load(
            "a.py",
            """
import torch
a = torch.rand((128, 64), dtype=torch.bfloat16)
b = torch.zeros(4, 8).to(torch.float16).cuda()
c = torch.randn(size=(2, 3)).t().reshape(-1).bfloat16()
d = torch.empty_like(a).transpose(0, 1)
""",
        )
        shapes = [(loaded.scope[name].shape, loaded.scope[name].dtype.name) for name in "abcd"]
        self.assertEqual(
            shapes,
            [
                ((128, 64), "bfloat16"),
                ((4, 8), "float16"),
                ((6,), "bfloat16"),
                ((64, 128), "float32"),
            ],
        )

    def test_used_as_a_value_while_tracing_it_raises_by_name(self) -> None:
        loaded = self.load("a.py", "import absent_pkg\nx = absent_pkg.scale(3)\n")
        x = loaded.scope["x"]
        uses = {
            "in arithmetic": lambda: 2 * x,
            "as a truth value": lambda: bool(x),
            "as an integer": lambda: int(x),
            "as a number": lambda: float(x),
            "in a loop": lambda: list(iter(x)),
            "in a comparison": lambda: x < 3,
        }
        self.assertEqual(int(x), 0)
        with session.entered(session.Session(None)):  # type: ignore[arg-type]
            for how, use in uses.items():
                with self.assertRaisesRegex(
                    ValueError, rf"absent_pkg\.scale\(\.\.\.\): used {how}, but absent_pkg is not"
                ):
                    use()
            self.assertFalse(isinstance(3, x))
            self.assertIn("absent_pkg", f"{x}")


@unittest.skipUnless(has_native(), NO_NATIVE)
class Untidy(Isolated):
    """The untidy kernels of tests/python/data."""

    def load(self, name: str, **kwargs: Any) -> loader.Loaded:
        trnsim.activate()
        with contextlib.redirect_stdout(io.StringIO()):
            return loader.load(UNTIDY / name, **kwargs)

    def names(self, name: str) -> list[str]:
        return [kernel.name for kernel in loader.kernels(self.load(name))]

    def test_kernels_are_listed_decorated_or_not(self) -> None:
        self.assertEqual(
            self.names("3d.add.v2.py"), ["add", "scaled_by_torch", "branches_on_torch"]
        )
        self.assertEqual(self.names("runs_on_import.py"), ["copy", "after_the_exit"])
        self.assertEqual(
            self.names("under_if.py"), ["shown", "plain", "into", "maker", "made_of_64"]
        )
        self.assertEqual(
            self.names("factories.py"),
            ["scaled", "Holder.kernel", "KERNELS.tripled", "doubled", "plain", "launcher"]
            + ["Holder.own"],
        )

    def test_what_runs_on_import_is_no_trace_and_no_obstacle(self) -> None:
        loaded = self.load("runs_on_import.py")
        self.assertEqual([failure.line for failure in loaded.failures], [28, 29])
        self.assertEqual(stand_in.name_of(loaded.scope["y"]), "copy(...)")

    def test_packages_and_wrappers_share_their_classes(self) -> None:
        loaded = self.load("package/sub/deep.py")
        self.assertIs(loaded.scope["Config"], loaded.scope["Same"])


if __name__ == "__main__":
    unittest.main()
