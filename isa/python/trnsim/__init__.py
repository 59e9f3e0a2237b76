"""trn-sim's tracer: NKI kernels become traces, and traces become reports.

    import trnsim
    trnsim.activate()                      # `import nki`, `neuronxcc.nki` now mean ours
    report = trnsim.run(kernel, a, b)      # NumPy arrays, or trnsim.Shape("bf16", 4096, 4096)
    print(report.device_time_us, report.bound_by["resource"])
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trnsim.report import Report

_HERE = os.path.dirname(os.path.abspath(__file__))  # as seen: symlinks are not resolved
_SHADOW = os.path.join(os.path.dirname(_HERE), "shadow")
_NATIVE = os.environ.get("TRNSIM_NATIVE") or os.path.normpath(
    os.path.join(_HERE, "..", "..", "..", "..", "lib", "trn-sim")
)
if os.path.isdir(_NATIVE):
    __path__.append(_NATIVE)

__all__ = [
    "CapacityError",
    "Report",
    "Shape",
    "TraceError",
    "__version__",
    "activate",
    "last_report",
    "run",
]


def activate(
    *, config: str | None = None, target: str | None = None, stand_ins: bool = False
) -> None:
    """Makes `import nki` and `import neuronxcc.nki` find trn-sim's packages in this process.

    config, target: what decorated kernels that are called run on from now on. stand_ins: imports
    that are not installed (torch, jax, ...) give inert modules instead of an ImportError.
    """
    for name in ("nki", "neuronxcc"):
        module = sys.modules.get(name)
        place = getattr(module, "__file__", None) or ""
        if module is not None and not os.path.realpath(place).startswith(
            os.path.realpath(_SHADOW) + os.sep
        ):
            raise ImportError(
                f"trnsim.activate(): {name} is already imported from {place or 'elsewhere'}; "
                "call it before anything imports nki or neuronxcc"
            )
    if _SHADOW in sys.path:
        sys.path.remove(_SHADOW)
    sys.path.insert(0, _SHADOW)
    if stand_ins:
        from trnsim import stand_in

        stand_in.install()
    from trnsim import jit, specs

    specs.teach_numpy()
    jit.set_defaults(config=config, target=target)


def run(kernel: Any, *args: Any, **kwargs: Any) -> Report:
    """Traces a kernel, simulates it, and gives the report.

    args: NumPy arrays or `Shape` objects for tensors, Python values for the rest. Keywords of
    this function are grid, config, target, overrides, options, work, skip_unsupported; others
    go to the kernel.
    """
    from trnsim import jit

    return jit.run(kernel, *args, **kwargs)


def last_report() -> Report:
    """The report of the kernel that ran last in this process."""
    from trnsim import jit

    return jit.last_report()


def __getattr__(name: str) -> Any:
    if name in ("TraceError", "CapacityError"):
        return getattr(native(), name)
    if name == "Report":
        from trnsim.report import Report

        return Report
    if name == "Shape":
        from trnsim.specs import Shape

        return Shape
    if name == "__version__":
        try:
            return getattr(native(), "version", "unknown")
        except ImportError:
            return "unknown"
    raise AttributeError(f"module 'trnsim' has no attribute {name!r}")


def native() -> Any:
    """The compiled module; an ImportError says where it was looked for."""
    import importlib

    try:
        return importlib.import_module("trnsim._frontend")
    except ModuleNotFoundError as error:
        if error.name != "trnsim._frontend":
            raise
        raise ImportError(
            f"trnsim: the compiled module _frontend is not in {_NATIVE}; build trn-sim, or set "
            "TRNSIM_NATIVE to the folder that holds it"
        ) from None
