"""Index objects of the older compiler."""

from trnsim.compiler import TileIndex  # noqa: F401
