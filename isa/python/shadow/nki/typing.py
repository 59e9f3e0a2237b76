"""`nki.typing`."""

from trnsim.annotations import *  # noqa: F401,F403
