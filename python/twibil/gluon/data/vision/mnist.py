# SPDX-License-Identifier: Apache-2.0
"""MNIST and Fashion-MNIST: pictures of 28 x 28, from files that are there or a checked download."""
from __future__ import annotations

from pathlib import Path

from .... import _core
from ....base import data_dir
from ..dataset import Dataset
from .idx import read_idx
from .repository import fetch


class MNIST(Dataset):
    """Handwritten digits: 60,000 for training, 10,000 for test. A sample is (uint8 (28, 28, 1), int32 label).

    root: a folder that holds, or will hold, the four `...-ubyte.gz` files (plain ones serve too). They are looked for
    there, then under /usr/share/datasets, and else downloaded with a checksum. transform: a function (data, label).
    OSError where the files are absent and cannot be downloaded, ValueError for damaged ones."""

    folder = "mnist"
    _files = {True: (("train-images-idx3-ubyte.gz", "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d"),
                     ("train-labels-idx1-ubyte.gz", "2a80914081dc54586dbdf242f9805a6b8d2a15fc")),
              False: (("t10k-images-idx3-ubyte.gz", "c3a25af1f52dad7f726cce8cacb138654b760d48"),
                      ("t10k-labels-idx1-ubyte.gz", "763e7fa3757d93b0cdec073cef058b2004252c17"))}

    def __init__(self, root=None, train=True, transform=None):
        self._train, self._transform = bool(train), transform
        images, labels = (read_idx(path) for path in self.paths(root, train))
        if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
            raise ValueError(f"{type(self).__name__}: pictures of 28 x 28 and one label each are needed; the files "
                             f"have shapes {list(images.shape)} and {list(labels.shape)}")
        self._data = _core.array(images.reshape(-1, 28, 28, 1))
        self._label = labels.astype("int32")

    @classmethod
    def paths(cls, root=None, train=True) -> list:
        """The paths of the files of pictures and of labels, downloaded where they are nowhere."""
        folder = Path(root).expanduser() if root is not None else data_dir() / "datasets" / cls.folder
        return [cls._find(folder, name, sha1) for name, sha1 in cls._files[bool(train)]]

    @classmethod
    def _find(cls, root: Path, name: str, sha1: str):
        """The path of a file: in the root (plain, or compressed), in the system's folder, or downloaded."""
        system = Path("/usr/share/datasets") / cls.folder
        for folder in (root, system):
            for candidate in (folder / name, folder / name[:-3]):
                if candidate.is_file():
                    return candidate
        return fetch(cls.folder, root, name, sha1, [root, system])

    def __len__(self):
        return len(self._label)

    def __getitem__(self, idx):
        data, label = self._data[idx], self._label[idx]
        return (data, label) if self._transform is None else self._transform(data, label)


class FashionMNIST(MNIST):
    """Pictures of ten kinds of garment, in MNIST's format. Debian's package `dataset-fashion-mnist` has the files."""

    folder = "fashion-mnist"
    _files = {True: (("train-images-idx3-ubyte.gz", "0cf37b0d40ed5169c6b3aba31069a9770ac9043d"),
                     ("train-labels-idx1-ubyte.gz", "236021d52f1e40852b06a4c3008d8de8aef1e40b")),
              False: (("t10k-images-idx3-ubyte.gz", "626ed6a7c06dd17c0eec72fa3be1740f146a2863"),
                      ("t10k-labels-idx1-ubyte.gz", "17f9ab60e7257a1620f4ad76bbbaf857c3920701"))}
