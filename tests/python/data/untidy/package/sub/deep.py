from ..kernels import Config, configured
from package.kernels import Config as Same

assert Config is Same


def kernel(a):
    return configured(a, Config(columns=16))
