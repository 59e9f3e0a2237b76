"""`neuronxcc.nki.compiler.frontend`."""

from trnsim.parser_frontend import NKIFrontend, ParserFrontend  # noqa: F401
