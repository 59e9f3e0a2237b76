"""`nki.language.iterators`."""

from trnsim.calls import not_supported as _not_supported
from trnsim.loops import affine_range, sequential_range, static_range  # noqa: F401

sync_program = _not_supported(
    "nki.language.iterators.sync_program", "programs of a grid run in order on a core"
)
