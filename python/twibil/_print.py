# SPDX-License-Identifier: Apache-2.0
"""The text of arrays, as NumPy prints them; the default dtype goes without saying. Called by the array type."""
from __future__ import annotations

import numpy as onp

from . import _core


def array_repr(x) -> str:
    """`array([1., 2.])`, with a dtype other than the default and bool, and the shape where there are no elements."""
    if _core.is_traced(x):
        return f"<traced array {x.dtype} {list(x.shape)}>"
    values = x.asnumpy()
    text = onp.array2string(values, separator=", ", prefix="array(")
    parts = [text]
    if x.size == 0 and x.shape != (0,):
        parts = ["[]", f"shape={x.shape}"]
    if str(x.dtype) not in (str(_core.default_dtype()), "bool"):
        parts.append(f"dtype={x.dtype}")
    return f"array({', '.join(parts)})"


def array_str(x) -> str:
    """`[1. 2.]`."""
    return array_repr(x) if _core.is_traced(x) else str(x.asnumpy())
