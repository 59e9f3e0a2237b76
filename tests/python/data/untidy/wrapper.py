"""Three lines that make an object for a kernel of another file."""

from package.kernels import Config, configured


def kernel(a):
    return configured(a, Config(columns=32))
