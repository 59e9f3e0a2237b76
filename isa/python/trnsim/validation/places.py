"""Where the data and the kernels are: beside the package, or in the source tree."""

from __future__ import annotations

from pathlib import Path

import trnsim

_PACKAGES = Path(trnsim._HERE).parent  # share/trn-sim/python, isa/python
_IN_SOURCES = {
    "validation": "tests/validation",
    "kernels": "traces/kernels",
    "profiles": "tests/data/profiles",
    "configs": "configs",
}


def folder(name: str) -> Path:
    """The folder of a part: validation, kernels, profiles or configs."""
    installed = _PACKAGES.parent / name
    if installed.is_dir():
        return installed
    return Path(trnsim._HERE).resolve().parents[2] / _IN_SOURCES[name]
