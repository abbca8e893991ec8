# SPDX-License-Identifier: Apache-2.0
"""Functions that make a batch from a list of samples."""
from __future__ import annotations

import numpy as onp

from ... import _core, np
from ...base import describe


def _host(x):
    return x.asnumpy() if isinstance(x, _core.ndarray) else onp.asarray(x)


def default_batchify(samples):
    """Arrays are stacked; tuples give a list with a batch for each part; numbers and NumPy arrays become an array of
    their dtype. ValueError for shapes that differ."""
    first = samples[0]
    if isinstance(first, _core.ndarray):
        _same_shapes(samples)
        return np.stack(samples)
    if isinstance(first, (tuple, list)):
        lengths = {len(s) for s in samples}
        if len(lengths) > 1:
            raise ValueError(f"batchify: samples must have equally many parts; got {sorted(lengths)}")
        return [default_batchify(part) for part in zip(*samples)]
    if isinstance(first, (str, bytes)):
        return list(samples)
    _same_shapes(samples)
    return _core.array(onp.asarray(samples))


def _same_shapes(samples) -> None:
    shape = onp.shape(samples[0]) if not hasattr(samples[0], "shape") else samples[0].shape
    for i, s in enumerate(samples):
        other = s.shape if hasattr(s, "shape") else onp.shape(s)
        if tuple(other) != tuple(shape):
            raise ValueError(f"batchify: samples must have one shape; sample 0 has {list(shape)}, sample {i} has "
                             f"{list(other)}. batchify.Pad fills up shorter ones")


class Stack:
    """Stacks samples of one shape along a new first axis."""

    def __init__(self, use_shared_mem=False):
        pass

    def __call__(self, data):
        return default_batchify([_core.array(d) if isinstance(d, list) else d for d in data])


class Pad:
    """Stacks samples after filling each up, at its end, to the largest size of each axis.

    val: the filling. axis: an axis to fill (others must agree); None fills all. ret_length: also the sizes before."""

    def __init__(self, val=0, dtype=None, axis=None, ret_length=False, use_shared_mem=False, round_to=None,
                 pad_val=None):
        self._val = val if pad_val is None else pad_val
        self._dtype, self._axis, self._ret_length, self._round_to = dtype, axis, ret_length, round_to

    def __call__(self, data):
        arrays = [_host(d) for d in data]
        if len({a.ndim for a in arrays}) > 1:
            raise ValueError(f"Pad: samples must have equally many axes; got {sorted({a.ndim for a in arrays})}")
        size = [max(sizes) for sizes in zip(*[a.shape for a in arrays])]
        for axis in range(len(size)):
            if self._axis is not None and axis != self._axis % len(size) and len({a.shape[axis] for a in arrays}) > 1:
                raise ValueError(f"Pad: sizes may differ along axis {self._axis} only; axis {axis} differs too")
            if self._round_to and (self._axis is None or axis == self._axis % len(size)):
                size[axis] = -(-size[axis] // self._round_to) * self._round_to
        numbers = arrays[0].dtype == onp.float64 and not hasattr(data[0], "dtype")  # lists of Python numbers
        dtype = self._dtype or (_core.default_dtype() if numbers else arrays[0].dtype)
        out = onp.full((len(arrays), *size), self._val, dtype=dtype)
        for i, a in enumerate(arrays):
            out[(i, *[slice(0, n) for n in a.shape])] = a
        batch = _core.array(out)
        if not self._ret_length:
            return batch
        return batch, _core.array(onp.array([a.shape[self._axis or 0] for a in arrays], dtype="int32"))


class Group:
    """One function for each part of the samples: `Group(Stack(), Pad())`."""

    def __init__(self, fn, *args):
        self._functions = list(fn) if isinstance(fn, (list, tuple)) else [fn, *args]
        for f in self._functions:
            if not callable(f):
                raise TypeError(f"Group: functions are needed; got {describe(f)}")

    def __call__(self, data):
        if len(data[0]) != len(self._functions):
            raise ValueError(f"Group: samples have {len(data[0])} parts for {len(self._functions)} functions")
        return tuple(f([d[i] for d in data]) for i, f in enumerate(self._functions))


Tuple = Group


class Append:
    """A list of samples as arrays, each with a batch axis of size 1 in front (`expand`)."""

    def __init__(self, expand=True, batch_axis=0, use_shared_mem=False):
        self._expand, self._axis = expand, batch_axis

    def __call__(self, data):
        arrays = [d if isinstance(d, _core.ndarray) else _core.array(d) for d in data]
        return [np.expand_dims(a, self._axis) for a in arrays] if self._expand else arrays


class AsList:
    """The samples as they are, in a list."""

    def __call__(self, data):
        return list(data)
