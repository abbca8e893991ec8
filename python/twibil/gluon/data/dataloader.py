# SPDX-License-Identifier: Apache-2.0
"""`DataLoader`: batches from a data set, made by worker threads ahead of time."""
from __future__ import annotations

from ... import host_random
from ...base import describe
from .batchify import default_batchify
from .dataset import ArrayDataset, Dataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .workers import Workers

default_batchify_fn = default_mp_batchify_fn = default_batchify


class DataLoader:
    """Iterates over batches of `dataset`; each `for` is a new pass.

    batch_size, shuffle, sampler, last_batch ('keep', 'discard', 'rollover'): how samples are grouped; or batch_sampler
    alone. batchify_fn: makes a batch from a list of samples (default: stacks arrays; a list with a batch a part).
    num_workers: threads that prepare batches, at most `prefetch` (twice their number) ahead; 0 prepares each batch when
    it is asked for. timeout: seconds to wait for a batch. What a pass holds depends on the seed, not on the workers.
    An error in a sample is raised with that sample's number. pin_memory, thread_pool and others are accepted."""

    def __init__(self, dataset, batch_size=None, shuffle=False, sampler=None, last_batch=None, batch_sampler=None,
                 batchify_fn=None, num_workers=0, pin_memory=False, pin_device_id=0, prefetch=None, thread_pool=True,
                 timeout=120, try_nopython=None, auto_reload=False):
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise TypeError(f"DataLoader: a data set with a length and indices is needed; got {describe(dataset)}")
        if timeout <= 0:
            raise ValueError(f"DataLoader: timeout must be positive; got {timeout}")
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers must not be negative; got {num_workers}")
        self._dataset = dataset
        self._batch_sampler = _batches(dataset, batch_size, shuffle, sampler, last_batch, batch_sampler)
        self._batchify_fn = batchify_fn or default_batchify
        self._num_workers, self._timeout = num_workers, timeout
        self._prefetch = max(0, 2 * num_workers if prefetch is None else int(prefetch))

    def __len__(self):
        return len(self._batch_sampler)

    def __iter__(self):
        seed = host_random.draw_seed()
        jobs = ((self._make, (seed, number, indices)) for number, indices in enumerate(self._batch_sampler))
        if self._num_workers == 0:
            return (function(*arguments) for function, arguments in jobs)
        return Workers(self._num_workers, max(self._prefetch, 1), self._timeout).run(jobs, self._describe)

    @staticmethod
    def _describe(arguments) -> str:
        return f"batch {arguments[1]} (samples {str(list(arguments[2]))[:80]})"

    def _make(self, seed, number, indices):
        with host_random.use(seed, number):
            if self._batchify_fn is default_batchify and type(self._dataset) is ArrayDataset:
                batch = self._dataset.batch(indices)
                if batch is not None:
                    return batch
            samples = []
            for i in indices:
                try:
                    samples.append(self._dataset[i])
                except Exception as error:
                    _name(error, f"in sample {i} of {type(self._dataset).__name__}")
                    raise
            try:
                return self._batchify_fn(samples)
            except Exception as error:
                _name(error, f"while making batch {number} of samples {str(list(indices))[:80]}")
                raise


def _name(error: Exception, where: str) -> None:
    """Adds a place to an error's message: to the text where that is all it has, else as a note."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]} ({where})",)
    elif hasattr(error, "add_note"):
        error.add_note(where)


def _batches(dataset: Dataset, batch_size, shuffle, sampler, last_batch, batch_sampler):
    """The sampler of batches that the arguments ask for; ValueError for contradictions."""
    if batch_sampler is not None:
        if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError("DataLoader: batch_sampler excludes batch_size, shuffle, sampler and last_batch")
        return batch_sampler
    if batch_size is None:
        raise ValueError("DataLoader: batch_size is needed, or a batch_sampler")
    if sampler is not None and shuffle:
        raise ValueError("DataLoader: shuffle excludes a sampler")
    if sampler is None:
        sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
    return BatchSampler(sampler, batch_size, last_batch or "keep")
