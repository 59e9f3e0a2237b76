from .kernels import *
from .kernels import Config
from .sub import *
from . import not_there
