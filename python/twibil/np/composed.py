# SPDX-License-Identifier: Apache-2.0
"""Functions of `mx.np` written with other operators; an operator of the registry with the same name replaces them."""
from __future__ import annotations


import numpy as onp

from .. import _core
from ..base import integer_types
from ._arguments import as_array as _arr, axes_of, axis_of

__all__ = ["append", "atleast_1d", "atleast_2d", "atleast_3d", "average", "column_stack", "diff", "dstack", "ediff1d",
           "fliplr", "flipud", "hstack", "identity", "inner", "isclose", "allclose", "array_equal", "logspace",
           "median", "moveaxis", "outer", "ptp", "roll", "rollaxis", "rot90", "row_stack", "trace", "trapz", "vdot",
           "vstack", "count_nonzero", "flatnonzero", "ravel", "kron", "cross", "tri", "permute_dims", "concat",
           "diagonal", "diag", "empty_like", "nansum", "searchsorted", "bincount"]


def _f(name: str):
    from .. import np
    return getattr(np, name)


def _host(x):
    return x.asnumpy() if isinstance(x, _core.ndarray) else x


def ravel(x, order: str = "C"):
    """`x` as one dimension; only row-major order exists here (else ValueError)."""
    if order != "C":
        raise ValueError(f"ravel: order must be 'C'; got {order!r}")
    return _arr(x).reshape(-1)


def atleast_1d(*arys):
    """Each array with at least one dimension; a list for several arrays."""
    out = [a.reshape(1) if a.ndim == 0 else a for a in map(_arr, arys)]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys):
    """Each array with at least two dimensions, new ones in front."""
    out = [a.reshape((1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a for a in map(_arr, arys)]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys):
    """Each array with at least three dimensions, NumPy's way: (N,) becomes (1, N, 1), (M, N) becomes (M, N, 1)."""
    forms = {0: lambda s: (1, 1, 1), 1: lambda s: (1, s[0], 1), 2: lambda s: (*s, 1)}
    out = [a.reshape(forms[a.ndim](a.shape)) if a.ndim < 3 else a for a in map(_arr, arys)]
    return out[0] if len(out) == 1 else out


def concat(seq, axis=0, out=None):
    """Array-API name of `concatenate`."""
    return _f("concatenate")(seq, axis=axis, out=out) if out is not None else _f("concatenate")(seq, axis=axis)


def hstack(arrays):
    """Joins along axis 1 (axis 0 for one-dimensional arrays)."""
    arrays = [atleast_1d(a) for a in arrays]
    return _f("concatenate")(arrays, axis=0 if arrays[0].ndim == 1 else 1)


def vstack(arrays):
    """Joins rows along axis 0 after making arrays two-dimensional."""
    return _f("concatenate")([atleast_2d(a) for a in arrays], axis=0)


row_stack = vstack


def dstack(arrays):
    """Joins along axis 2 after making arrays three-dimensional."""
    return _f("concatenate")([atleast_3d(a) for a in arrays], axis=2)


def column_stack(arrays):
    """Joins one-dimensional arrays as columns, and others along axis 1."""
    return _f("concatenate")([a.reshape(-1, 1) if a.ndim < 2 else a for a in map(_arr, arrays)], axis=1)


def append(arr, values, axis=None):
    """`values` after `arr`; both flattened where `axis` is None."""
    arr, values = _arr(arr), _arr(values)
    if axis is None:
        arr, values, axis = arr.reshape(-1), values.reshape(-1), 0
    return _f("concatenate")([arr, values], axis=axis)


def average(a, axis=None, weights=None, returned=False):
    """Weighted mean along `axis`; one-dimensional weights need an integer axis. `returned` adds the sum of weights."""
    a = _arr(a)
    if weights is None:
        avg = a.mean(axis=axis)
        total = _core.array(float(a.size / max(avg.size, 1)), dtype=avg.dtype)
    else:
        weights = _arr(weights)
        if weights.shape != a.shape:
            if weights.ndim != 1 or not isinstance(axis, integer_types) or weights.shape[0] != a.shape[axis]:
                raise ValueError(f"average: weights of shape {list(weights.shape)} do not fit axis {axis} of "
                                 f"{list(a.shape)}")
            weights = weights.reshape([-1 if i == axis % a.ndim else 1 for i in range(a.ndim)])
            total = weights.sum()
        else:
            total = weights.sum(axis=axis)
        avg = (a * weights).sum(axis=axis) / total
    return (avg, total + avg * 0) if returned else avg


def median(a, axis=None, out=None, overwrite_input=None, keepdims=False):
    """Median along one axis, or of all elements; NaN where there is a NaN. overwrite_input is accepted; the input is
    never changed."""
    a = _arr(a)
    flat = a.reshape(-1) if axis is None else a.swapaxes(axis, -1)
    n = flat.shape[-1]
    if n == 0:
        raise ValueError(f"median: an empty axis has no median; got shape {list(a.shape)}")
    s = _f("sort")(flat, axis=-1)
    mid = (s[..., (n - 1) // 2] + s[..., n // 2]) / 2
    if "float" in str(a.dtype):
        last = s[..., n - 1]  # NaN is sorted to the end
        mid = _f("where")(_f("isnan")(last), last, mid)
    if axis is not None:
        mid = mid.reshape((*mid.shape, 1)).swapaxes(axis, -1)
        mid = mid if keepdims else mid.squeeze(axis=axis)
    elif keepdims:
        mid = mid.reshape((1,) * a.ndim)
    if out is None:
        return mid
    out[...] = mid
    return out


def ptp(a, axis=None, keepdims=False):
    """Largest minus smallest element along `axis`."""
    a = _arr(a)
    return a.max(axis=axis, keepdims=keepdims) - a.min(axis=axis, keepdims=keepdims)


def moveaxis(a, source, destination):
    """Moves axes to new places, keeping the others' order."""
    a = _arr(a)
    src, dst = axes_of(source, a.ndim, "moveaxis"), axes_of(destination, a.ndim, "moveaxis")
    if len(src) != len(dst):
        raise ValueError(f"moveaxis: as many destinations as sources are needed; got {len(src)} and {len(dst)}")
    order = [i for i in range(a.ndim) if i not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return a.transpose(order)


def rollaxis(a, axis, start=0):
    """Moves `axis` in front of the axis `start`."""
    a = _arr(a)
    axis = axis_of(axis, a.ndim, "rollaxis")
    start = a.ndim if start == a.ndim else axis_of(start, a.ndim, "rollaxis")
    return moveaxis(a, axis, start - 1 if axis < start else start)


def permute_dims(a, axes=None):
    """Array-API name of `transpose`."""
    return _arr(a).transpose(axes) if axes is not None else _arr(a).transpose()


def flipud(m):
    """Rows in reverse order."""
    return _f("flip")(m, axis=0)


def fliplr(m):
    """Columns in reverse order."""
    return _f("flip")(m, axis=1)


def rot90(m, k=1, axes=(0, 1)):
    """`m` turned by k quarter turns from the first of `axes` towards the second."""
    m, k = _arr(m), k % 4
    axes = axes_of(tuple(axes), m.ndim, "rot90")
    if len(axes) != 2:
        raise ValueError(f"rot90: two axes are needed; got {len(axes)}")
    if k == 0:
        return m
    if k == 2:
        return _f("flip")(_f("flip")(m, axis=axes[0]), axis=axes[1])
    if k == 1:
        return _f("flip")(m, axis=axes[1]).swapaxes(*axes)
    return _f("flip")(m.swapaxes(*axes), axis=axes[1])


def roll(a, shift, axis=None):
    """Elements shifted along `axis`, those that fall off coming in at the other end."""
    a = _arr(a)
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    shifts = [shift] if isinstance(shift, integer_types) else list(shift)
    axes = [axis_of(ax, a.ndim, "roll") for ax in ([axis] if isinstance(axis, integer_types) else axis)]
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError(f"roll: as many shifts as axes are needed; got {len(shifts)} and {len(axes)}")
    for s, ax in zip(shifts, axes):
        n = a.shape[ax]
        if n and s % n:
            cut = (slice(None),) * ax
            a = _f("concatenate")([a[(*cut, slice(n - s % n, None))], a[(*cut, slice(None, n - s % n))]], axis=ax)
    return a


def diff(a, n=1, axis=-1):
    """n-th difference of neighbours along `axis`."""
    if n < 0:
        raise ValueError(f"diff: n must not be negative; got {n}")
    a = _arr(a)
    axis = axis_of(axis, a.ndim, "diff")
    cut = (slice(None),) * axis
    for _ in range(min(n, a.shape[axis])):  # from then on it is empty
        a = a[(*cut, slice(1, None))] - a[(*cut, slice(None, -1))]
    return a


def ediff1d(a, to_end=None, to_begin=None):
    """Differences of neighbours of the flattened array, with values put before and after."""
    parts = [None if to_begin is None else _arr(to_begin).reshape(-1), diff(_arr(a).reshape(-1)),
             None if to_end is None else _arr(to_end).reshape(-1)]
    return _f("concatenate")([p for p in parts if p is not None], axis=0)


def trapz(y, x=None, dx=1.0, axis=-1):
    """Integral of samples by the trapezoidal rule."""
    y = _arr(y)
    axis = axis_of(axis, y.ndim, "trapz")
    cut = (slice(None),) * axis
    width = dx if x is None else diff(_arr(x), axis=-1)
    return ((y[(*cut, slice(1, None))] + y[(*cut, slice(None, -1))]) * width / 2).sum(axis=axis)


def inner(a, b):
    """Sum of products over the last axis of both."""
    a, b = _arr(a), _arr(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return _f("tensordot")(a, b, axes=([-1], [-1]))


def outer(a, b):
    """Products of every element of `a` with every element of `b`, as a matrix."""
    return _arr(a).reshape(-1, 1) * _arr(b).reshape(1, -1)


def vdot(a, b):
    """Sum of the products of the flattened arrays."""
    return (_arr(a).reshape(-1) * _arr(b).reshape(-1)).sum()


def kron(a, b):
    """Kronecker product."""
    a, b = _arr(a), _arr(b)
    n = max(a.ndim, b.ndim)
    sa, sb = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    left = a.reshape([v for s in sa for v in (s, 1)])
    right = b.reshape([v for s in sb for v in (1, s)])
    return (left * right).reshape([x * y for x, y in zip(sa, sb)])


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Vector product of three-component vectors along the given axes."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(f"cross: vectors of 3 components are needed; got {a.shape[-1]} and {b.shape[-1]}")
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return _f("stack")(parts, axis=axisc)


def trace(a, offset=0, axis1=0, axis2=1):
    """Sum along a diagonal."""
    return diagonal(a, offset, axis1, axis2).sum(axis=-1)


def identity(n, dtype=None, ctx=None):
    """The n x n identity matrix."""
    return _core.array(onp.eye(n), dtype=dtype or _core.default_dtype(), ctx=ctx)


def tri(N, M=None, k=0, dtype=None, ctx=None):
    """Ones at and below the k-th diagonal, zeros above."""
    return _core.array(onp.tri(N, M, k), dtype=dtype or _core.default_dtype(), ctx=ctx)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, ctx=None):
    """`num` values from base**start to base**stop, evenly spaced in the exponent."""
    values = onp.logspace(_host(start), _host(stop), num, endpoint, _host(base))
    return _core.array(values, dtype=dtype or _core.default_dtype(), ctx=ctx)


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Elementwise |a - b| <= atol + rtol * |b|."""
    return _core.array(onp.isclose(_host(a), _host(b), _host(rtol), _host(atol), equal_nan))


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close, as a Python bool."""
    return bool(onp.allclose(_host(a), _host(b), _host(rtol), _host(atol), equal_nan))


def array_equal(a1, a2, equal_nan=False):
    """Whether shapes and all elements are equal, as a Python bool."""
    return bool(onp.array_equal(_arr(a1).asnumpy(), _arr(a2).asnumpy(), equal_nan=equal_nan))


def count_nonzero(a, axis=None, keepdims=False):
    """Number of elements that are not zero along `axis`."""
    return (_arr(a) != 0).astype("int64").sum(axis=axis, keepdims=keepdims)


def flatnonzero(a):
    """Positions of the non-zero elements of the flattened array, int64."""
    return _f("nonzero")(_arr(a).reshape(-1))[0]


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal over two axes, which becomes the last axis."""
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2:]
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    i = _f("arange")(n, dtype="int64")
    return a[..., i - min(offset, 0), i + max(offset, 0)]


def diag(v, k=0):
    """A matrix with the elements of one dimension on its k-th diagonal, or the k-th diagonal of a matrix."""
    v = _arr(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag: one or two dimensions are needed; got shape {list(v.shape)}")
    square = _f("where")(identity(v.shape[0], dtype="bool"), v, _f("zeros_like")(v))
    return _f("pad")(square, ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0)))) if k else square


def empty_like(prototype, dtype=None):
    """An array of the shape and dtype of another; the values are zeros."""
    return _f("zeros_like")(prototype) if dtype is None else _f("zeros_like")(prototype).astype(dtype)


def nansum(a, axis=None, dtype=None, keepdims=False):
    """The sum of the elements that are not NaN."""
    kept = _f("where")(_f("isnan")(a), _f("zeros_like")(a), a)
    return kept.sum(axis=axis, dtype=dtype, keepdims=keepdims)


def searchsorted(a, v, side="left"):
    """Where the elements of `v` belong in the sorted one-dimensional `a`, int64."""
    where = onp.searchsorted(_arr(a).asnumpy(), v.asnumpy() if isinstance(v, _core.ndarray) else v, side=side)
    return _core.array(onp.asarray(where))


def bincount(x, weights=None, minlength=0):
    """How often each of 0 to max(x) occurs (or the sum of its weights); at least `minlength` long."""
    weights = weights.asnumpy() if isinstance(weights, _core.ndarray) else weights
    return _core.array(onp.bincount(_arr(x).asnumpy().astype("int64"), weights, minlength))
