"""Index expressions and masks of the older API.

While tracing, loop variables are plain ints, so an index such as `i_p + 128 * k` is always affine
in the positions of its axes: base + sum(step[a] * i[a]), with NumPy's broadcasting of shapes. A
comparison gives a Mask, a conjunction of `affine >= 0`. What is not affine (`%`, `//`, `|`, `!=`)
becomes an array of numbers or of truths, and is used where that is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Union

import numpy as np

from trnsim.errors import wrong

__all__ = ["Index", "Mask", "Mgrid", "ParDim", "arange", "ds", "mgrid", "par_dim"]

Number = Union[int, np.integer]


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if a == b:
        return a
    if len(a) < len(b):
        a = (1,) * (len(b) - len(a)) + a
    elif len(b) < len(a):
        b = (1,) * (len(a) - len(b)) + b
    sizes = []
    for x, y in zip(a, b):
        if x != y and x != 1 and y != 1:
            wrong(f"index: expected shapes that broadcast, got {a} and {b}")
        sizes.append(y if x == 1 else x)
    return tuple(sizes)


_kinds: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}


class Index:
    """base + sum(steps[a] * i[a]) over axes of the sizes `shape`."""

    __slots__ = ("shape", "base", "steps", "kind")

    def __init__(
        self, shape: tuple[int, ...], base: int, steps: tuple[int, ...], kind: int | None = None
    ) -> None:
        self.shape = shape
        self.base = base
        self.steps = steps
        self.kind = kind

    def numbered(self) -> int:
        """A number for the shape and steps, which decide how an access is made."""
        kind = self.kind
        if kind is None:
            kind = self.kind = _kinds.setdefault((self.shape, self.steps), len(_kinds))
        return kind

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def array(self) -> np.ndarray:
        """The numbers themselves."""
        result = np.full(self.shape, self.base, dtype=np.int64)
        for axis, (size, step) in enumerate(zip(self.shape, self.steps)):
            if step:
                along = [1] * len(self.shape)
                along[axis] = size
                result += np.reshape(np.arange(size, dtype=np.int64) * step, along)
        return result

    def __getitem__(self, key: Any) -> "Index":
        keys = key if isinstance(key, tuple) else (key,)
        used = sum(1 for k in keys if k is not None and k is not Ellipsis)
        shape: list[int] = []
        steps: list[int] = []
        base = self.base
        at = 0
        for k in keys:
            if k is None:
                shape.append(1)
                steps.append(0)
            elif k is Ellipsis:
                for _ in range(len(self.shape) - used):
                    shape.append(self.shape[at])
                    steps.append(self.steps[at])
                    at += 1
            elif at >= len(self.shape):
                wrong(f"index: expected at most {len(self.shape)} dimensions, got {key}")
            elif isinstance(k, slice):
                start, stop, step = k.indices(self.shape[at])
                count = len(range(start, stop, step))
                base += start * self.steps[at]
                shape.append(count)
                steps.append(self.steps[at] * step if count > 1 else 0)
                at += 1
            else:
                position = int(k)
                if position < 0:
                    position += self.shape[at]
                base += position * self.steps[at]
                at += 1
        shape.extend(self.shape[at:])
        steps.extend(self.steps[at:])
        made = Index(tuple(shape), base, tuple(steps))
        made.numbered()
        return made

    def _plus(self, other: Any, sign: int) -> "Index":
        if isinstance(other, (int, np.integer)):
            return Index(self.shape, self.base + sign * int(other), self.steps, self.kind)
        if type(other) is not Index:
            return NotImplemented
        if self.shape == other.shape:
            steps = tuple([a + sign * b for a, b in zip(self.steps, other.steps)])
            return Index(self.shape, self.base + sign * other.base, steps)
        shape = _broadcast(self.shape, other.shape)
        ours = (0,) * (len(shape) - len(self.steps)) + self.steps
        theirs = (0,) * (len(shape) - len(other.steps)) + other.steps
        return Index(
            shape,
            self.base + sign * other.base,
            tuple([a + sign * b for a, b in zip(ours, theirs)]),
        )

    def __add__(self, other: Any) -> "Index":
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Index":
        return self._plus(other, -1)

    def __rsub__(self, other: Any) -> "Index":
        return (-self)._plus(other, 1)

    def __neg__(self) -> "Index":
        return Index(self.shape, -self.base, tuple([-s for s in self.steps]))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)):
            k = int(other)
            return Index(self.shape, self.base * k, tuple([s * k for s in self.steps]))
        if isinstance(other, Index):
            return _of_array(self.array() * other.array())
        return NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)):
            k = int(other)
            if k and all(s % k == 0 for s in self.steps):
                return Index(self.shape, self.base // k, tuple([s // k for s in self.steps]))
            return _of_array(self.array() // k)
        return NotImplemented

    __truediv__ = __floordiv__

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, (int, np.integer)):
            return _of_array(self.array() % int(other))
        return NotImplemented

    def _compare(self, other: Any, above: int) -> Any:
        """self - other >= above."""
        if isinstance(other, ArrayIndex) or isinstance(self, ArrayIndex):
            mine, theirs = self.array(), other.array() if isinstance(other, Index) else other
            return Mask([], mine - theirs >= above)
        difference = self._plus(other, -1)
        if difference is NotImplemented:
            return NotImplemented
        return Mask([Index(difference.shape, difference.base - above, difference.steps)])

    def _at_least(self, low: int) -> Mask:
        return Mask([Index(self.shape, self.base - low, self.steps)])

    def _at_most(self, high: int) -> Mask:
        return Mask([Index(self.shape, high - self.base, tuple([-s for s in self.steps]))])

    def __ge__(self, other: Any) -> Any:
        if isinstance(other, int) and type(self) is Index:
            return self._at_least(other)
        return self._compare(other, 0)

    def __gt__(self, other: Any) -> Any:
        if isinstance(other, int) and type(self) is Index:
            return self._at_least(other + 1)
        return self._compare(other, 1)

    def __le__(self, other: Any) -> Any:
        if isinstance(other, int) and type(self) is Index:
            return self._at_most(other)
        return (-self)._compare(-other, 0)

    def __lt__(self, other: Any) -> Any:
        if isinstance(other, int) and type(self) is Index:
            return self._at_most(other - 1)
        return (-self)._compare(-other, 1)

    def __eq__(self, other: Any) -> Any:  # type: ignore[override]
        if not isinstance(other, (Index, int, np.integer)):
            return NotImplemented
        return (self >= other) & (self <= other)

    def __ne__(self, other: Any) -> Any:  # type: ignore[override]
        if not isinstance(other, (Index, int, np.integer)):
            return NotImplemented
        return ~(self == other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        wrong("index: an index expression is many numbers; use a mask instead of `if`")

    def __repr__(self) -> str:
        return f"Index(shape={self.shape}, base={self.base}, steps={self.steps})"


class ArrayIndex(Index):
    """Numbers that no affine expression gives; usable in masks."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: np.ndarray) -> None:
        super().__init__(numbers.shape, 0, (0,) * numbers.ndim)
        self.numbers = numbers

    def array(self) -> np.ndarray:
        return self.numbers

    def __getitem__(self, key: Any) -> Index:
        return _of_array(np.asarray(self.numbers[key]))

    def _plus(self, other: Any, sign: int) -> Index:
        if isinstance(other, Index):
            return _of_array(self.numbers + sign * other.array())
        if isinstance(other, (int, np.integer)):
            return _of_array(self.numbers + sign * int(other))
        return NotImplemented

    def __neg__(self) -> Index:
        return ArrayIndex(-self.numbers)

    def __mul__(self, other: Any) -> Any:
        factor = other.array() if isinstance(other, Index) else other
        return _of_array(self.numbers * factor)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _of_array(self.numbers // int(other))


def _of_array(numbers: np.ndarray) -> Index:
    """An affine Index when the numbers are affine in their positions, else an ArrayIndex."""
    numbers = np.asarray(numbers, dtype=np.int64)
    base = int(numbers.flat[0]) if numbers.size else 0
    steps = []
    for axis, size in enumerate(numbers.shape):
        at = [0] * numbers.ndim
        if size > 1:
            at[axis] = 1
            steps.append(int(numbers[tuple(at)]) - base)
        else:
            steps.append(0)
    index = Index(numbers.shape, base, tuple(steps))
    return index if np.array_equal(index.array(), numbers) else ArrayIndex(numbers)


Box = list[tuple[int, int]]


class Mask:
    """Where an instruction acts: all of `terms` are at least 0, and `truth` holds if given."""

    __slots__ = ("terms", "truth")

    def __init__(self, terms: Sequence[Index], truth: np.ndarray | None = None) -> None:
        self.terms = list(terms)
        self.truth = truth

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for term in self.terms:
            shape = _broadcast(shape, term.shape)
        return shape if self.truth is None else _broadcast(shape, self.truth.shape)

    def __getitem__(self, key: Any) -> "Mask":
        """Part of the mask, or with `None` more axes: `mask[:, None] & other[None, :]`."""
        shape = self.shape
        terms = []
        for term in self.terms:
            if isinstance(term, ArrayIndex):
                terms.append(_of_array(np.broadcast_to(term.array(), shape))[key])
            else:
                steps = (0,) * (len(shape) - len(term.steps)) + term.steps
                terms.append(Index(shape, term.base, steps)[key])
        truth = self.truth
        return Mask(terms, None if truth is None else np.broadcast_to(truth, shape)[key])

    def array(self) -> np.ndarray:
        """The truths themselves."""
        result = np.ones(self.shape, dtype=bool)
        for term in self.terms:
            result = result & (term.array() >= 0)
        return result if self.truth is None else result & self.truth

    @property
    def affine(self) -> Index | None:
        """The one expression that is at least 0, when there is just one."""
        return self.terms[0] if self.truth is None and len(self.terms) == 1 else None

    def __and__(self, other: Any) -> "Mask":
        if isinstance(other, (bool, np.bool_)):
            return self if other else Mask([], np.zeros((1,), dtype=bool))
        if not isinstance(other, Mask):
            return NotImplemented
        truth = self.truth
        if other.truth is not None:
            truth = other.truth if truth is None else truth & other.truth
        return Mask(self.terms + other.terms, truth)

    __rand__ = __and__

    def __or__(self, other: Any) -> "Mask":
        if isinstance(other, (bool, np.bool_)):
            return Mask([]) if other else self
        if not isinstance(other, Mask):
            return NotImplemented
        return Mask([], self.array() | other.array())

    __ror__ = __or__

    def __invert__(self) -> "Mask":
        term = self.affine
        if term is not None:
            return Mask([-term - 1])
        return Mask([], ~self.array())

    def __bool__(self) -> bool:
        wrong("mask: a mask is many truths; `if` and `and` cannot use it, `mask=` and `&` can")

    def box(self, shape: Sequence[int]) -> tuple[Box | None, bool]:
        """Bounds [low, high) of each axis within which the mask may hold, and whether it holds
        all over them. None when it holds nowhere."""
        rank = len(shape)
        box: Box = [(0, size) for size in shape]
        exact = True
        if self.truth is not None:
            return self._box_of_truth(shape)
        for term in self.terms:
            steps = term.steps
            if len(steps) < rank:
                steps = (0,) * (rank - len(steps)) + steps
            elif len(steps) > rank:
                if any(steps[: len(steps) - rank]):
                    wrong(f"mask: expected at most {rank} dimensions as in {list(shape)}")
                steps = steps[len(steps) - rank :]
            axes = [axis for axis, step in enumerate(steps) if step]
            if len(axes) == 1:
                a = axes[0]
                step = steps[a]
                low, high = box[a]
                if step > 0:
                    low = max(low, -(term.base // step))
                else:
                    high = min(high, term.base // -step + 1)
                if low >= high:
                    return None, True
                box[a] = (low, high)
                continue
            if not axes:
                if term.base < 0:
                    return None, True
                continue
            highest = term.base + sum(max(0, steps[a] * (shape[a] - 1)) for a in axes)
            if highest < 0:
                return None, True
            if exact:
                lowest = term.base + sum(min(0, steps[a] * (shape[a] - 1)) for a in axes)
                exact = lowest >= 0
            for a in axes:
                step = steps[a]
                rest = highest - max(0, step * (shape[a] - 1))  # the best that others can do
                low, high = box[a]
                if step > 0:
                    low = max(low, -(rest // step))
                else:
                    high = min(high, rest // -step + 1)
                if low >= high:
                    return None, True
                box[a] = (low, high)
        return box, exact

    def _box_of_truth(self, shape: Sequence[int]) -> tuple[Box | None, bool]:
        truth = self.array()
        truth = truth.reshape(
            truth.shape[-len(shape) :] if truth.ndim > len(shape) else truth.shape
        )
        truth = np.broadcast_to(truth, tuple(shape))
        if not truth.any():
            return None, True
        box: Box = []
        for a in range(truth.ndim):
            where = np.flatnonzero(truth.any(axis=tuple(b for b in range(truth.ndim) if b != a)))
            box.append((int(where[0]), int(where[-1]) + 1))
        return box, bool(truth[tuple(slice(low, high) for low, high in box)].all())


class ParDim(int):
    """A size that is spread over partitions (`nl.par_dim`)."""


def par_dim(size: int) -> ParDim:
    """Marks the partition dimension in a shape; dimensions left of it are blocks."""
    return ParDim(size)


def arange(*args: int) -> Index:
    """`nl.arange(stop)` or `(start, stop[, step])`: an index of one axis."""
    numbers = range(*[int(a) for a in args])
    return Index((len(numbers),), numbers.start, (numbers.step if len(numbers) > 1 else 0,))


class Mgrid(tuple):
    """What `nl.mgrid[...]` gives: one index an axis, also as `.p`, `.x`, `.y`, `.z`, `.w`."""

    def __getattr__(self, name: str) -> Index:
        at = "pxyzw".find(name) if len(name) == 1 else -1
        if not 0 <= at < len(self):
            raise AttributeError(name)
        return self[at]


class _MakeMgrid:
    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        indices = []
        for axis, k in enumerate(keys):
            if not isinstance(k, slice) or k.stop is None:
                wrong(f"nl.mgrid: expected start:stop for each axis, got {k}")
            numbers = range(int(k.start or 0), int(k.stop), int(k.step or 1))
            shape = [1] * len(keys)
            steps = [0] * len(keys)
            shape[axis] = len(numbers)
            steps[axis] = numbers.step if len(numbers) > 1 else 0
            indices.append(Index(tuple(shape), numbers.start, tuple(steps)))
            indices[-1].numbered()
        return Mgrid(indices) if isinstance(key, tuple) else indices[0][...]


mgrid = _MakeMgrid()


class ds:
    """`nl.ds(start, size[, step])`: `size` elements from a start that may be a register."""

    __slots__ = ("start", "size", "step")

    def __init__(self, start: Any, size: int, step: int = 1) -> None:
        self.start = start
        self.size = size
        self.step = step

    def __repr__(self) -> str:
        return f"ds({self.start}, {self.size})"


class LoopIndex(int):
    """A loop variable of affine_range and its kin: an int that knows its first value."""

    first: int


class LoopRange:
    """range() whose numbers know where they began, for `nl.loop_reduce`."""

    __slots__ = ("numbers",)

    def __init__(self, *args: int) -> None:
        self.numbers = range(*[int(a) for a in args])

    def __iter__(self) -> Iterator[int]:
        first = self.numbers.start
        for number in self.numbers:
            value = LoopIndex(number)
            value.first = first
            yield value

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, key: Any) -> Any:
        return self.numbers[key]

    def __reversed__(self) -> Iterator[int]:
        return reversed(self.numbers)
