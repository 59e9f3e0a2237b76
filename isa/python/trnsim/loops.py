"""Loops: ranges of the tracer, and device loops with registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trnsim.errors import fail
from trnsim.index import LoopRange
from trnsim.session import current
from trnsim.tensor import Register, begin, flush

__all__ = [
    "affine_range",
    "dynamic_range",
    "fori_loop",
    "sequential_range",
    "static_range",
    "while_loop",
]


def _range(name: str, args: tuple[Any, ...]) -> Any:
    if any(isinstance(a, Register) for a in args):
        return _device_loop(name, *args)
    try:
        return LoopRange(*args)
    except (TypeError, ValueError):
        fail(name, "arguments", args, "ints")


def affine_range(*args: Any, **kwargs: Any) -> Any:
    """Iterations that may run in any order; while tracing, `range`."""
    return _range("nl.affine_range", args)


def sequential_range(*args: Any, **kwargs: Any) -> Any:
    """Iterations in order; while tracing, `range`."""
    return _range("nl.sequential_range", args)


def static_range(*args: Any, **kwargs: Any) -> Any:
    """Iterations written out; while tracing, `range`."""
    return _range("nl.static_range", args)


def _bounds(name: str, start: Any, stop: Any, step: Any) -> tuple[Any, Any, int]:
    if stop is None:
        start, stop = 0, start
    if isinstance(step, Register) or int(step) < 1:
        fail(name, "step", step, "a positive int")
    values = []
    for operand, value in (("start", start), ("stop", stop)):
        if isinstance(value, Register):
            values.append(value.native)
        elif isinstance(value, (int, np.integer)):
            values.append(int(value))
        else:
            fail(name, operand, value, "an int or a register")
    return values[0], values[1], int(step)


def _device_loop(name: str, start: Any, stop: Any = None, step: Any = 1) -> Iterator[Register]:
    first, last, by = _bounds(name, start, stop, step)
    builder = begin()
    counter = builder.begin_loop(first, last, by)
    yield Register(counter)
    flush()
    builder.end_loop()


def dynamic_range(start: Any, stop: Any = None, step: Any = 1) -> Iterator[Register]:
    """A loop that runs on the device: its body is traced once, its variable is a register."""
    return _device_loop("nl.dynamic_range", start, stop, step)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], Any], step: int = 1) -> None:
    """body_fun(i) for i of lower..upper on the device."""
    for i in _device_loop("nl.fori_loop", lower, upper, step):
        body_fun(i)


def _times() -> int:
    """Iterations of a loop whose condition is in memory, which is not known while tracing."""
    return int(getattr(current(), "while_iterations", 1))


def while_loop(init: Any, body_fun: Callable[[Any], Any]) -> None:
    """Runs while a register is not 0: `while_iterations` of the session times, once by default."""
    builder = begin()
    builder.begin_loop(0, _times(), 1)
    body_fun(init if isinstance(init, Register) else Register(builder.register(int(init))))
    flush()
    builder.end_loop()


def while_register(register: Register) -> bool:
    """`while register:` -- True once, which begins the loop; then False, which ends it."""
    session = current()
    running: list[Register] = session.__dict__.setdefault("while_loops", [])
    if running and running[-1] is register:
        running.pop()
        flush()
        session.builder.end_loop()
        return False
    begin().begin_loop(0, _times(), 1)
    running.append(register)
    return True
