"""The front ends of AWS's compiler as objects: here they trace a kernel.

Nothing on them is published but their names, so what they take is our reading: the kernel when
one is made, or first in a call, then the kernel's arguments.
"""

from __future__ import annotations

from typing import Any

from trnsim import jit, session

__all__ = ["NKIFrontend", "ParserFrontend"]


class NKIFrontend:
    """Traces a kernel: `NKIFrontend(kernel)(x, y)`, or `NKIFrontend()(kernel, x, y)`.

    A call gives the trace (jit.Trace: `data`, `results`, `summaries`), which stays as `trace`;
    inside of a kernel it is the kernel's call. grid: the launch's; other options are kept and
    change nothing.
    """

    def __init__(self, kernel: Any = None, *args: Any, grid: Any = None, **options: Any) -> None:
        self.kernel = kernel
        self.grid = grid
        self.options = {**dict(enumerate(args)), **options}
        self.trace: jit.Trace | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kernel = self.kernel
        if kernel is None:
            if not args or not callable(args[0]):
                found = repr(args[0]) if args else "nothing"
                raise session.trace_error(
                    f"{type(self).__name__}: kernel: expected a function, got {found}"
                )
            kernel, args = args[0], args[1:]
        if session.tracing():
            return kernel(*args, **kwargs)
        self.trace = jit.trace(kernel, args, kwargs, grid=self.grid)
        return self.trace

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.kernel!r}>"


class ParserFrontend(NKIFrontend):
    """The front end that reads a kernel's source; here it traces it, as NKIFrontend does."""
