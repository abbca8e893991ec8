# SPDX-License-Identifier: Apache-2.0
"""Data sets: things with a length and samples by number, and views of them."""
from __future__ import annotations

import numpy as onp

from ... import _core
from ...base import describe


class Dataset:
    """Base of data sets. Derive and write `__getitem__(self, idx)` and `__len__(self)`."""

    def __getitem__(self, idx):
        raise NotImplementedError(f"{type(self).__name__}.__getitem__ must be written")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}.__len__ must be written")

    def filter(self, fn):
        """The samples for which `fn(sample)` is true; each is looked at once, now."""
        return _Chosen(self, [i for i in range(len(self)) if fn(self[i])])

    def shard(self, num_shards, index):
        """Part `index` of `num_shards` of nearly equal size, in order. ValueError for an index out of range."""
        if not 0 <= index < num_shards:
            raise ValueError(f"shard: index must be from 0 to {num_shards - 1}; got {index}")
        base, more = divmod(len(self), num_shards)
        start = base * index + min(index, more)
        return _Chosen(self, range(start, start + base + (index < more)))

    def take(self, count):
        """The first `count` samples; all for None or a larger count."""
        if count is not None and count < 0:
            raise ValueError(f"take: count must not be negative; got {count}")
        return _Chosen(self, range(len(self) if count is None else min(count, len(self))))

    def sample(self, sampler):
        """The samples that a `Sampler` names, in its order."""
        from .sampler import Sampler
        if not isinstance(sampler, Sampler):
            raise TypeError(f"sample: a gluon.data.Sampler is needed; got {describe(sampler)}")
        return _Chosen(self, list(sampler))

    def transform(self, fn, lazy=True):
        """Samples passed through `fn` (all parts as arguments), each time one is read, or once now (`lazy=False`)."""
        view = _Transformed(self, fn)
        return view if lazy else SimpleDataset([view[i] for i in range(len(view))])

    def transform_first(self, fn, lazy=True):
        """As `transform`, on the first part of each sample; the other parts stay."""
        return self.transform(_First(fn), lazy)


class SimpleDataset(Dataset):
    """A list, or anything with a length and indices, as a data set."""

    def __init__(self, data):
        self._data = data

    def __len__(self):
        return len(self._data)

    def __getitem__(self, idx):
        return self._data[idx]


class _Chosen(Dataset):
    """Some samples of another data set, by number."""

    def __init__(self, data, indices):
        self._data, self._indices = data, indices

    def __len__(self):
        return len(self._indices)

    def __getitem__(self, idx):
        return self._data[self._indices[idx]]


class _Transformed(Dataset):
    """Samples of another data set passed through a function."""

    def __init__(self, data, fn):
        if not callable(fn):
            raise TypeError(f"transform: a function is needed; got {describe(fn)}")
        self._data, self._fn = data, fn

    def __len__(self):
        return len(self._data)

    def __getitem__(self, idx):
        item = self._data[idx]
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)


class _First:
    """A function on the first part of a sample."""

    def __init__(self, fn):
        if not callable(fn):
            raise TypeError(f"transform_first: a function is needed; got {describe(fn)}")
        self._fn = fn

    def __call__(self, x, *others):
        return (self._fn(x), *others) if others else self._fn(x)


class ArrayDataset(Dataset):
    """Arrays or lists of equal length as one data set; a sample is a tuple, or the item of a single array.

    ValueError for different lengths or no arrays."""

    def __init__(self, *args):
        if not args:
            raise ValueError("ArrayDataset: at least one array is needed")
        self._length = len(args[0])
        for i, a in enumerate(args):
            if len(a) != self._length:
                raise ValueError(f"ArrayDataset: all arrays need the same length; the first has {self._length}, number "
                                 f"{i} has {len(a)}")
        self._data = list(args)

    def __len__(self):
        return self._length

    def __getitem__(self, idx):
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(a[idx] for a in self._data)

    def batch(self, indices):
        """The samples of `indices` as stacked arrays, equal to batchified samples; None where a part is no array."""
        if not all(isinstance(a, (_core.ndarray, onp.ndarray)) for a in self._data):
            return None
        where = onp.asarray(indices, dtype="int64")
        if where.size and not (-self._length <= where.min() and where.max() < self._length):
            return None
        parts = [a[_core.array(where)] if isinstance(a, _core.ndarray) else _core.array(a[where]) for a in self._data]
        return parts[0] if len(parts) == 1 else parts
