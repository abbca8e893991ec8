# SPDX-License-Identifier: Apache-2.0
"""NumPy's calling forms for operators whose Python form differs from the registry's: constructors from Python objects,
functions that return lists, and functions whose result depends on which arguments are given."""
from __future__ import annotations

import math

import numpy as onp

from .. import _core
from ..base import describe, integer_types
from ..registry import functions as _functions

__all__ = ["array", "asarray", "ascontiguousarray", "copy", "split", "array_split", "hsplit", "vsplit", "dsplit",
           "meshgrid", "broadcast_arrays", "indices", "ix_", "linspace", "where", "genfromtxt", "shape", "ndim",
           "size", "result_type", "promote_types", "can_cast", "may_share_memory", "shares_memory", "set_printoptions",
           "get_printoptions", "printoptions", "load", "save", "savez"]


def array(object, dtype=None, ctx=None, device=None):
    """A new array from numbers, lists, NumPy arrays or arrays.

    dtype: by default the source's, where it has one, and float32 for Python numbers and lists.
    Raises ValueError for ragged lists, TypeError for objects that are no numbers."""
    return _core.array(object, dtype=dtype, ctx=device if ctx is None else ctx)


def asarray(obj, dtype=None, ctx=None, device=None, copy=None):
    """`obj` itself where it is an array of the wanted dtype, else a new array."""
    if isinstance(obj, _core.ndarray) and not copy and (dtype is None or obj.dtype == onp.dtype(dtype)):
        return obj if ctx is None and device is None else obj.as_in_ctx(ctx or device)
    return array(obj, dtype, ctx, device)


def ascontiguousarray(a, dtype=None):
    """`a` itself where it is an array in row-major order (and of the dtype), else a copy that is."""
    x = asarray(a, dtype)
    steps = [x.itemsize * math.prod(x.shape[i + 1:]) for i in range(x.ndim)]
    in_order = all(n == 1 or have == want for n, have, want in zip(x.shape, x.strides, steps))
    return x if in_order or x.size == 0 else x.copy()


def copy(a):
    """A copy of an array or of an array-like."""
    return a.copy() if isinstance(a, _core.ndarray) else array(a)


_MOST_SECTIONS = 1 << 24  # a list of so many arrays takes gigabytes; a mistaken number must not hang


def _cuts(ary, indices_or_sections, axis: int, name: str, even: bool) -> list:
    n = ary.shape[axis]
    if not isinstance(indices_or_sections, integer_types):
        return [int(v) for v in indices_or_sections]
    k = int(indices_or_sections)
    if k <= 0:
        raise ValueError(f"{name}: the number of sections must be positive; got {k}")
    if even and n % k:
        raise ValueError(f"{name}: axis {axis} of size {n} does not divide into {k} equal sections; "
                         "array_split allows unequal ones")
    if k > _MOST_SECTIONS:
        raise MemoryError(f"{name}: {k} sections are more than the {_MOST_SECTIONS} that a list of arrays may hold")
    base, more = divmod(n, k)
    return [i * base + min(i, more) for i in range(1, k)]


def _pieces(ary, cuts: list, axis: int) -> list:
    front = (slice(None),) * (axis % ary.ndim)
    ends = [*cuts, ary.shape[axis]]
    return [ary[(*front, slice(start, end))] for start, end in zip([0, *cuts], ends)]


def _check_axis(ary, axis: int, name: str) -> None:
    if not -ary.ndim <= axis < ary.ndim:
        raise ValueError(f"{name}: axis {axis} is out of range for {describe(ary)}")


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, ctx=None, device=None):
    """`num` evenly spaced numbers from start to stop, float32 by default; with `retstep` also their distance.

    NotImplementedError for arrays as ends; ValueError for a negative number."""
    if isinstance(start, _core.ndarray) and start.ndim or isinstance(stop, _core.ndarray) and stop.ndim or axis != 0:
        raise NotImplementedError("linspace: start and stop must be numbers here")
    ctx = device if ctx is None else ctx
    values = _functions("np")["linspace"](float(start), float(stop), num=num, endpoint=endpoint, dtype=dtype,
                                                      **({} if ctx is None else {"ctx": ctx}))
    if not retstep:
        return values
    parts = num - 1 if endpoint else num
    return values, (float(stop) - float(start)) / parts if parts > 0 else float("nan")


def where(condition, x=None, y=None):
    """x where the condition is true, else y; without both, the positions where it is true, a tuple of int64 arrays.

    ValueError for only one of x and y."""
    if (x is None) != (y is None):
        raise ValueError("where: both x and y are needed, or neither")
    if x is None:
        from .ordering import nonzero
        return nonzero(condition)
    return _functions("np")["where"](condition, x, y)


def split(ary, indices_or_sections, axis=0):
    """A list of views: equal sections, or pieces cut at the given indices.

    Raises ValueError where the axis does not divide or does not exist."""
    ary = asarray(ary)
    _check_axis(ary, axis, "split")
    return _pieces(ary, _cuts(ary, indices_or_sections, axis, "split", True), axis)


def array_split(ary, indices_or_sections, axis=0):
    """As `split`, but sections may differ in size by one."""
    ary = asarray(ary)
    _check_axis(ary, axis, "array_split")
    return _pieces(ary, _cuts(ary, indices_or_sections, axis, "array_split", False), axis)


def hsplit(ary, indices_or_sections):
    """`split` along axis 1 (axis 0 for one dimension)."""
    ary = asarray(ary)
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def vsplit(ary, indices_or_sections):
    """`split` along axis 0; two dimensions are needed."""
    ary = asarray(ary)
    if ary.ndim < 2:
        raise ValueError(f"vsplit: at least 2 dimensions are needed; got {describe(ary)}")
    return split(ary, indices_or_sections, 0)


def dsplit(ary, indices_or_sections):
    """`split` along axis 2; three dimensions are needed."""
    ary = asarray(ary)
    if ary.ndim < 3:
        raise ValueError(f"dsplit: at least 3 dimensions are needed; got {describe(ary)}")
    return split(ary, indices_or_sections, 2)


def broadcast_arrays(*args, subok=False):
    """The arrays broadcast to their common shape, as a list."""
    args = [asarray(a) for a in args]
    target = onp.broadcast_shapes(*[a.shape for a in args])
    broadcast_to = _functions("np")["broadcast_to"]
    return [broadcast_to(a, target) for a in args]


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinate arrays from one-dimensional axes, as a list.

    indexing: 'xy' swaps the first two dimensions, 'ij' keeps the order. sparse: leave dimensions of size 1."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij'; got {indexing!r}")
    n = len(xi)
    grids = []
    for i, x in enumerate(xi):
        x = asarray(x)
        if x.ndim > 1:
            raise ValueError(f"meshgrid: axes must have one dimension; argument {i} has {x.ndim}")
        place = 1 - i if indexing == "xy" and n > 1 and i < 2 else i
        grids.append(x.reshape([-1 if d == place else 1 for d in range(n)]))
    grids = grids if sparse else broadcast_arrays(*grids)
    return [g.copy() for g in grids] if copy else grids


def indices(dimensions, dtype=None, ctx=None):
    """The index grid: shape (len(dimensions), *dimensions), int64 by default."""
    return _core.array(onp.indices(dimensions), dtype=dtype or "int64", ctx=ctx)


def ix_(*args):
    """One-dimensional arrays shaped to index an open grid, as a tuple."""
    n = len(args)
    return tuple(asarray(a).reshape([-1 if d == i else 1 for d in range(n)]) for i, a in enumerate(args))


def genfromtxt(*args, **kwargs):
    """NumPy's reader of text tables; the result becomes an array of the same dtype."""
    return array(onp.genfromtxt(*args, **kwargs))


def shape(a):
    """The shape, as a tuple."""
    return a.shape if hasattr(a, "shape") else onp.shape(a)


def ndim(a):
    """The number of dimensions."""
    return len(shape(a))


def size(a, axis=None):
    """The number of elements, or the length of `axis`."""
    dims = shape(a)
    return int(onp.prod(dims, dtype=onp.int64)) if axis is None else dims[axis]


def _dtype_of(x):
    return x.dtype if isinstance(x, _core.ndarray) else x


def result_type(*arrays_and_dtypes):
    """The dtype that an operation on the arguments has: that of an addition of empty arrays, Python numbers weak."""
    total = None
    for item in arrays_and_dtypes:
        if not isinstance(item, (bool, int, float)):
            item = _core.array(onp.zeros((0,)), dtype=_dtype_of(item))
        total = item if total is None else total + item
    return total.dtype if hasattr(total, "dtype") else array(total).dtype


promote_types = result_type


def can_cast(from_, to, casting="safe"):
    """NumPy's rule on dtypes, as a Python bool."""
    return bool(onp.can_cast(_dtype_of(from_), to, casting))


def may_share_memory(a, b, max_work=None):
    """Whether two NumPy arrays look at overlapping memory. NotImplementedError for arrays of this package, which do not
    show where their elements lie."""
    if isinstance(a, _core.ndarray) or isinstance(b, _core.ndarray):
        raise NotImplementedError("may_share_memory: arrays of this package do not show where their elements lie")
    return bool(onp.may_share_memory(a, b))


shares_memory = may_share_memory


def set_printoptions(*args, **kwargs):
    """Printing options; arrays print as NumPy's, so NumPy's options are set, with its arguments."""
    onp.set_printoptions(*args, **kwargs)


def get_printoptions():
    """The printing options now, by name."""
    return onp.get_printoptions()


def printoptions(*args, **kwargs):
    """Printing options inside a `with`."""
    return onp.printoptions(*args, **kwargs)


def save(file, arr):
    """Writes one array as `.npy`."""
    onp.save(file, arr.asnumpy())


def savez(file, *args, **kwargs):
    """Writes arrays as `.npz`."""
    onp.savez(file, *[a.asnumpy() for a in args], **{k: v.asnumpy() for k, v in kwargs.items()})


def load(file):
    """Reads `.npy` (an array) or `.npz` (a dict of arrays); pickled objects are refused (ValueError)."""
    data = onp.load(file, allow_pickle=False)
    if isinstance(data, onp.ndarray):
        return array(data)
    with data:
        return {name: array(data[name]) for name in data.files}
