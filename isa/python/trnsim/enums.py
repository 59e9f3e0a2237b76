"""The enumerations of nki.isa. Their numbers differ by generation, so each has its own."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

from trnsim.errors import fail

__all__ = ["NEW", "OLD", "engine_of", "mode_of", "skips"]


def _both(name: str, **values: int) -> Any:
    made = Enum(name, values)  # type: ignore[misc]
    made.__module__ = "nki.isa"
    return made


class nc_version(Enum):
    """A NeuronCore's generation; ordered, so that kernels can say `>= nc_version.gen3`."""

    gen1 = 1
    gen2 = 2
    gen3 = 3
    gen4 = 4

    def __ge__(self, other: nc_version) -> bool:
        return self.value >= other.value

    def __gt__(self, other: nc_version) -> bool:
        return self.value > other.value

    def __le__(self, other: nc_version) -> bool:
        return self.value <= other.value

    def __lt__(self, other: nc_version) -> bool:
        return self.value < other.value

    def __int__(self) -> int:
        return self.value


class matmul_perf_mode(str, Enum):
    """Modes of the PE array."""

    none = "none"
    double_row = "double_row"


_COMMON = {
    "oob_mode": _both("oob_mode", error=0, skip=1),
    "reduce_cmd": _both("reduce_cmd", idle=0, reset=1, reduce=2, reset_reduce=3, load_reduce=4),
    "dma_engine": _both("dma_engine", dma=1, gpsimd_dma=2),
    "nc_version": nc_version,
    "matmul_perf_mode": matmul_perf_mode,
}
NEW = SimpleNamespace(
    engine=_both("engine", unknown=0, tensor=1, scalar=2, gpsimd=3, dma=4, vector=5, sync=6),
    dge_mode=_both("dge_mode", unknown=0, swdge=1, hwdge=2, none=3),
    **_COMMON,
)
OLD = SimpleNamespace(
    engine=_both("engine", unknown=0, tensor=1, scalar=2, gpsimd=3, vector=5, sync=6),
    dge_mode=_both("dge_mode", none=0, swdge=1, hwdge=2, unknown=3),
    **_COMMON,
)

_ENGINES: dict[Any, str | None] = {None: None}
for _set in (NEW, OLD):
    for _member in _set.engine:
        _ENGINES[_member] = None if _member.name == "unknown" else _member.name
_ENGINES.update({name: name for name in ("tensor", "vector", "scalar", "gpsimd", "sync")})
_ENGINES["unknown"] = None
_MODES: dict[Any, str | None] = {None: None, "unknown": None}
for _set in (NEW, OLD):
    for _member in _set.dge_mode:
        _MODES[_member] = {
            "none": "static",
            "swdge": "software",
            "hwdge": "hardware",
            "unknown": None,
        }[_member.name]
_OLD_MODES = {0: "static", 1: "software", 2: "hardware", 3: None}


def engine_of(call: str, engine: Any, allowed: tuple[str, ...] = ()) -> str | None:
    """The builder's name of an engine; None lets it choose."""
    try:
        name = _ENGINES[engine]
    except (KeyError, TypeError):
        fail(call, "engine", engine, "a member of nisa.engine")
    if name is not None and allowed and name not in allowed:
        fail(call, "engine", name, " or ".join(allowed))
    return name


def mode_of(call: str, mode: Any) -> str | None:
    """The builder's name of a descriptor mode; None lets it choose."""
    try:
        return _MODES[mode]
    except (KeyError, TypeError):
        pass
    if isinstance(mode, int) and mode in _OLD_MODES:
        return _OLD_MODES[mode]
    fail(call, "dge_mode", mode, "a member of nisa.dge_mode")


def skips(call: str, mode: Any) -> bool:
    """Whether accesses out of bounds are left out instead of being errors."""
    name = getattr(mode, "name", mode)
    if not isinstance(name, (str, int, type(None))):
        fail(call, "oob_mode", mode, "nisa.oob_mode.error or skip")
    if name in ("error", 0, None):
        return False
    if name in ("skip", 1):
        return True
    fail(call, "oob_mode", mode, "nisa.oob_mode.error or skip")


def command_of(call: str, command: Any) -> str:
    """The accumulator command's name in the ISA."""
    name = getattr(command, "name", command)
    if name is None:
        return "IDLE"
    text = str(name).upper()
    if text not in ("IDLE", "RESET", "REDUCE", "RESET_REDUCE", "LOAD_REDUCE"):
        fail(call, "reduce_cmd", command, "a member of nisa.reduce_cmd")
    return text
