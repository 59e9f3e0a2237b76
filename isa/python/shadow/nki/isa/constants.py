"""`nki.isa.constants`: the enumerations."""

from . import dge_mode, engine, nc_version, oob_mode, reduce_cmd  # noqa: F401
