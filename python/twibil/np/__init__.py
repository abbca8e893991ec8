# SPDX-License-Identifier: Apache-2.0
"""`mx.np`: NumPy's functions on this package's arrays, with gradients and devices; the default dtype is float32.

Operators come from the compiled registry; `composed` writes further functions with them (and gives way to an
operator of the same name); `calls`, `ordering` and `products` give NumPy's calling forms to those that need them."""
from __future__ import annotations

import sys as _sys

from .. import _core
from ..base import did_you_mean as _did_you_mean
from ..registry import functions as _functions
from .dtypes import *  # noqa: F401,F403
from .composed import *  # noqa: F401,F403

globals().update((name, f) for name, f in _functions("np").items() if "." not in name)

from .calls import *  # noqa: E402,F401,F403
from .ordering import *  # noqa: E402,F401,F403
from .products import *  # noqa: E402,F401,F403
from . import linalg, random  # noqa: E402,F401

from . import _methods  # noqa: E402

_methods.install()
ndarray = _core.ndarray
_SELF = _sys.modules[__name__]


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"mx.np has no attribute {name!r}.{_did_you_mean(name, vars(_SELF))}")
