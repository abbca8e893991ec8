# SPDX-License-Identifier: Apache-2.0
"""Sizes and places of pictures: resizing, crops, flips, borders. Sizes are (width, height), as in MXNet."""
from __future__ import annotations

import math

from .. import _core, np
from ..host_random import generator
from .arguments import takes_picture


def _interpolation(interp: int, old=(0, 0), new=(0, 0)) -> int:
    """MXNet's codes: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos; 9 chooses by size, 10 by chance."""
    if interp == 9:
        larger, smaller = new[0] > old[0] and new[1] > old[1], new[0] < old[0] and new[1] < old[1]
        return 2 if larger else 3 if smaller else 1
    if interp == 10:
        return int(generator().integers(0, 5))
    if interp not in (0, 1, 2, 3, 4):
        raise ValueError(f"image: interpolation must be 0 to 4, 9 or 10; got {interp}")
    return interp


def _pair(size, name: str) -> tuple:
    values = (size, size) if isinstance(size, int) else tuple(int(v) for v in size)
    if len(values) != 2 or min(values) <= 0:
        raise ValueError(f"{name}: the size must be a positive integer or two of them (width, height); got {size!r}")
    return values


@takes_picture
def imresize(src, w, h, interp=1):
    """`src` (height, width, channels) in a new size; ValueError for sizes that are not positive."""
    width, height = _pair((w, h), "imresize")
    if src.shape[:2] == (height, width):
        return src.copy()
    return _core.imresize(src, width, height, _interpolation(interp, src.shape[:2], (height, width)))


@takes_picture
def resize_short(src, size, interp=2):
    """Resized so that the shorter edge has `size`, keeping proportions."""
    h, w = src.shape[:2]
    new_h, new_w = (size * h // w, size) if h > w else (size, size * w // h)
    return imresize(src, new_w, new_h, interp)


@takes_picture
def resize(src, size, keep_ratio=False, interp=1):
    """(height, width, channels), or a batch of them, in size (width, height) or a number for both edges.

    keep_ratio: a number is the shorter edge's size."""
    if src.ndim == 4:
        return np.stack([resize(picture, size, keep_ratio, interp) for picture in src])
    if keep_ratio and isinstance(size, int):
        return resize_short(src, size, interp)
    return imresize(src, *_pair(size, "resize"), interp)


def scale_down(src_size, size) -> tuple:
    """(width, height) of `size`, shrunk in proportion where it exceeds `src_size`."""
    w, h = size
    sw, sh = src_size
    if sh < h:
        w, h = float(w * sh) / h, sh
    if sw < w:
        w, h = sw, float(h * sw) / w
    return int(w), int(h)


@takes_picture
def fixed_crop(src, x0, y0, w, h, size=None, interp=2):
    """The rectangle at (x0, y0) with width w and height h, resized to `size` where given.

    ValueError for a rectangle that leaves the picture."""
    if x0 < 0 or y0 < 0 or w <= 0 or h <= 0 or y0 + h > src.shape[0] or x0 + w > src.shape[1]:
        raise ValueError(f"fixed_crop: the rectangle x {x0} to {x0 + w}, y {y0} to {y0 + h} must lie within width "
                         f"{src.shape[1]} and height {src.shape[0]}")
    out = src[y0:y0 + h, x0:x0 + w]
    return out if size is None or (w, h) == tuple(size) else imresize(out, *size, interp=interp)


@takes_picture
def crop(src, x, y, width, height):
    """The rectangle of a picture or of each picture of a batch."""
    if src.ndim == 4:
        return np.stack([fixed_crop(p, x, y, width, height) for p in src])
    return fixed_crop(src, x, y, width, height)


def _place(room: int) -> int:
    return int(generator().integers(0, room + 1))


@takes_picture
def random_crop(src, size, interp=2):
    """A rectangle of `size` (shrunk to fit, then resized) at random; returns (picture, (x0, y0, width, height))."""
    h, w = src.shape[:2]
    size = _pair(size, "random_crop")
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = _place(w - new_w), _place(h - new_h)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


@takes_picture
def center_crop(src, size, interp=2):
    """A rectangle of `size` (shrunk to fit, then resized) in the middle; returns (picture, rectangle)."""
    h, w = src.shape[:2]
    size = _pair(size, "center_crop")
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = (w - new_w) // 2, (h - new_h) // 2
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


@takes_picture
def random_size_crop(src, size, area, ratio, interp=2):
    """A rectangle with a random share of the `area` and a random width-to-height `ratio`, resized to `size`; returns
    (picture, rectangle). After ten tries that do not fit, the centre crop."""
    h, w = src.shape[:2]
    size = _pair(size, "random_size_crop")
    area = (area, 1.0) if isinstance(area, (int, float)) else area
    rng = generator()
    for _ in range(10):
        target = rng.uniform(*area) * h * w
        shape = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        new_w, new_h = round(math.sqrt(target * shape)), round(math.sqrt(target / shape))
        if 0 < new_w <= w and 0 < new_h <= h:
            x0, y0 = _place(w - new_w), _place(h - new_h)
            return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)
    return center_crop(src, size, interp)


@takes_picture
def random_resized_crop(src, xrange=(0.0, 1.0), yrange=(0.0, 1.0), width=0, height=0, area=(0.08, 1.0),
                        ratio=(0.75, 4 / 3), interp=1, max_trial=10):
    """`random_size_crop` to (width, height)."""
    return random_size_crop(src, (width, height), area, ratio, interp)[0]


@takes_picture
def flip_left_right(src):
    """Mirrored left to right."""
    return np.flip(src, axis=src.ndim - 2)


@takes_picture
def flip_top_bottom(src):
    """Mirrored top to bottom."""
    return np.flip(src, axis=src.ndim - 3)


@takes_picture
def random_flip_left_right(src, p=0.5):
    """Mirrored left to right with probability `p`."""
    return flip_left_right(src) if generator().uniform() < p else src


@takes_picture
def random_flip_top_bottom(src, p=0.5):
    """Mirrored top to bottom with probability `p`."""
    return flip_top_bottom(src) if generator().uniform() < p else src


@takes_picture
def copyMakeBorder(src, top, bot, left, right, type=0, values=0.0):
    """`src` with a border of a constant (the only `type`, 0)."""
    if type != 0:
        raise NotImplementedError(f"copyMakeBorder: only constant borders (type 0) exist; got {type}")
    h, w, c = src.shape
    out = np.full((h + top + bot, w + left + right, c), values, dtype=src.dtype)
    out[top:top + h, left:left + w] = src
    return out
