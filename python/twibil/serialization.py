# SPDX-License-Identifier: Apache-2.0
"""Named arrays in files: MXNet's `.params` format and NumPy's `.npy`/`.npz` (read and write), PyTorch's (read)."""
from __future__ import annotations

import os
import zipfile

from . import _core
from .base import describe
from .util import is_np_shape

_OLD_TORCH = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")  # torch.save's magic number, as a pickle


def save_params(fname, data) -> None:
    """Writes an array, a list of arrays or a dict of named arrays in MXNet's `.params` format, atomically.

    MXNet itself reads a file only in the mode it was written in; here that is what `is_np_shape()` says. Raises TypeError
    for anything else, OSError where the file cannot be written."""
    if isinstance(data, _core.ndarray):
        names, arrays = [], [data]
    elif isinstance(data, dict):
        names, arrays = list(data.keys()), list(data.values())
    elif isinstance(data, (list, tuple)):
        names, arrays = [], list(data)
    else:
        raise TypeError(f"save: an array, a list or a dict of arrays is needed; got {describe(data)}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"save: names must be text; got {describe(name)}")
    for i, a in enumerate(arrays):
        if not isinstance(a, _core.ndarray):
            raise TypeError(f"save: {repr(names[i]) if names else f'element {i}'} must be an array; got {describe(a)}")
    _core.save_params(os.fspath(fname), names, arrays, legacy=not is_np_shape())


def load_params(fname):
    """Reads a `.params` file: a dict where arrays have names, else a list."""
    names, arrays = _core.load_params(os.fspath(fname))
    return dict(zip(names, arrays)) if names else list(arrays)


def load_torch(fname):
    """Reads what `torch.save` wrote (`.pt`, `.pth`, new and old format): tensors become arrays, inside dictionaries,
    lists, tuples, numbers and texts as they were saved. PyTorch is not needed, and nothing in the file is run.

    ValueError, with the place in the file, for anything else that a pickle can hold, and for damaged files."""
    return _core.load_torch(os.fspath(fname))


def _made_by_torch(file) -> bool:
    with zipfile.ZipFile(file) as archive:
        return any(name.rpartition("/")[2] == "data.pkl" for name in archive.namelist())


def load(file):
    """Reads `.params`, `.npy`, `.npz` or what `torch.save` wrote, told apart by content; names give a dict."""
    with open(file, "rb") as f:
        head = f.read(len(_OLD_TORCH))
    if head == _OLD_TORCH or head[:4] == b"PK\x03\x04" and _made_by_torch(file):
        return load_torch(file)
    if head[:4] == b"PK\x03\x04" or head[:6] == b"\x93NUMPY":
        from .np import load as load_numpy
        return load_numpy(file)
    return load_params(file)


def save(file, arr) -> None:
    """Writes arrays in MXNet's `.params` format; a file name ending in `.npy`/`.npz` selects NumPy's."""
    name = os.fspath(file)
    from . import np
    if name.endswith(".npy"):
        np.save(name, arr)
    elif name.endswith(".npz"):
        savez(name, *([arr] if isinstance(arr, _core.ndarray) else () if isinstance(arr, dict) else arr),
              **(arr if isinstance(arr, dict) else {}))
    else:
        save_params(name, arr)


def savez(file, *args, **kwargs) -> None:
    """Writes arrays as `.npz`."""
    from . import np
    np.savez(file, *args, **kwargs)
