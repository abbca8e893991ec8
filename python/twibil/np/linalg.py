# SPDX-License-Identifier: Apache-2.0
"""`mx.np.linalg`: norms, written with operators so that they have gradients."""
from __future__ import annotations

from ..base import did_you_mean as _did_you_mean
from ..registry import functions as _functions
from ._arguments import as_array as _as_array, axes_of as _axes_of

__all__ = ["norm", "vector_norm", "matrix_norm"]


def _reduce(name):
    return lambda x, axis, keepdims: _functions("np")[name](x, axis=axis, keepdims=keepdims)


def _vector(x, ord, axis, keepdims):
    total, absolute, power = _reduce("sum"), _functions("np")["abs"], _functions("np")["power"]
    if ord is None or ord == 2 or ord == "fro":
        return _functions("np")["sqrt"](total(x * x, axis, keepdims))
    if ord == float("inf"):
        return _reduce("max")(absolute(x), axis, keepdims)
    if ord == float("-inf"):
        return _reduce("min")(absolute(x), axis, keepdims)
    if ord == 0:
        return total((x != 0).astype(x.dtype), axis, keepdims)
    if ord == 1:
        return total(absolute(x), axis, keepdims)
    if isinstance(ord, (int, float)):
        return power(total(power(absolute(x), ord), axis, keepdims), 1.0 / ord)
    raise ValueError(f"norm: order {ord!r} is not defined for vectors")


def _matrix(x, ord, axis, keepdims):
    if ord in (None, "fro", "f"):
        return _vector(x, 2, axis, keepdims)
    row, column = axis
    sums = {1: (row, column, "max"), -1: (row, column, "min"),
            float("inf"): (column, row, "max"), float("-inf"): (column, row, "min")}
    if ord not in sums:
        raise NotImplementedError(f"norm: matrix order {ord!r} needs singular values, which this version lacks; "
                                  "orders are None, 'fro', 1, -1, inf, -inf")
    inner, outer, name = sums[ord]
    kept = _reduce(name)(_reduce("sum")(_functions("np")["abs"](x), inner, True), outer, True)
    return kept if keepdims else kept.squeeze(axis=axis)


def norm(x, ord=None, axis=None, keepdims=False):
    """Vector norm (one axis, or all elements) or matrix norm (two axes).

    ord: None is the Euclidean or Frobenius norm; also 0, 1, -1, inf, -inf, any p for vectors, 'fro' for matrices.
    Raises ValueError for an unknown order or more than two axes."""
    x = _as_array(x)
    if axis is None:
        if ord is None:
            flat = _vector(x.reshape(-1), 2, 0, False)
            return flat.reshape((1,) * x.ndim) if keepdims else flat
        if x.ndim > 2:
            raise ValueError(f"norm: name the axes of an array of {x.ndim} dimensions when an order is given")
        axis = tuple(range(x.ndim))
    axes = tuple(_axes_of(axis, x.ndim, "norm"))
    if len(axes) == 1:
        return _vector(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix(x, ord, axes, keepdims)
    raise ValueError(f"norm: one or two axes are needed; got {len(axes)}")


def vector_norm(x, ord=2, axis=None, keepdims=False):
    """Vector norm over one axis, or over all elements."""
    x = _as_array(x)
    if axis is None:
        value = _vector(x.reshape(-1), ord, 0, False)
        return value.reshape((1,) * x.ndim) if keepdims else value
    return _vector(x, ord, axis, keepdims)


def matrix_norm(x, ord="fro", keepdims=False):
    """Matrix norm over the last two axes."""
    return norm(x, ord, axis=(-2, -1), keepdims=keepdims)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"mx.np.linalg has no attribute {name!r}.{_did_you_mean(name, __all__)}")
