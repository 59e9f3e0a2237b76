"""Arguments whose contents are known (`@file.npy`, NumPy arrays), so that they can steer loops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from trnsim import session
from trnsim.index import ds
from trnsim.tensor import Tensor

if TYPE_CHECKING:
    from trnsim._frontend import View

__all__ = ["ContentsTensor"]


class ContentsTensor(Tensor):
    """A tensor in HBM with contents: `int(t[0])`, `t[i] > 3`, `for n in t` have values."""

    __slots__ = ("contents",)

    def __init__(self, view: View, contents: np.ndarray) -> None:
        super().__init__(view)
        self.contents = contents

    def __getitem__(self, key: Any) -> Tensor:
        part = super().__getitem__(key)
        keys = key if type(key) is tuple else (key,)
        plain = tuple(
            slice(k.start, k.start + k.size * k.step, k.step) if isinstance(k, ds) else k
            for k in keys
        )
        try:
            contents = self.contents[plain]
        except (IndexError, TypeError, ValueError):
            return part
        if np.shape(contents) != tuple(part.shape):
            return part
        return ContentsTensor(part.view_, np.asarray(contents))

    def reshape(self, *shape: Any) -> Tensor:
        part = super().reshape(*shape)
        return ContentsTensor(part.view_, self.contents.reshape(part.shape))

    def _value(self, what: str) -> Any:
        if self.contents.size != 1:
            return self._no_contents(what)
        now = session.active()
        if now is not None:
            now.used_contents = True
        return self.contents.reshape(()).item()

    def __bool__(self) -> bool:
        return self.size > 1 or bool(self._value("bool()"))

    def __int__(self) -> int:
        return int(self._value("int()"))

    def __index__(self) -> int:
        return int(self._value("an index"))

    def __float__(self) -> float:
        return float(self._value("float()"))

    def item(self) -> Any:
        return self._value(".item()")

    def _all(self) -> np.ndarray:
        now = session.active()
        if now is not None:
            now.used_contents = True
        return self.contents

    def tolist(self) -> Any:
        return self._all().tolist()

    def numpy(self) -> np.ndarray:
        return self._all()

    def __array__(self, dtype: Any = None, *_: Any, **__: Any) -> np.ndarray:
        return np.asarray(self._all(), dtype)

    __hash__ = object.__hash__


def _host(name: str, work: Callable[[Any, Any], Any]) -> Any:
    """An operator that takes the value of a tensor of one element; the tile's own otherwise."""
    general = getattr(Tensor, name)

    def operate(self: ContentsTensor, other: Any) -> Any:
        if self.contents.size != 1:
            return general(self, other)
        if isinstance(other, ContentsTensor) and other.contents.size == 1:
            other = other._value(name)
        if not isinstance(other, (bool, int, float, np.generic)):
            return general(self, other)
        return work(self._value(name), other)

    return operate


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(ContentsTensor, f"__{_name}__", _host(f"__{_name}__", getattr(operator, _name)))
for _name in ("add", "sub", "mul"):
    _work = getattr(operator, _name)
    setattr(ContentsTensor, f"__{_name}__", _host(f"__{_name}__", _work))
    setattr(
        ContentsTensor, f"__r{_name}__", _host(f"__r{_name}__", lambda a, b, work=_work: work(b, a))
    )
