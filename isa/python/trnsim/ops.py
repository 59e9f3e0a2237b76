"""Operations as kernels name them: functions of nki.language, NumPy's ufuncs, strings."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from trnsim.errors import fail

__all__ = ["activation_of", "alu_of", "register"]

_ALU_NAMES = {
    "add": "ADD",
    "sum": "ADD",
    "subtract": "SUBTRACT",
    "multiply": "MULTIPLY",
    "prod": "MULTIPLY",
    "mult": "MULTIPLY",
    "divide": "DIVIDE",
    "true_divide": "DIVIDE",
    "maximum": "MAX",
    "max": "MAX",
    "amax": "MAX",
    "minimum": "MIN",
    "min": "MIN",
    "amin": "MIN",
    "abs_max": "ABS_MAX",
    "abs_min": "ABS_MIN",
    "power": "POWER",
    "pow": "POWER",
    "mod": "MOD",
    "fmod": "MOD",
    "remainder": "MOD",
    "average": "AVERAGE",
    "mean": "AVERAGE",
    "abs": "ABS",
    "absolute": "ABS",
    "rsqrt": "RSQRT",
    "equal": "EQUAL",
    "not_equal": "NOT_EQUAL",
    "greater": "GREATER",
    "greater_equal": "GREATER_EQUAL",
    "less": "LESS",
    "less_equal": "LESS_EQUAL",
    "logical_and": "LOGICAL_AND",
    "logical_or": "LOGICAL_OR",
    "logical_xor": "LOGICAL_XOR",
    "logical_not": "LOGICAL_NOT",
    "all": "LOGICAL_AND",
    "any": "LOGICAL_OR",
    "bitwise_and": "BITWISE_AND",
    "bitwise_or": "BITWISE_OR",
    "bitwise_xor": "BITWISE_XOR",
    "invert": "BITWISE_NOT",
    "bitwise_not": "BITWISE_NOT",
    "bitwise_invert": "BITWISE_NOT",
    "left_shift": "SHIFT_LEFT",
    "logical_shift_left": "SHIFT_LEFT",
    "right_shift": "SHIFT_RIGHT",
    "logical_shift_right": "SHIFT_RIGHT",
    "arithmetic_shift_right": "ARITHMETIC_SHIFT_RIGHT",
    "copy": "BYPASS",
    "bypass": "BYPASS",
}
_ACTIVATION_NAMES = {
    name: name.upper()
    for name in (
        "copy identity exp log sqrt rsqrt square reciprocal abs sign relu tanh sigmoid gelu "
        "gelu_apprx_tanh gelu_apprx_sigmoid gelu_dx gelu_apprx_sigmoid_dx silu silu_dx softplus "
        "mish erf erf_dx sin cos tan arctan floor ceil trunc"
    ).split()
}
_ACTIVATION_NAMES.update(
    {"absolute": "ABS", "gelu_apprx": "GELU_APPRX_TANH", "gelu_tanh": "GELU_APPRX_TANH"}
)

_ALU: dict[Any, str] = dict(_ALU_NAMES)
_ACTIVATION: dict[Any, str] = dict(_ACTIVATION_NAMES)
for _name, _op in _ALU_NAMES.items():
    for _module in (np, operator):
        _function = getattr(_module, _name, None)
        if callable(_function):
            _ALU.setdefault(_function, _op)
_ALU.update({np.amax: "MAX", np.amin: "MIN", np.sum: "ADD", np.prod: "MULTIPLY", max: "MAX"})
_ALU.update({min: "MIN", sum: "ADD", operator.sub: "SUBTRACT", operator.mul: "MULTIPLY"})
_ALU.update({operator.truediv: "DIVIDE", operator.lt: "LESS", operator.le: "LESS_EQUAL"})
_ALU.update({operator.gt: "GREATER", operator.ge: "GREATER_EQUAL", operator.eq: "EQUAL"})
_ALU.update({operator.ne: "NOT_EQUAL", operator.and_: "BITWISE_AND", operator.or_: "BITWISE_OR"})
for _name, _op in _ACTIVATION_NAMES.items():
    _function = getattr(np, _name, None)
    if callable(_function):
        _ACTIVATION.setdefault(_function, _op)

BITWISE = frozenset(
    "BITWISE_AND BITWISE_OR BITWISE_XOR BITWISE_NOT SHIFT_LEFT SHIFT_RIGHT "
    "ARITHMETIC_SHIFT_RIGHT".split()
)
COMPARISONS = frozenset("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL".split())
LOGICAL = frozenset("LOGICAL_AND LOGICAL_OR LOGICAL_XOR LOGICAL_NOT".split())
# NC-v4 only, by the name of a function of nki.language.
_LATER = {"exponential", "gelu_apprx_tanh_dx"}


def register(function: Any) -> None:
    """Makes a function of nki.language usable as `op=`, under its own name."""
    name = function.__name__
    if name in _ALU_NAMES:
        _ALU[function] = _ALU_NAMES[name]
    if name in _ACTIVATION_NAMES:
        _ACTIVATION[function] = _ACTIVATION_NAMES[name]


def _text(op: Any) -> str:
    return getattr(op, "__name__", None) or str(op)


def alu_of(call: str, operand: str, op: Any) -> str:
    """The ISA's name of an arithmetic operation."""
    try:
        return _ALU[op]
    except (KeyError, TypeError):
        pass
    found = _ALU_NAMES.get(_text(op).rsplit(".", 1)[-1])
    if found is None:
        fail(call, operand, _text(op), "one of " + ", ".join(sorted(_ALU_NAMES)))
    return found


def activation_of(call: str, operand: str, op: Any) -> str:
    """The ISA's name of a function of the Scalar engine."""
    try:
        return _ACTIVATION[op]
    except (KeyError, TypeError):
        pass
    found = _ACTIVATION_NAMES.get(_text(op).rsplit(".", 1)[-1])
    if found is None:
        fail(call, operand, _text(op), "one of " + ", ".join(sorted(_ACTIVATION_NAMES)))
    return found
