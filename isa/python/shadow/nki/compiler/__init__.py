"""`nki.compiler`."""

from trnsim.compiler import *  # noqa: F401,F403
