"""nki.typing: annotations of kernels' parameters. They say nothing that the tracer needs."""

from __future__ import annotations

from typing import Any

from trnsim.tensor import Tensor

__all__ = ["mutable", "mutable_tensor", "scalar", "tensor"]


class _Annotation(type):
    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args else cls

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class tensor(metaclass=_Annotation):
    """`x: nt.tensor` or `nt.tensor[128, 512]`."""


class mutable_tensor(metaclass=_Annotation):
    """An argument that the kernel writes."""


class mutable(metaclass=_Annotation):
    """`nt.mutable(x)`: an argument that the kernel writes."""


class scalar(metaclass=_Annotation):
    """A number."""
