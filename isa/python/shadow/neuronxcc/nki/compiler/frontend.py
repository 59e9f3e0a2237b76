"""`neuronxcc.nki.compiler.frontend`: refused when used."""

from trnsim.private import NKIFrontend, ParserFrontend  # noqa: F401
