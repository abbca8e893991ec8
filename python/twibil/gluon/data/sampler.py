# SPDX-License-Identifier: Apache-2.0
"""Samplers: orders in which samples are read, and their grouping into batches."""
from __future__ import annotations

from ...host_random import generator
from ...base import integer_types


class Sampler:
    """Base of samplers. Derive and write `__iter__` and `__len__`."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}.__iter__ must be written")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}.__len__ must be written")


class SequentialSampler(Sampler):
    """start, start + 1, ..., start + length - 1."""

    def __init__(self, length, start=0):
        self._length, self._start = length, start

    def __iter__(self):
        return iter(range(self._start, self._start + self._length))

    def __len__(self):
        return self._length


class RandomSampler(Sampler):
    """0 to length - 1 in a new random order at each pass; follows `mx.random.seed`."""

    def __init__(self, length):
        self._length = length

    def __iter__(self):
        return iter(generator().permutation(self._length).tolist())

    def __len__(self):
        return self._length


class FilterSampler(Sampler):
    """Numbers of the samples of a data set for which `fn(sample)` is true."""

    def __init__(self, fn, dataset):
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self):
        return iter(self._indices)

    def __len__(self):
        return len(self._indices)


class IntervalSampler(Sampler):
    """0, k, 2k, ...; then, with `rollover`, 1, k + 1, ... and so on until all are read."""

    def __init__(self, length, interval, rollover=True):
        if not 0 < interval <= length:
            raise ValueError(f"IntervalSampler: interval must be from 1 to {length}; got {interval}")
        self._length, self._interval, self._rollover = length, interval, rollover

    def __iter__(self):
        for start in range(self._interval if self._rollover else 1):
            yield from range(start, self._length, self._interval)

    def __len__(self):
        return self._length if self._rollover else len(range(0, self._length, self._interval))


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers from another sampler. last_batch: an incomplete one is kept ('keep'), dropped
    ('discard') or put before the next pass ('rollover')."""

    def __init__(self, sampler, batch_size, last_batch="keep"):
        if last_batch not in ("keep", "discard", "rollover"):
            raise ValueError(f"BatchSampler: last_batch must be 'keep', 'discard' or 'rollover'; got {last_batch!r}")
        if not isinstance(batch_size, integer_types) or batch_size <= 0:
            raise ValueError(f"BatchSampler: batch_size must be a positive integer; got {batch_size!r}")
        self._sampler, self._batch_size, self._last_batch = sampler, batch_size, last_batch
        self._left: list = []

    def __iter__(self):
        batch, self._left = self._left, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif batch and self._last_batch == "rollover":
            self._left = batch

    def __len__(self):
        n, size = len(self._sampler), self._batch_size
        if self._last_batch == "keep":
            return -(-n // size)
        return (n + (len(self._left) if self._last_batch == "rollover" else 0)) // size
