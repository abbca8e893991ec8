# SPDX-License-Identifier: Apache-2.0
"""Reading and writing of JPEG and PNG."""
from __future__ import annotations

import os

from .. import _core
from ..base import describe


def imdecode(buf, flag=1, to_rgb=True):
    """Decodes the bytes of a JPEG or PNG to uint8 (height, width, 3), or (height, width, 1) with flag 0.

    to_rgb: False gives blue first. ValueError for damaged or unknown data, TypeError for other inputs."""
    if isinstance(buf, _core.ndarray):
        buf = buf.asnumpy().tobytes()
    elif hasattr(buf, "tobytes"):
        buf = buf.tobytes()
    if not isinstance(buf, (bytes, bytearray)):
        raise TypeError(f"imdecode: bytes are needed; got {describe(buf)}")
    picture = _core.imdecode(bytes(buf), flag)
    return picture if to_rgb or flag == 0 else picture[:, :, ::-1].copy()


def imread(filename, flag=1, to_rgb=True):
    """Reads a JPEG or PNG file, as `imdecode`; errors name the file."""
    with open(os.fspath(filename), "rb") as f:  # open() would take a number as a descriptor, and close it
        data = f.read()
    try:
        return imdecode(data, flag, to_rgb)
    except ValueError as error:
        raise ValueError(f"{os.fspath(filename)}: {error}") from error


def imwrite(filename, picture) -> None:
    """Writes uint8 (height, width, 1 or 3) as JPEG or PNG by the file's extension; the file appears when complete."""
    name = os.fspath(filename)
    extension = os.path.splitext(name)[1].lower()
    if extension not in (".png", ".jpg", ".jpeg"):
        raise ValueError(f"imwrite: the name must end in .png, .jpg or .jpeg; got {name!r}")
    data = _core.encode_image(picture, ".png" if extension == ".png" else ".jpg")
    _core.write_file(name, data)
