"""nki.isa as kernels of the newer API see it: a call writes into dst, or gives a new tile back.

The front end that AWS published of its compiler (leanprover/KLR) has the newer packages, and calls
that return their results as the older API's do. So a call without dst is the older one of its
name, when that takes the arguments; a call with dst is never anything but dst-first.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trnsim import nisa, nisa_old, packages
from trnsim.errors import wrong
from trnsim.tensor import Result, Tensor

_RESULTS = ("reduce_res", "dst_idx")  # operands that a call is worth making for by themselves


class _Form:
    """The parameters of a call, and which of them are tiles and operations."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.signature = inspect.signature(function)
        parameters = self.signature.parameters.values()
        self.names = [p.name for p in parameters]
        self.required = [p.name for p in parameters if p.default is p.empty]
        self.tiles = [
            at
            for at, p in enumerate(parameters)
            if p.annotation == "Tensor" and p.default is p.empty
        ]

    def takes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether the arguments are those of this form, with tiles where tiles belong."""
        count = len(args)
        for name in self.required[count:]:
            if name not in kwargs:
                return False
        for name in kwargs:
            if name not in self.names:
                return False
        for at in self.tiles:
            what = args[at] if at < count else kwargs.get(self.names[at])
            if not isinstance(what, Tensor):
                return False
        return True

    def __str__(self) -> str:
        more = ", ..." if len(self.names) > len(self.required) else ""
        return f"({', '.join(self.required)}{more})"


def _older(
    form: _Form, tiles: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The arguments by name, when they are those of the older call."""
    try:
        given = form.signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for name, what in given.items():
        if name in tiles and not isinstance(what, Tensor):
            return None
        if name == "shape" and isinstance(what, Tensor):
            return None
        if name in ("op", "op0", "op1") and what is not None:
            if not (callable(what) or isinstance(what, str)):
                return None
    return given


def _either(name: str, newer: Callable[..., Any], older: Callable[..., Any] | None) -> Any:
    form = _Form(newer)
    tiles = [form.names[at] for at in form.tiles if form.names[at] != "dst"]
    by_value = None if older in (None, newer) else _Form(older)

    @functools.wraps(newer)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "dst" in kwargs or form.takes(args, kwargs):
            try:
                return newer(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                what = str(error).partition("() ")[2]
            wrong(f"nisa.{name}: {what}; expected ({', '.join(form.names)})")
        named = {key: what for key, what in kwargs.items() if key != "name"}
        given = _older(by_value, tiles, args, named) if by_value is not None else None
        if given is not None:
            made = older(*args, **named)
            late = getattr(made, "_late", None)
            if type(late) is Result and not any(key in given for key in _RESULTS):
                late.dropped = (
                    f"nisa.{name}: dst: expected a tile to write into, or a use of the new tile "
                    "that a call without dst gives back, got neither"
                )
            return made
        try:
            form.signature.bind(*args, **kwargs)
        except TypeError as error:
            text = f"nisa.{name}: {error}; expected {form}"
            if by_value is not None and by_value.required:
                text += f", or without dst, for a new tile, {by_value}"
            wrong(text)
        return newer(*args, **kwargs)

    return call


def calls() -> dict[str, Any]:
    """What the package nki.isa shows."""
    shown = packages.names(nisa, packages.ISA)
    for name, newer in shown.items():
        if inspect.isfunction(newer) and "dst" in inspect.signature(newer).parameters:
            shown[name] = _either(name, newer, getattr(nisa_old, name, None))
    return shown
