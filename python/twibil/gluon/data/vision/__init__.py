# SPDX-License-Identifier: Apache-2.0
"""Picture data sets and transforms: `gluon.data.vision`."""
from __future__ import annotations

from . import transforms
from .cifar import CIFAR10, CIFAR100
from .folder import ImageFolderDataset, ImageListDataset
from .idx import read_idx
from .mnist import MNIST, FashionMNIST

__all__ = ["MNIST", "FashionMNIST", "CIFAR10", "CIFAR100", "ImageFolderDataset", "ImageListDataset", "transforms",
           "read_idx"]
