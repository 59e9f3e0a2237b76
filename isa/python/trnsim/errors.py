"""What is wrong with what a kernel asks, and where the kernel is."""

import sys
from types import FrameType
from typing import Any, NoReturn

from trnsim import session

__all__ = ["fail", "kernel_line", "wrong"]

_ours: dict[str, bool] = {}


def wrong(message: str) -> NoReturn:
    """Raises TraceError with the kernel's place in front."""
    raise session.trace_error(message)


def fail(call: str, operand: str, value: Any, limit: str) -> NoReturn:
    """Raises TraceError: the place, the call, the operand, what was expected and found."""
    raise session.trace_error(f"{call}: {operand}: expected {limit}, got {value}")


def kernel_line() -> tuple[str, int]:
    """File and line of the innermost frame that is not ours; quick, for each lazy result."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = _ours.get(name)
        if ours is None:
            ours = _ours[name] = session.is_ours(name)
        if not ours:
            return name, frame.f_lineno
        frame = frame.f_back
    return "", 0
