"""A builder that remembers what the language layer asks of it, and passes it on to the real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import trace_support  # noqa: F401  (finds trnsim)
import trnsim
from trnsim import session

try:
    NATIVE = trnsim.native()
except ImportError:
    NATIVE = None


class Made(NamedTuple):
    """One call of the builder: an instruction's mnemonic or the method, and its arguments."""

    name: str
    engine: str | None
    args: tuple[Any, ...]
    named: dict[str, Any]


class Recorder:
    """Looks like a Builder."""

    def __init__(self, name: str = "test") -> None:
        self.real = NATIVE.Builder(name)
        self.real.hide_frames(session.PACKAGE + "/")
        self.real.hide_frames(__file__)
        self.made: list[Made] = []

    def emit(self, call: int, mnemonic: str, engine: str | None, *operands: Any) -> None:
        self.real.emit(call, mnemonic, engine, *operands)
        self.made.append(Made(mnemonic, engine, operands, {}))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.real, name)
        if name in ("tensor", "at", "hide_frames", "summary", "register", "dynamic"):
            return method

        def record(*args: Any, **named: Any) -> Any:
            result = method(*args, **named)
            self.made.append(Made(name, named.get("engine"), args[1:], named))
            return result

        return record

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.made]

    def last(self, name: str = "") -> Made:
        return next(one for one in reversed(self.made) if not name or one.name == name)


@contextmanager
def tracing(generation: str = "new", **options: Any) -> Iterator[Recorder]:
    """A kernel's surroundings: a session with a recording builder; what waits is emitted."""
    from trnsim import tensor

    tensor.forget()
    builder = Recorder()
    now = session.Session(builder, generation=generation, **options)  # type: ignore[arg-type]
    with session.entered(now):
        try:
            yield builder
            tensor.flush()
        finally:
            tensor.forget()
