# SPDX-License-Identifier: Apache-2.0
"""NumPy's calling forms of `tensordot` and `einsum`, over the registry's operators."""
from __future__ import annotations

from ..registry import functions as _functions
from ..base import integer_types
from ._arguments import as_array as _array

__all__ = ["tensordot", "einsum"]

_npx = _functions("npx")


def tensordot(a, b, axes=2):
    """The sum of products over pairs of axes: a number n stands for the last n of `a` and the first n of `b`, else
    (axes of a, axes of b). The result has the remaining axes of `a`, then those of `b`.

    ValueError where sizes differ, axes do not pair up, or one is out of range."""
    a, b = _array(a), _array(b)
    if isinstance(axes, integer_types):
        if axes < 0 or axes > min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {axes} axes cannot be summed over arrays of {a.ndim} and {b.ndim} axes")
        pairs = [tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))]
    else:
        pairs = [(v,) if isinstance(v, integer_types) else tuple(v) for v in axes]
    if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"tensordot: as many axes of one array as of the other are needed; got {axes}")
    return _npx["tensordot_axes"](a, b, a_axes=pairs[0], b_axes=pairs[1])


def einsum(subscripts, *operands, optimize=None):
    """Sums of products by letters: `einsum('bij,bjk->bik', a, b)`. Letters that the result lacks are summed over;
    without '->' it has the letters that occur once, in alphabetic order. '...' stands for axes that broadcast.

    optimize is accepted; arrays are combined from left to right. ValueError where letters and sizes do not fit."""
    return _npx["einsum_of"](*[_array(x) for x in operands], subscripts=subscripts)
