"""Imports the file of a kernel as it is, whatever else the file does.

A file is run one top-level statement at a time. What fails is noted and the rest still runs, so
that a demonstration at the end of a file, which needs what is not there, does not take the kernel
with it; a failing import always stops. The file gets the name that its package's other files know
it by, and packages are made for folders that relative imports go through.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import linecache
import os
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trnsim import session, specs, stand_in


class LoadError(Exception):
    """The file, or its kernel, cannot be had; the text names file, line and cause."""


@dataclass
class Failure:
    """A top-level statement that did not run to its end."""

    file: str
    line: int
    error: BaseException

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {describe(self.error)}"


@dataclass
class Loaded:
    """A kernel's file, imported."""

    path: str
    module: types.ModuleType
    tree: ast.Module
    failures: list[Failure] = field(default_factory=list)
    stand_ins: list[str] = field(default_factory=list)

    @property
    def scope(self) -> dict[str, Any]:
        return self.module.__dict__


def load(path: str | os.PathLike[str], search: Sequence[str | os.PathLike[str]] = ()) -> Loaded:
    """Imports a file; `search` are further folders for its imports."""
    file = os.path.abspath(path)
    tree = _parse(file)
    folders = [os.path.abspath(folder) for folder in search]
    for folder in folders:
        if not os.path.isdir(folder):
            raise LoadError(f"--search {folder}: no such folder")
    error: BaseException | None = None
    least = _least_levels(file, tree)
    named = _levels_to_named_package(file)
    for up in ([named] if named is not None else []) + list(range(least, 8)):
        root = Path(file).parents[min(up, len(Path(file).parents) - 1)]
        below = Path(file).relative_to(root).parts[:-1]
        if below and below[0] in _OURS and up < 7:
            continue  # a folder named like our packages is a package below another one
        before = set(sys.modules)
        try:
            return _load_below(str(root), file, tree, folders)
        except _BeyondTop as beyond:  # a relative import goes further up than we thought
            error = beyond.error
            for name in set(sys.modules) - before:
                if _within(sys.modules[name], str(root)):
                    del sys.modules[name]
    raise LoadError(f"{file}: {error}")


class _BeyondTop(Exception):
    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def _parse(file: str) -> ast.Module:
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        raise LoadError(f"{file}: {error.strerror or error}") from None
    try:
        return ast.parse(source, file)
    except (SyntaxError, ValueError) as error:
        raise LoadError(describe_syntax(error, file)) from None


def describe_syntax(error: Exception, file: str) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename or file}:{error.lineno or 1}: SyntaxError: {error.msg}"
    return f"{file}: {error}"


def _least_levels(file: str, tree: ast.Module) -> int:
    """How many folders up the root of the file's package is, at least."""
    packages = 0
    folder = Path(file).parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        packages += 1
        folder = folder.parent
    relative = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return max([packages, *relative])


_OURS = ("nki", "neuronxcc")  # imports of these are of the packages that trn-sim brings
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


def _levels_to_named_package(file: str) -> int | None:
    """How far up the root is, when imports hereabouts name a folder that the file is in."""
    names: set[str] = set()
    for neighbour in sorted(Path(file).parent.glob("*.py"))[:64]:
        try:
            names.update(_IMPORTED.findall(neighbour.read_text(errors="replace")))
        except OSError:
            continue
    for up, folder in enumerate(list(Path(file).parents)[:8], 1):
        known = folder.name in sys.stdlib_module_names or folder.name in _OURS
        if folder.name in names and not known:
            return up
    return None


def _load_below(root: str, file: str, tree: ast.Module, search: list[str]) -> Loaded:
    parts = list(Path(file).relative_to(root).parts)
    names = [_module_name(part) for part in parts[:-1]]
    own = "__init__" if parts[-1] == "__init__.py" else _module_name(Path(file).stem)
    loaded = Loaded(file, types.ModuleType(own), tree)
    first_of_package = names[0] if names else own
    remove()
    specs.teach_numpy()
    sys.meta_path.insert(0, _Packages(loaded.failures))
    finder = stand_in.install(own=[first_of_package, *_siblings(root, search, file)])
    already = len(finder.found)
    _set_path(root, file, search, script=not names)
    package = ""
    full = ".".join(names if own == "__init__" else [*names, own])
    if getattr(sys.modules.get(full), "__file__", None) == file:
        del sys.modules[full]  # of an earlier load
    with _script(file):
        folder = Path(root)
        for name, part in zip(names, parts):
            folder = folder / part
            package = f"{package}.{name}" if package else name
            if own == "__init__" and folder == Path(file).parent:
                break
            _make_package(package, folder, loaded)
        there = sys.modules.get(full)
        if there is not None and getattr(there, "__file__", None) == file:
            loaded.module = there  # a package's __init__ has imported it
            loaded.stand_ins = finder.found[already:]
            return loaded
        loaded.module = _module(_free_name(full, file), file, package)
        if own == "__init__":
            loaded.module.__path__ = [str(Path(file).parent)]
        _run(tree, loaded.module, loaded.failures, imports_must_work=True)
    loaded.stand_ins = finder.found[already:]
    return loaded


def _module_name(stem: str) -> str:
    """A name that an import statement could have: dots, dashes and leading digits are replaced."""
    name = re.sub(r"\W", "_", stem)
    return f"_{name}" if not name or name[0].isdigit() else name


def _free_name(name: str, file: str) -> str:
    """The name, unless a module of another file has it already (a kernel in `random.py`)."""
    taken = sys.modules.get(name)
    if taken is None or getattr(taken, "__file__", None) == file:
        in_python = name in sys.builtin_module_names or name in sys.stdlib_module_names
        return f"_kernel_{name}" if in_python else name
    return f"_kernel_{name}"


def _module(name: str, file: str, package: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__file__ = file
    module.__package__ = package
    module.__spec__ = importlib.util.spec_from_file_location(name, file)
    module.__loader__ = module.__spec__.loader if module.__spec__ else None
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)
    return module


def _make_package(name: str, folder: Path, loaded: Loaded) -> None:
    """The package of a folder on the way to the file; what fails in its __init__ is noted."""
    taken = sys.modules.get(name)
    if taken is not None and str(folder) in list(getattr(taken, "__path__", [])):
        return
    init = folder / "__init__.py"
    if not init.is_file():
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        module.__package__ = name
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
    else:
        module = _module(name, str(init), name)
        module.__path__ = [str(folder)]
        try:
            tree = _parse(str(init))
        except LoadError as error:
            loaded.failures.append(Failure(str(init), 1, error))
            return
        _run(tree, module, loaded.failures, imports_must_work=False)
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


class _Packages:
    """Finds the user's packages on a path, and lets their __init__ files fail in part."""

    def __init__(self, failures: list[Failure]) -> None:
        self.failures = failures

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        file = spec.origin if spec is not None else None
        if file is None or os.path.basename(file) != "__init__.py":
            return None
        if session.is_python(file) or session.is_ours(file):
            return None
        spec.loader = _PackageLoader(name, file, self.failures)
        return spec


class _PackageLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, file: str, failures: list[Failure]) -> None:
        super().__init__(name, file)
        self.failures = failures

    def exec_module(self, module: types.ModuleType) -> None:
        _run(_parse(self.path), module, self.failures, imports_must_work=False)


def remove() -> None:
    """Takes away what `load` put into sys.meta_path."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Packages)]
    stand_in.remove()


def _run(
    tree: ast.Module, module: types.ModuleType, failures: list[Failure], *, imports_must_work: bool
) -> None:
    file = str(module.__file__)
    scope = module.__dict__
    flags = _future_flags(tree)
    body = list(tree.body)
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        if isinstance(body[0].value.value, str):
            scope["__doc__"] = body[0].value.value
    for statement in body:
        one = ast.Module([statement], [])
        try:
            code = compile(one, file, "exec", flags=flags, dont_inherit=True)
            exec(code, scope)
        except (SyntaxError, LoadError) as error:
            raise LoadError(describe_syntax(error, file)) from None
        except ImportError as error:
            if _beyond_top(error):
                raise _BeyondTop(error) from None
            if imports_must_work and not session.tracing() and _is_import(statement, error, file):
                raise LoadError(import_message(error, file, statement.lineno)) from None
            failures.append(Failure(file, statement.lineno, error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, too: a file may end itself
            failures.append(Failure(file, _line_in(error, file) or statement.lineno, error))


def _future_flags(tree: ast.Module) -> int:
    import __future__

    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= getattr(__future__, alias.name).compiler_flag
    return flags


def _beyond_top(error: ImportError) -> bool:
    text = str(error)
    return "beyond top-level package" in text or "no known parent package" in text


def _is_import(statement: ast.stmt, error: ImportError, file: str) -> bool:
    """Whether the file's own statement is what imports: not a call that happens to fail so."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return True
    line = _line_in(error, file)
    return any(
        isinstance(node, (ast.Import, ast.ImportFrom))
        and node.lineno <= (line or 0)
        and (line or 0) <= (node.end_lineno or node.lineno)
        for node in ast.walk(statement)
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
    )


def import_message(error: ImportError, file: str, line: int) -> str:
    """`file:line: ImportError: ...`, of the innermost user's file that imports."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not session.is_ours(frame.filename) and not session.is_python(frame.filename):
            file, line = frame.filename, frame.lineno or line
            break
    return f"{file}:{line}: {describe(error)}"


def describe(error: BaseException) -> str:
    if isinstance(error, (session.error_type(), LoadError)):
        return str(error)
    if isinstance(error, SystemExit):
        return f"the file ends itself (exit {error.code})"
    text = str(error)
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({error.filename}:{error.lineno})"
    if isinstance(error, AttributeError) and error.name and "did you mean" not in text:
        text += specs.near(error.name, dir(error.obj))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line_in(error: BaseException, file: str) -> int | None:
    line = None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:
            line = frame.lineno
    return line


def _set_path(root: str, file: str, search: list[str], *, script: bool) -> None:
    """sys.path: ours, the folders given, the package's root; a script's own folder comes first."""
    folder = str(Path(file).parent)
    front = [session.SHADOW, *([folder] if script else []), *search, root]
    if Path(file).is_relative_to(os.getcwd()):
        front.append(os.getcwd())
    seen: list[str] = []
    for place in [*front, *(entry for entry in sys.path if entry), folder]:
        if place not in seen:
            seen.append(place)
    sys.path[:] = seen
    importlib.invalidate_caches()


def _siblings(root: str, search: list[str], file: str) -> list[str]:
    """Names that are the user's own: a misspelt part of them stays an error."""
    names = []
    for folder in {root, str(Path(file).parent), *search}:
        try:
            entries = sorted(os.listdir(folder))
        except OSError:
            continue
        for entry in entries:
            stem, suffix = os.path.splitext(entry)
            if suffix == ".py" or not suffix and os.path.isdir(os.path.join(folder, entry)):
                names.append(stem)
    return names


def _within(module: Any, root: str) -> bool:
    place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
    return str(place).startswith(root.rstrip("/") + "/") or isinstance(module, stand_in._Module)


_importing = 0


def importing() -> bool:
    """Whether a kernel's file is being imported: kernels that it calls are not traced then."""
    return _importing > 0


@contextmanager
def _script(file: str) -> Iterator[None]:
    """While a file is imported: it sees itself in sys.argv."""
    global _importing
    argv = sys.argv
    sys.argv = [file]
    _importing += 1
    try:
        yield
    finally:
        _importing -= 1
        sys.argv = argv


def find_kernel(loaded: Loaded, name: str) -> Callable[..., Any]:
    """The function or decorated kernel of that name; a dotted name goes into classes and objects."""
    value: Any = loaded.module
    for part in name.split("."):
        if not hasattr(value, part) and value is loaded.module:
            _define(loaded, part)
        try:
            if value is loaded.module:
                value = value.__dict__[part]
            else:
                value = value[part] if isinstance(value, dict) else getattr(value, part)
        except (AttributeError, KeyError):
            raise LoadError(_not_found(loaded, name)) from None
    if stand_in.name_of(value) is not None:
        raise LoadError(
            f"{loaded.path}: {name} comes from {stand_in.name_of(value)}, which is not installed"
        )
    if not callable(value):
        raise LoadError(f"{loaded.path}: {name} is no kernel but {value!r}")
    return value


def _define(loaded: Loaded, name: str) -> None:
    """Runs a definition that stands under an `if` that does not hold here, or under a guard."""
    for statement in loaded.tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        for node in _outside_functions(statement):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                one = ast.Module([node], [])
                flags = _future_flags(loaded.tree)
                try:
                    exec(
                        compile(one, loaded.path, "exec", flags=flags, dont_inherit=True),
                        loaded.scope,
                    )
                except Exception as error:
                    loaded.failures.append(Failure(loaded.path, node.lineno, error))
                return


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _outside_functions(child)


def _not_found(loaded: Loaded, name: str) -> str:
    first = name.split(".")[0]
    for outer in ast.walk(loaded.tree):
        if isinstance(outer, (ast.FunctionDef, ast.ClassDef)):
            for node in ast.walk(outer):
                if node is not outer and isinstance(node, ast.FunctionDef) and node.name == first:
                    kind = "class" if isinstance(outer, ast.ClassDef) else "function"
                    return (
                        f"{loaded.path}:{node.lineno}: {name} is inside of {kind} {outer.name}: "
                        "trace a function of a file of your own that makes it and calls it"
                    )
    known = [kernel.name for kernel in kernels(loaded)]
    message = f"{loaded.path}: no kernel {name}{specs.near(name, known)}"
    if known and "did you mean" not in message:
        message += f"; there is {', '.join(known)}"
    causes = [str(failure) for failure in loaded.failures]
    if causes:
        message += "\n  these statements failed:\n    " + "\n    ".join(causes)
    return message


@dataclass(frozen=True)
class Kernel:
    """An entry of `trn-trace --list`."""

    name: str
    line: int
    decorated: bool
    signature: str
    makes: bool = False  # a function that returns a kernel


def kernels(loaded: Loaded) -> list[Kernel]:
    """Decorated kernels, functions of the file that call the NKI packages, and what makes such."""
    found = []
    for name, value, line in _candidates(loaded):
        decorated = bool(getattr(value, "_trnsim_kernel", False))
        plain = isinstance(value, types.FunctionType) and value.__module__ == loaded.module.__name__
        makes = plain and bool(made_inside(loaded, value))
        if not decorated and not makes and not (plain and _calls_nki(value)):
            continue
        function = getattr(value, "__wrapped__", value)
        code = getattr(function, "__code__", None)
        if code is None or line is None and code.co_filename != loaded.path:
            continue
        signature = specs.signature_of(function)
        shown = specs._short(signature) if signature else "(...)"
        own = code.co_filename == loaded.path
        first = code.co_firstlineno if own or line is None else line
        found.append(Kernel(name, first, decorated, shown, makes))
    return sorted(found, key=lambda kernel: (kernel.line, kernel.name))


def _candidates(loaded: Loaded) -> Iterator[tuple[str, Any, int | None]]:
    """Names of the file and what they are; the line of an assignment that gave the name."""
    assigned: dict[str, int] = {}
    for statement in loaded.tree.body:
        for node in [statement, *_outside_functions(statement)]:
            if isinstance(node, ast.Assign) and not isinstance(
                node.value, (ast.Name, ast.Attribute)
            ):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        assigned[target.id] = node.lineno
    for name, value in list(loaded.scope.items()):
        if name.startswith("__"):
            continue
        line = assigned.get(name)
        yield name, value, line
        if isinstance(value, dict) and line is not None:
            for key, part in value.items():
                if isinstance(key, str) and key.isidentifier() and _is_kernel(part):
                    yield f"{name}.{key}", part, line
        elif isinstance(value, type) and value.__module__ == loaded.module.__name__:
            for key, part in list(vars(value).items()):
                part = getattr(part, "__func__", part)
                if _is_kernel(part):
                    yield f"{name}.{key}", part, None


def _is_kernel(value: Any) -> bool:
    return bool(getattr(value, "_trnsim_kernel", False)) and not isinstance(value, type)


def made_inside(loaded: Loaded, factory: Any) -> list[str]:
    """Names of the decorated kernels that a function of the file defines and returns."""
    code = getattr(factory, "__code__", None)
    if code is None or code.co_filename != loaded.path:
        return []
    for node in ast.walk(loaded.tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if code.co_firstlineno in (
                node.lineno,
                *(d.lineno for d in node.decorator_list),
            ):
                return _made_by(node, getattr(factory, "__globals__", loaded.scope))
    return []


def _made_by(factory: ast.FunctionDef, scope: dict[str, Any]) -> list[str]:
    inside = list(_outside_functions(factory))
    functions = {node.name: node for node in inside if isinstance(node, ast.FunctionDef)}
    kernels = {
        name
        for name, node in functions.items()
        if any(_is_decorator(one, scope) for one in node.decorator_list)
    }
    launchers = {  # plain functions that launch a kernel of the factory
        name
        for name, node in functions.items()
        if kernels & {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    }
    made = []
    for node in inside:
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        calls = [call for call in ast.walk(node.value) if isinstance(call, ast.Call)]
        called = {id(call.func) for call in calls}
        decorated = any(_is_decorator(call.func, scope) for call in calls)
        for part in ast.walk(node.value):
            if isinstance(part, ast.Name) and part.id in functions and id(part) not in called:
                if decorated or part.id in kernels | launchers:
                    made.append(part.id)
    return list(dict.fromkeys(made))


def _is_decorator(node: ast.expr, scope: dict[str, Any]) -> bool:
    """Whether an expression is one of the decorators that make kernels."""
    if isinstance(node, ast.Call):
        node = node.func
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    value: Any = scope.get(node.id)
    for part in reversed(parts):
        value = getattr(value, part, None)
    return getattr(value, "__module__", "") == "trnsim.jit"


def make(loaded: Loaded, factory: Any, name: str, arguments: dict[str, Any]) -> Any:
    """The kernel that a factory returns; takes the factory's own arguments out of the given."""
    signature = specs.signature_of(factory)
    own = {key for key in arguments if signature is not None and key in signature.parameters}
    args, kwargs = specs.bind(factory, name, {key: arguments.pop(key) for key in sorted(own)})
    made = factory(*args, **kwargs)
    parts = made if isinstance(made, (tuple, list)) else [made]
    inside = made_inside(loaded, factory)
    kernels = [
        part
        for part in parts
        if _is_kernel(part) or isinstance(part, types.FunctionType) and part.__name__ in inside
    ]
    if len(kernels) != 1:
        names = ", ".join(getattr(kernel, "__name__", "kernel") for kernel in kernels) or repr(made)
        raise LoadError(
            f"{loaded.path}: {name} returns {names}: expected one kernel; trace a function of a "
            "file of your own that calls it"
        )
    return kernels[0]


def _calls_nki(function: types.FunctionType) -> bool:
    for name in function.__code__.co_names:
        module = getattr(function.__globals__.get(name), "__name__", "")
        if isinstance(module, str) and module.startswith(("nki.", "neuronxcc.nki.")):
            return True
    return False


def user_lines(error: BaseException) -> list[str]:
    """The kernel's own frames of an exception, outermost first."""
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        if session.is_ours(frame.filename) or session.is_python(frame.filename):
            continue
        source = linecache.getline(frame.filename, frame.lineno or 0).strip()
        lines.append(f"{frame.filename}:{frame.lineno}: in {frame.name}: {source}")
    return lines
