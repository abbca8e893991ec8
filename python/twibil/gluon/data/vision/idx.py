# SPDX-License-Identifier: Apache-2.0
"""The IDX format of MNIST: two zero bytes, a dtype code, the rank, sizes (big-endian), values."""
from __future__ import annotations

import gzip
import math
import os
import struct

import numpy as onp

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path) -> onp.ndarray:
    """The NumPy array in an IDX file, gzipped or plain. ValueError (with the file's name) for damaged data."""
    name = os.fspath(path)
    with open(name, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise ValueError(f"{name}: damaged gzip data: {error}") from error
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _DTYPES:
        raise ValueError(f"{name}: not an IDX file; it begins with {data[:4].hex() or 'nothing'}")
    rank, dtype = data[3], onp.dtype(_DTYPES[data[2]])
    start = 4 + 4 * rank
    if len(data) < start:
        raise ValueError(f"{name}: {rank} sizes are announced, but the file ends after {len(data)} bytes")
    shape = struct.unpack(f">{rank}I", data[4:start])
    need = start + math.prod(shape) * dtype.itemsize
    if len(data) != need:
        raise ValueError(f"{name}: shape {list(shape)} of {dtype.name} takes {need} bytes; the file has {len(data)}")
    return onp.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))
