# SPDX-License-Identifier: Apache-2.0
"""Pictures from files: a folder for each class, or a list of files."""
from __future__ import annotations

import os
import warnings

from .... import image, np
from ..dataset import Dataset

_EXTENSIONS = (".jpg", ".jpeg", ".png")


class ImageFolderDataset(Dataset):
    """root/class/picture.jpg: a sample is (picture, number of its class's folder in alphabetic order).

    flag: 1 colour, 0 grey. transform: a function (picture, label). `synsets` has the classes' names, `items` the files
    and labels. Files that are no pictures by name are left out with a warning; ValueError where none remains."""

    def __init__(self, root, flag=1, transform=None):
        self._root = os.path.expanduser(root)
        self._flag, self._transform = flag, transform
        self.synsets: list = []
        self.items: list = []
        for folder in sorted(os.listdir(self._root)):
            path = os.path.join(self._root, folder)
            if not os.path.isdir(path):
                warnings.warn(f"ImageFolderDataset: {path} is left out: not a folder", stacklevel=2)
                continue
            for name in sorted(os.listdir(path)):
                if os.path.splitext(name)[1].lower() in _EXTENSIONS:
                    self.items.append((os.path.join(path, name), len(self.synsets)))
                else:
                    warnings.warn(f"ImageFolderDataset: {os.path.join(path, name)} is left out: only "
                                  f"{', '.join(_EXTENSIONS)} are read", stacklevel=2)
            self.synsets.append(folder)
        if not self.items:
            raise ValueError(f"ImageFolderDataset: {self._root} has no pictures; root/class/picture.jpg is needed")

    def __getitem__(self, idx):
        path, label = self.items[idx]
        picture = image.imread(path, self._flag)
        return (picture, label) if self._transform is None else self._transform(picture, label)

    def __len__(self):
        return len(self.items)


class ImageListDataset(Dataset):
    """Pictures of a list of (label..., file) rows, or of a `.lst` file (number, labels, file, by tabs), under root."""

    def __init__(self, root=".", imglist=None, flag=1):
        self._root, self._flag = os.path.expanduser(root), flag
        if isinstance(imglist, str):
            with open(os.path.join(self._root, imglist), encoding="utf-8") as f:
                rows = [line.rstrip("\n").split("\t") for line in f if line.strip()]
            self.items = [(row[-1], [float(v) for v in row[1:-1]]) for row in rows]
        else:
            self.items = [(row[-1], list(row[0]) if isinstance(row[0], (list, tuple)) else list(row[:-1]))
                          for row in imglist or []]

    def __getitem__(self, idx):
        path, label = self.items[idx]
        picture = image.imread(os.path.join(self._root, path), self._flag)
        return picture, label[0] if len(label) == 1 else np.array(label)

    def __len__(self):
        return len(self.items)
