# SPDX-License-Identifier: Apache-2.0
"""Data sets, samplers and the loader: `gluon.data`."""
from __future__ import annotations

from . import batchify, vision
from .dataloader import DataLoader
from .dataset import ArrayDataset, Dataset, SimpleDataset
from .sampler import BatchSampler, FilterSampler, IntervalSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["Dataset", "SimpleDataset", "ArrayDataset", "Sampler", "SequentialSampler", "RandomSampler", "FilterSampler",
           "IntervalSampler", "BatchSampler", "DataLoader", "batchify", "vision"]
