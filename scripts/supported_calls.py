#!/usr/bin/python3
"""Writes the reference pages of the NKI front end: the supported calls, and the builder's options.

Both follow from the code: names and refusals from trnsim.packages, instructions of nisa calls from
the source of trnsim.nisa, those of nl calls by tracing each on tiles, options from the builder.

  --write  rewrites docs/reference/nki-calls.md and docs/reference/frontend-options.md
  --check  fails when one of them is stale (the default)

Example: scripts/supported_calls.py --write
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"

try:
    import trnsim
except ImportError:  # PYTHONPATH is not set: the build tree's
    sys.path.insert(0, str(ROOT / "build" / "release" / "share" / "trn-sim" / "python"))
    import trnsim

PACKAGES = {  # prefix: title, module of the newer and of the older generation
    "nl": ("nki.language", "nki.language", "neuronxcc.nki.language"),
    "nisa": ("nki.isa", "nki.isa", "neuronxcc.nki.isa"),
    "ncoll": ("nki.collectives", "nki.collectives", "neuronxcc.nki.nccl"),
    "ncc": ("nki.compiler", "nki.compiler", "neuronxcc.nki.compiler"),
    "nt": ("nki.typing", "nki.typing", "neuronxcc.nki.typing"),
}
OTHERS = {  # of modules below nki and neuronxcc.nki
    "kernels.attention": """FlashConfig flash_attn_bwd flash_fwd
        fused_self_attn_for_SD_small_head_size""",
    "kernels.vision": "resize_nearest_fixed_dma_kernel select_and_scatter_kernel",
    "_private_kernels.RoPE": "RoPE_sbuf",
    "_private_kernels.qkv": "NormType rmsnorm_qkv_isa_kernel",
    "_private.private_api": """attention_kernel cc_div column_tiled_mm_kernel core_barrier do_while
        mlp_fused_add_kernel mlp_kernel qkv_fused_add_kernel qkv_kernel row_tiled_mm_kernel sendrecv
        """,
    "compiler.backends.neuron.indexing": "TileIndex",
    "compiler.frontend": "NKIFrontend ParserFrontend",
    "compiler.ncc_driver": "CompileOptions CompiledKernel",
    "language.iterators": "sync_program",
}
BUILDER = {  # what methods of the builder emit
    "matmul": ["LDWEIGHTS", "MATMUL"],
    "transpose": ["LDWEIGHTS", "MATMUL", "TRANSPOSE"],
    "copy": ["COPY", "CAST"],
    "activation": ["ACTIVATE", "ACT_READ_ACCUMULATOR"],
    "dma_copy": ["DMA_DIRECT2D"],
    "dma_transpose": ["DMA_TRANSPOSE"],
    "dma_compute": ["DMA_COMPUTE"],
    "core_barrier": ["CORE_BARRIER"],
    "sendrecv": ["SENDRECV"],
    "register": ["REGISTER_MOVE"],
    "register_move": ["REGISTER_MOVE"],
    "register_load": ["TENSOR_LOAD"],
    "register_store": ["REGISTER_STORE"],
}
ROWS, COLUMNS = 128, 512  # of the tiles that nl calls are tried with


def known_instructions() -> set[str]:
    """Every instruction, as the generated docs/reference/isa.md has them."""
    text = (REFERENCE / "isa.md").read_text()
    return {line[3:].strip() for line in text.splitlines() if line.startswith("## ")}


class Source:
    """Which instructions a function can emit, read off the source of its module and of calls.py."""

    def __init__(self, mnemonics: set[str], module: Any) -> None:
        from trnsim import calls

        self.mnemonics = mnemonics
        self.functions: dict[tuple[str, str], ast.FunctionDef] = {}
        self.imported: dict[str, str] = {}  # names of the module: names of calls.py
        self.module = module.__name__
        self.helpers = calls.__name__
        for part in (calls, module):
            for node in ast.parse(Path(part.__file__).read_text()).body:
                if isinstance(node, ast.FunctionDef):
                    self.functions[part.__name__, node.name] = node
                elif isinstance(node, ast.ImportFrom) and node.module == self.helpers:
                    self.imported |= {a.asname or a.name: a.name for a in node.names}

    def emitted(self, name: str) -> list[str]:
        """In the order of the source, without repeats; helpers count."""
        found = self._of((self.module, name), frozenset())
        return [m for m in dict.fromkeys(found) if m in self.mnemonics]

    def _of(self, key: tuple[str, str], seen: frozenset[tuple[str, str]]) -> Iterator[str]:
        module, name = key
        if key not in self.functions and module == self.module:
            key = (self.helpers, self.imported.get(name, ""))
        node = self.functions.get(key)
        if node is None or key in seen or name == "to_sbuf":
            return
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
            if not isinstance(part, ast.Call):
                continue
            if isinstance(part.func, ast.Attribute):
                yield from BUILDER.get(part.func.attr, [])
            elif isinstance(part.func, ast.Name):
                yield from self._of((key[0], part.func.id), seen | {key})


def of_trace(kernel: Callable[..., None], **tensors: Any) -> list[str] | None:
    """The instructions of a kernel in order of their names; None when it does not trace."""
    from trnsim import jit

    try:
        made = jit.trace(kernel, (), tensors)
    except Exception:  # noqa: BLE001 -- arguments that a call does not take fail in many ways
        return None
    counts = dict(made.summaries[0]["instructions"])
    return [name for name in counts if name != "ACT_TABLE_LOAD"]


def special_cases() -> dict[str, Callable[[Any, Any, Any], Any]]:
    """Calls of nl that take more than tiles: of a tile, a square tile, and a tensor in HBM."""
    from trnsim import nl

    def loop(tile: Any, square: Any, hbm: Any) -> None:
        for _ in nl.dynamic_range(4):
            pass

    return {
        "atomic_rmw": lambda tile, square, hbm: nl.atomic_rmw(hbm, tile, nl.add),
        "broadcast_to": lambda tile, square, hbm: nl.broadcast_to(tile[0:1, :], (ROWS, COLUMNS)),
        "dropout": lambda tile, square, hbm: nl.dropout(tile, 0.1),
        "dynamic_range": loop,
        "full": lambda tile, square, hbm: nl.full((ROWS, COLUMNS), 1.0, nl.float32, buffer=nl.sbuf),
        "full_like": lambda tile, square, hbm: nl.full_like(tile, 1.0),
        "load": lambda tile, square, hbm: nl.load(hbm),
        "load_transpose2d": lambda tile, square, hbm: nl.load_transpose2d(hbm[:, 0:ROWS]),
        "matmul": lambda tile, square, hbm: nl.matmul(square, tile),
        "ones": lambda tile, square, hbm: nl.ones((ROWS, COLUMNS), nl.float32, buffer=nl.sbuf),
        "rand": lambda tile, square, hbm: nl.rand((ROWS, COLUMNS)),
        "shared_identity_matrix": lambda tile, square, hbm: nl.shared_identity_matrix(ROWS),
        "static_cast": lambda tile, square, hbm: nl.static_cast(tile, nl.bfloat16),
        "store": lambda tile, square, hbm: nl.store(hbm, tile),
        "transpose": lambda tile, square, hbm: nl.transpose(square),
        "zeros": lambda tile, square, hbm: nl.zeros((ROWS, COLUMNS), nl.float32, buffer=nl.sbuf),
    }


def of_language(name: str) -> list[str]:
    """The instructions of a call of nl on fp32 tiles [128, 512], by trying what it takes."""
    from trnsim import nl

    special = special_cases().get(name)
    if special is not None:

        def kernel(hbm: Any) -> None:
            tile = nl.ndarray((ROWS, COLUMNS), nl.float32, buffer=nl.sbuf)
            special(tile, tile[:, 0:ROWS], hbm)

        return of_trace(kernel, hbm=trnsim.Shape("fp32", ROWS, COLUMNS)) or []
    for dtype in (nl.float32, nl.int32):
        for count in (1, 2, 3):
            for keywords in ({}, {"axis": 1}):

                def probe() -> None:
                    tiles = [nl.ndarray((ROWS, COLUMNS), dtype, buffer=nl.sbuf)] * count
                    getattr(nl, name)(*tiles, **keywords)

                found = of_trace(probe)
                if found is not None:
                    return found
    return []


def is_function(prefix: str, name: str) -> bool:
    value = getattr(importlib.import_module(PACKAGES[prefix][1]), name, None)
    return callable(value) and not isinstance(value, type)


def generations(prefix: str, name: str) -> str:
    _, newer, older = PACKAGES[prefix]
    has = [hasattr(importlib.import_module(module), name) for module in (newer, older)]
    return {(True, True): "both", (True, False): "newer", (False, True): "older"}[tuple(has)]


def meaning(prefix: str, name: str, text: str) -> str:
    """The first sentences of the newer generation's text, else of `text`."""
    from trnsim.dtypes import DType
    from trnsim.memory import Buffer

    value = getattr(importlib.import_module(PACKAGES[prefix][1]), name, None)
    if isinstance(value, (Buffer, DType)):
        return ""
    if text and value is not None and not isinstance(value, (str, int)):
        text = " ".join((value.__doc__ or text).split("\n\n")[0].split()) or text
    elif is_function(prefix, name):
        text = " ".join((value.__doc__ or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


def others(refused: list[str]) -> list[str]:
    """Rows of the names in modules of their own; adds those that are refused to `refused`."""
    rows = []
    for module, listed in OTHERS.items():
        for name in listed.split():
            value = getattr(importlib.import_module(f"nki.{module}"), name)
            text = " ".join((value.__doc__ or "").split("\n\n")[0].split())
            if text.startswith("Refused: "):
                reason = text.removeprefix("Refused: ").rstrip(".")
                refused.append(f"| `{module}.{name}` | both | {reason} |")
            else:
                rows.append(f"| `{module}.{name}` | {text} |")
    return rows


def calls_page() -> str:
    """docs/reference/nki-calls.md."""
    from trnsim import collectives, nisa, nisa_old
    from trnsim.packages import supported

    mnemonics = known_instructions()
    sources = {
        "nisa": Source(mnemonics, nisa),
        "older": Source(mnemonics, nisa_old),
        "ncoll": Source(mnemonics, collectives),
    }
    tables: dict[str, list[str]] = {prefix: [] for prefix in PACKAGES}
    plain: dict[str, list[str]] = {prefix: [] for prefix in PACKAGES}
    refused: list[str] = []
    for full, state, text in supported():
        prefix, name = full.split(".")
        generation = generations(prefix, name)
        if state != "supported":
            refused.append(f"| `{full}` | {generation} | {state} |")
            continue
        text = meaning(prefix, name, text)
        becomes: list[str] = []
        if prefix == "nl" and text and is_function(prefix, name):
            becomes = of_language(name)
        elif prefix in sources:
            becomes = sources["older" if generation == "older" else prefix].emitted(name)
        if not text and not becomes:
            plain[prefix].append(f"`{name}`")
            continue
        links = ", ".join(f"[{m}](isa.md#{m.lower()})" for m in becomes)
        tables[prefix].append(f"| `{full}` | {generation} | {links} | {text} |")

    lines = [
        "# Supported calls",
        "",
        "Written by `scripts/supported_calls.py --write` from the code; the test `test_docs` fails when it is stale.",
        "",
        "What `import nki` and `import neuronxcc.nki` offer in a kernel that [`trn-trace`](../how-to/trace-a-kernel.md) runs."
        " Generation: *newer* is `nki`, *older* is `neuronxcc.nki`.",
        "Operators of tensors (`a + b`, `a[i, j]`, `a @ b`) are the calls of `nl` of the same meaning. *Becomes* names the"
        " instructions of a trace:",
        "of a `nisa` call, or a collective, those that it can become, of an `nl` call those that it becomes for fp32 tiles of"
        f" {ROWS} x {COLUMNS} (int32 where fp32 is refused);",
        "with a number or one value per partition as the second operand, TENSOR_TENSOR is a TENSOR_SCALAR.",
        "A name that is not on this page stops the trace with a message.",
        "",
    ]
    for prefix, (title, newer, older) in PACKAGES.items():
        imports = f"`{newer}`" if older == newer else f"`{newer}`, `{older}`"
        lines += [f"## {title}", "", f"{imports}; here `{prefix}`.", ""]
        lines += [
            "| call | generation | becomes | what |",
            "|---|---|---|---|",
            *tables[prefix],
            "",
        ]
        if plain[prefix]:
            lines += [f"Types and constants: {', '.join(plain[prefix])}.", ""]
    lines += [
        "## Kernels and private names",
        "",
        "Modules below `nki` and `neuronxcc.nki`. The kernels are ours under the names of AWS's, written from its documentation:"
        " shapes and results are",
        "theirs, times those of our code ([library](../../isa/python/trnsim/library)). Their docstrings say what is our reading.",
        "",
        "| name | what |",
        "|---|---|",
        *others(refused),
        "",
        "A trace may hold collectives and programs of two cores; what a run does with them is in"
        " [overview.md](../concepts/overview.md#what-is-not-modelled).",
        "",
        "## Refused",
        "",
        "These names exist and stop the trace with the reason; `--skip-unsupported` leaves the calls out and counts them.",
        "",
        "| call | generation | why |",
        "|---|---|---|",
        *refused,
    ]
    return "\n".join(lines) + "\n"


def options_page() -> str:
    """docs/reference/frontend-options.md."""
    lines = [
        "# Options of the kernel builder",
        "",
        "Written by `scripts/supported_calls.py --write` from `trnsim._frontend.options()`; the test `test_docs` fails when it is"
        " stale.",
        "",
        "`trn-trace --option NAME=VALUE`, or `trnsim.run(..., options={NAME: VALUE})`. [scheduling.md](../concepts/scheduling.md)"
        " gives the reasons.",
        "",
        "| option | default | unit | meaning |",
        "|---|---|---|---|",
    ]
    for name, (default, unit, text) in trnsim.native().options().items():
        value = str(default).lower() if isinstance(default, bool) else str(default)
        lines.append(f"| `{name}` | {value} | {unit} | {text} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """The pages as they should be. Makes `import nki` ours in this process."""
    trnsim.activate()
    return {
        REFERENCE / "nki-calls.md": calls_page(),
        REFERENCE / "frontend-options.md": options_page(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help="rewrite the pages")
    mode.add_argument("--check", action="store_true", help="fail when one is stale (the default)")
    write = parser.parse_args().write or "TRN_UPDATE_REFERENCE" in os.environ
    stale = 0
    for file, text in pages().items():
        if file.exists() and file.read_text() == text:
            continue
        name = file.relative_to(ROOT)
        if write:
            file.write_text(text)
            print(f"{name}: written")
        else:
            print(f"{name}: stale: run scripts/supported_calls.py --write", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
