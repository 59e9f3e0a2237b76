"""nki.compiler: where tensors go, and hints that the builder does not need."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from collections.abc import Iterator
from typing import Any

from trnsim import memory
from trnsim.memory import ncc_psum as psum
from trnsim.memory import ncc_sbuf as sbuf
from trnsim.nl import no_reorder

__all__ = [
    "allocation_scope",
    "enable_stack_allocator",
    "force_auto_alloc",
    "multi_buffer",
    "no_reorder",
    "psum",
    "sbuf",
    "skip_middle_end_transformations",
]


def _accepted(name: str) -> Any:
    """A decorator with or without arguments that changes nothing here."""

    def decorate(function: Any = None, *args: Any, **kwargs: Any) -> Any:
        if callable(function):
            return function
        return lambda inner: inner

    decorate.__name__ = name
    decorate.__doc__ = "Accepted: the builder places tensors by their lifetimes."
    return decorate


skip_middle_end_transformations = _accepted("skip_middle_end_transformations")
enable_stack_allocator = _accepted("enable_stack_allocator")


def force_auto_alloc(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The builder places what `alloc` and `mod_alloc` would place."""
    if function is None:
        return force_auto_alloc
    if not hasattr(function, "__code__"):
        return function

    @functools.wraps(function)
    def run(*values: Any, **named: Any) -> Any:
        with memory.automatic():
            return function(*values, **named)

    return run


class multi_buffer:
    """`nl.affine_range(n, multi_buffer=ncc.multi_buffer(2))`: the builder buffers by itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.buffers = args[0] if args else 2

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> multi_buffer:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


@contextmanager
def allocation_scope(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Accepted: lifetimes end at the last use anyway."""
    yield


class TileIndex:
    """A tile's index as the older compiler has it: the index expressions of a tensor."""

    def __init__(self, *indices: Any, **named: Any) -> None:
        self.indices = tuple(indices)
        for name, value in named.items():
            setattr(self, name, value)

    def __iter__(self) -> Any:
        return iter(self.indices)

    def __getitem__(self, at: Any) -> Any:
        return self.indices[at]

    def __len__(self) -> int:
        return len(self.indices)
