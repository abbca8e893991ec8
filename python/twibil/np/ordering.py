# SPDX-License-Identifier: Apache-2.0
"""NumPy's forms of sorting, searching, distinct elements and padding, over the registry's operators."""
from __future__ import annotations

from ..registry import functions as _functions
from ..base import integer_types
from ._arguments import as_array as _array

__all__ = ["sort", "argsort", "unique", "nonzero", "pad"]

_npx = _functions("npx")


def _along(x, axis):
    """The array and axis to work on: the flattened array where `axis` is None."""
    x = _array(x)
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def sort(a, axis=-1, kind=None, order=None):
    """The elements in rising order along `axis` (None: of the flattened array); equal ones keep their order, NaN comes
    last."""
    x, axis = _along(a, axis)
    return _npx["sort_axis"](x, axis=axis)


def argsort(a, axis=-1, kind=None, order=None):
    """The order that sorts `a` along `axis` (None: the flattened array), int64."""
    x, axis = _along(a, axis)
    return _npx["argsort_axis"](x, axis=axis)


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None):
    """The distinct elements in rising order; on request also where each comes first, which of them each element is, and
    how often each occurs, in this order, int64. NotImplementedError for an axis."""
    if axis is not None:
        raise NotImplementedError("unique: only the elements of the whole array can be compared; got an axis")
    x = _array(ar)
    values, index, inverse, counts = _npx["unique_all"](x)
    wanted = [v for v, on in ((index, return_index), (inverse, return_inverse), (counts, return_counts)) if on]
    return (values, *wanted) if wanted else values


def nonzero(a):
    """The positions of the elements that are not zero: an int64 array for each axis, in a tuple."""
    x = _array(a)
    x = x.reshape(1) if x.ndim == 0 else x
    places = _npx["nonzero"](x)
    return tuple(places[:, i] for i in range(x.ndim))


def pad(x, pad_width=None, mode="constant", constant_values=0, **others):
    """`x` with elements added at the ends of its axes.

    pad_width: a number, (before, after), or such a pair for each axis. mode: 'constant' (a number), 'edge', 'reflect',
    'symmetric' or 'wrap', as in NumPy. NotImplementedError for other modes and for several constants."""
    x = _array(x)
    if others:
        raise NotImplementedError(f"pad: {', '.join(others)} does not exist here")
    if not isinstance(constant_values, (int, float)):
        raise NotImplementedError("pad: constant_values must be one number here")
    width = (pad_width, pad_width) if isinstance(pad_width, integer_types) else tuple(pad_width)
    if len(width) == 1 and not isinstance(width[0], integer_types):
        width = tuple(width[0])
    pairs = [width] * x.ndim if all(isinstance(w, integer_types) for w in width) else [tuple(w) for w in width]
    if len(pairs) != x.ndim or any(len(p) != 2 for p in pairs):
        raise ValueError(f"pad: pad_width must be a number, a pair, or a pair for each of {x.ndim} axes; "
                         f"got {pad_width}")
    return _npx["pad_axes"](x, before=tuple(int(b) for b, _ in pairs), after=tuple(int(a) for _, a in pairs), mode=mode,
                            constant_values=float(constant_values))
