# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 and CIFAR-100: pictures of 32 x 32 in colour, from files that are there or a checked download."""
from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as onp

from .... import _core
from ....base import data_dir
from ..dataset import Dataset
from .repository import fetch

_PIXELS = 3 * 32 * 32


class CIFAR10(Dataset):
    """Small pictures of ten kinds of thing: 50,000 for training, 10,000 for test. A sample is (uint8 (32, 32, 3), int32
    label).

    root: a folder that holds, or will hold, the binary version's files, plain, in their own folder, or as the archive.
    They are looked for there and else downloaded with a checksum. transform: a function (data, label).
    OSError where the files are absent and cannot be downloaded, ValueError for damaged ones."""

    folder, inner = "cifar10", "cifar-10-batches-bin"
    archive = ("cifar-10-binary.tar.gz", "fab780a1e191a7eda0f345501ccd62d20f7ed891")
    _files = {True: tuple(f"data_batch_{i}.bin" for i in range(1, 6)), False: ("test_batch.bin",)}
    _labels = 1  # bytes before the pixels of a picture

    def __init__(self, root=None, train=True, transform=None):
        self._train, self._transform = bool(train), transform
        folder = Path(root).expanduser() if root is not None else data_dir() / "datasets" / self.folder
        batches = [self._read(path) for path in self._paths(folder)]
        self._data = _core.array(onp.concatenate([pictures for pictures, _ in batches]))
        self._label = onp.concatenate([labels for _, labels in batches]).astype("int32")

    def _paths(self, root: Path) -> list:
        """The files of pictures, taken out of the archive where they are not there yet."""
        names = self._files[self._train]
        for folder in (root, root / self.inner):
            if all((folder / name).is_file() for name in names):
                return [folder / name for name in names]
        archive = root / self.archive[0]
        if not archive.is_file():
            archive = Path(fetch(self.folder, root, *self.archive, [root, root / self.inner]))
        self._extract(archive, root)
        return [root / name for name in names]

    def _extract(self, archive: Path, root: Path) -> None:
        """The data set's files, and nothing else that the archive may hold, each whole or not at all."""
        wanted = {name for names in self._files.values() for name in names}
        try:
            with tarfile.open(archive) as tar:
                for member in tar:
                    name = Path(member.name).name
                    if name in wanted and member.isfile():
                        temporary = root / f"{name}.part"
                        temporary.write_bytes(tar.extractfile(member).read())
                        temporary.replace(root / name)
                        wanted.discard(name)
        except (tarfile.TarError, EOFError) as error:
            raise ValueError(f"{type(self).__name__}: {archive} is damaged: {error}") from error
        if wanted:
            raise ValueError(f"{type(self).__name__}: {archive} lacks {', '.join(sorted(wanted))}")

    def _read(self, path: Path):
        values, size = onp.fromfile(path, dtype="uint8"), self._labels + _PIXELS
        if values.size == 0 or values.size % size:
            raise ValueError(f"{type(self).__name__}: {path} must hold records of {size} bytes; it has {values.size}")
        rows = values.reshape(-1, size)
        return rows[:, self._labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), self._label_of(rows)

    def _label_of(self, rows):
        return rows[:, 0]

    def __len__(self):
        return len(self._label)

    def __getitem__(self, idx):
        data, label = self._data[idx], self._label[idx]
        return (data, label) if self._transform is None else self._transform(data, label)


class CIFAR100(CIFAR10):
    """Pictures of a hundred kinds of thing, or of the twenty groups that they form (`fine_label=False`)."""

    folder, inner = "cifar100", "cifar-100-binary"
    archive = ("cifar-100-binary.tar.gz", "a0bb982c76b83111308126cc779a992fa506b90b")
    _files = {True: ("train.bin",), False: ("test.bin",)}
    _labels = 2

    def __init__(self, root=None, fine_label=False, train=True, transform=None):
        self._fine = bool(fine_label)
        super().__init__(root, train, transform)

    def _label_of(self, rows):
        return rows[:, int(self._fine)]
