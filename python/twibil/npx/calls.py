# SPDX-License-Identifier: Apache-2.0
"""Calling forms of `mx.npx` that choose among operators by name, and arrays from NumPy's."""
from __future__ import annotations

from .. import _core
from ..base import did_you_mean
from ..registry import functions as _functions

__all__ = ["activation_function", "from_numpy"]

_ACTIVATIONS = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "softrelu": "softplus", "softplus": "softplus",
                "softsign": "softsign", "log_sigmoid": "log_sigmoid", "mish": "mish", "gelu": "gelu", "silu": "silu",
                "swish": "silu"}


def activation_function(act_type: str):
    """The operator for an activation name: relu, sigmoid, tanh, softrelu, softsign, log_sigmoid, mish, gelu, silu.

    Raises ValueError for another name."""
    name = _ACTIVATIONS.get(act_type)
    for space in ("npx", "np"):
        if name is not None and name in _functions(space):
            return _functions(space)[name]
    raise ValueError(f"activation: {act_type!r} is not known.{did_you_mean(act_type, _ACTIVATIONS)} "
                     f"Known: {', '.join(_ACTIVATIONS)}")


def from_numpy(ndarray, zero_copy=True):
    """An array with a NumPy array's values."""
    return _core.array(ndarray)
