# SPDX-License-Identifier: Apache-2.0
"""Extensions of `mx.npx` written with other operators: slices, sequences, batches, copies with changed elements."""
from __future__ import annotations

import builtins
import math

from .. import _core
from ..base import integer_types
from ..registry import functions as _functions
from ..np import arange, where
from ..np._arguments import as_array, axes_of, axis_of

__all__ = ["batch_flatten", "reshape", "slice", "slice_axis", "slice_like", "sequence_mask", "sequence_last",
           "sequence_reverse", "arange_like", "stop_gradient", "shape_array", "index_update", "index_add", "topk",
           "sort", "argsort"]


def batch_flatten(x):
    """(batch, ...) to (batch, rest)."""
    x = as_array(x)
    if x.ndim == 0:
        raise ValueError("batch_flatten: at least one dimension is needed; got none")
    return x.reshape((x.shape[0], math.prod(x.shape[1:])))


def reshape(a, newshape, reverse=False, order="C"):
    """Another shape, with codes: -1 is inferred, -2 keeps the size at that place, -3 drops one of size 1, -4 keeps all
    remaining sizes, -5 joins the next two, -6 splits the next one into the two sizes that follow.

    ValueError for codes that do not fit."""
    a = as_array(a)
    codes = [newshape] if isinstance(newshape, integer_types) else [int(n) for n in newshape]
    old = a.shape[::-1] if reverse else a.shape
    sizes = _code_sizes(old, codes[::-1] if reverse else codes)
    return a.reshape(tuple(sizes[::-1] if reverse else sizes))


def _code_sizes(old: tuple, codes: list) -> list:
    sizes, place, i = [], 0, 0

    def take() -> int:
        nonlocal place
        if place >= len(old):
            raise ValueError(f"reshape: the codes {codes} need more axes than shape {list(old)} has")
        place += 1
        return old[place - 1]
    while i < len(codes):
        code = codes[i]
        if code == -2:
            sizes.append(take())
        elif code == -3:
            if take() != 1:
                raise ValueError(f"reshape: -3 drops an axis of size 1; got {old[place - 1]} in {list(old)}")
        elif code == -4:
            sizes.extend(old[place:])
            place = len(old)
        elif code == -5:
            sizes.append(take() * take())
        elif code == -6:
            if len(codes) < i + 3 or {codes[i + 1], codes[i + 2]} & {0} or codes[i + 1] == codes[i + 2] == -1:
                raise ValueError(f"reshape: two sizes, of which one may be -1, must follow -6; got {codes}")
            whole, first, second = take(), codes[i + 1], codes[i + 2]
            sizes += [whole // second if first == -1 else first, whole // first if second == -1 else second]
            i += 2
        else:
            place += 1
            sizes.append(code)
        i += 1
    return sizes


def slice(data, begin, end, step=()):
    """data[begin[0]:end[0]:step[0], ...]; None leaves an end open. A view."""
    data = as_array(data)
    as_tuple = lambda v: (v,) if isinstance(v, integer_types) or v is None else tuple(v)  # noqa: E731
    begin, end, step = as_tuple(begin), as_tuple(end), as_tuple(step)
    if len(begin) != len(end) or len(begin) > data.ndim:
        raise ValueError(f"slice: begin {begin} and end {end} must be equally long, and not longer than shape "
                         f"{list(data.shape)}")
    step = step + (None,) * (len(begin) - len(step))
    return data[tuple(builtins.slice(b, e, s) for b, e, s in zip(begin, end, step))]


def slice_axis(data, axis, begin, end):
    """data[..., begin:end, ...] along one axis. A view."""
    data = as_array(data)
    return data[(*[builtins.slice(None)] * axis_of(axis, data.ndim, "slice_axis"), builtins.slice(begin, end))]


def slice_like(data, shape_like, axes=()):
    """`data` cut to the sizes of `shape_like` along `axes` (all where empty). A view."""
    data, shape_like = as_array(data), as_array(shape_like)
    axes = axes_of(axes, data.ndim, "slice_like") if axes != () else range(data.ndim)
    axes_of(tuple(axes), shape_like.ndim, "slice_like")
    return data[tuple(builtins.slice(None, shape_like.shape[i]) if i in axes else builtins.slice(None)
                      for i in range(data.ndim))]


def _steps(data, lengths, axis: int):
    """Positions along the time axis, and lengths along the batch axis, shaped to broadcast over data."""
    if axis not in (0, 1):
        raise ValueError(f"sequence: the time axis must be 0 or 1; got {axis}")
    rest = (1,) * (data.ndim - 2)
    positions = arange(data.shape[axis], dtype="int64").reshape((-1, 1, *rest) if axis == 0 else (1, -1, *rest))
    return positions, lengths.reshape((1, -1, *rest) if axis == 0 else (-1, 1, *rest))


def sequence_mask(data, sequence_length=None, use_sequence_length=False, value=0.0, axis=0):
    """`data` (time, batch, ...), or (batch, time, ...) for axis 1, with `value` at and after each sequence's length."""
    if not use_sequence_length or sequence_length is None:
        return data
    positions, lengths = _steps(data, sequence_length, axis)
    return where(positions < lengths, data, value)


def sequence_last(data, sequence_length=None, use_sequence_length=False, axis=0):
    """The last step of each sequence: (batch, ...)."""
    if not use_sequence_length or sequence_length is None:
        return data[-1] if axis == 0 else data[:, -1]
    data = as_array(data)
    last, batch = as_array(sequence_length).astype("int64") - 1, arange(data.shape[1 - axis], dtype="int64")
    return data[last, batch] if axis == 0 else data[batch, last]


def sequence_reverse(data, sequence_length=None, use_sequence_length=False, axis=0):
    """Each sequence of (time, batch, ...) backwards; steps at and after its length stay."""
    if axis != 0:
        raise ValueError(f"sequence_reverse: the time axis must be 0; got {axis}")
    if not use_sequence_length or sequence_length is None:
        return data[::-1]
    time = arange(data.shape[0], dtype="int64").reshape((-1, 1))
    lengths = as_array(sequence_length).astype("int64").reshape((1, -1))
    places = where(time < lengths, lengths - 1 - time, time)
    return data[places, arange(data.shape[1], dtype="int64").reshape((1, -1))]


def arange_like(data, start=0.0, step=1.0, repeat=1, ctx=None, axis=None):
    """start, start + step, ... in the shape of `data`, or as many as `axis` is long; each `repeat` times."""
    data = as_array(data)
    n = data.size if axis is None else data.shape[axis]
    values = start + step * arange(-(-n // repeat))
    values = (values.repeat(repeat)[:n] if repeat != 1 else values).astype(data.dtype)
    return values.reshape(data.shape) if axis is None else values


def stop_gradient(x):
    """The elements of `x`; no gradient flows back through it."""
    return as_array(x).detach()


def shape_array(data):
    """The shape as an int64 array."""
    return _core.array(list(as_array(data).shape), dtype="int64")


def _position(ind):
    """An index tuple from (k, n) indices, or from an index of another kind."""
    if isinstance(ind, _core.ndarray) and ind.ndim == 2 and str(ind.dtype) != "bool":
        return tuple(ind[i] for i in range(ind.shape[0]))
    return ind


def index_update(a, ind, val):
    """A copy of `a` with a[ind] = val; an index array of shape (k, n) names n elements by k coordinates."""
    out = as_array(a).copy()
    out[_position(ind)] = val
    return out


def index_add(a, ind, val):
    """A copy of `a` with `val` added at the indices; where several are equal, all values are added.

    NotImplementedError for repeated indices."""
    out, place = as_array(a).copy(), _position(ind)
    chosen = a[place]
    out[place] = chosen + val
    if isinstance(place, tuple) and all(isinstance(p, _core.ndarray) for p in place):
        keys = {tuple(int(p[i]) for p in place) for i in range(place[0].shape[0])}
        if len(keys) != place[0].shape[0]:
            raise NotImplementedError("index_add: repeated indices are not supported here")
    return out


def topk(data, axis=-1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"):
    """The k largest (or smallest) elements along `axis` (None: of the flattened array), in order.

    ret_typ: 'indices' (of `dtype`), 'value', 'mask', or 'both': [values, indices]. ValueError for k above the size."""
    one = _functions("npx")["topk_one"]
    if ret_typ == "both":
        return [one(data, axis=axis, k=k, ret_typ=kind, is_ascend=is_ascend, dtype=dtype)
                for kind in ("value", "indices")]
    return one(data, axis=axis, k=k, ret_typ=ret_typ, is_ascend=is_ascend, dtype=dtype)


def sort(data, axis=-1, is_ascend=True):
    """The elements in rising (or falling) order along `axis`."""
    return _functions("npx")["sort_axis"](data, axis=axis, is_ascend=is_ascend)


def argsort(data, axis=-1, is_ascend=True, dtype="float32"):
    """The order that sorts along `axis`, as `dtype`."""
    return _functions("npx")["argsort_axis"](data, axis=axis, is_ascend=is_ascend).astype(dtype)
