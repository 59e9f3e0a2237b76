"""Kernels under the names of AWS's own library.

That library's code is not part of trn-sim: these are written anew, from what its documentation
says of arguments, shapes and results. Their times are those of our kernels, not of AWS's. Each
has its shapes in its docstring and a NumPy reference (`FUNCTION_reference`) beside it.
"""
