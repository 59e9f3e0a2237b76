"""What the tests of the tracer's Python side share. Needs no build for the parts without a trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNTIDY = Path(__file__).resolve().parent / "data" / "untidy"
COMMAND = ROOT / "isa" / "python" / "bin" / "trn-trace"

try:
    import trnsim
except ImportError:
    sys.path.insert(0, str(ROOT / "isa" / "python"))
    import trnsim


def has_native() -> bool:
    try:
        trnsim.native()
    except ImportError:
        return False
    return True


NO_NATIVE = "the compiled module is not built"


def trn_trace(*args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command as a user does."""
    environment = {**os.environ, "TRNSIM_NATIVE": trnsim._NATIVE}
    command = [sys.executable, str(COMMAND), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)
