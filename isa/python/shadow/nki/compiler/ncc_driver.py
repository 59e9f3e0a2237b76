"""`nki.compiler.ncc_driver`: refused when used."""

from trnsim.private import CompiledKernel, CompileOptions  # noqa: F401
