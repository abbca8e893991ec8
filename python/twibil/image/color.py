# SPDX-License-Identifier: Apache-2.0
"""Values of pictures: to tensors, normalisation, brightness, contrast, saturation, hue, light."""
from __future__ import annotations

import math

import numpy as onp

from .. import _core, np
from ..host_random import generator
from .arguments import takes_picture

_GRAY = (0.299, 0.587, 0.114)
_RGB_TO_YIQ = onp.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_YIQ_TO_RGB = onp.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])
_EIGENVALUES = onp.array([55.46, 4.794, 1.148])
_EIGENVECTORS = onp.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


@takes_picture
def to_tensor(data):
    """(H, W, C) or (N, H, W, C) of 0 to 255 to (C, H, W) or (N, C, H, W), float32 of 0 to 1."""
    if data.ndim not in (3, 4):
        raise ValueError(f"to_tensor: (H, W, C) or (N, H, W, C) is needed; got shape {list(data.shape)}")
    axes = (2, 0, 1) if data.ndim == 3 else (0, 3, 1, 2)
    return data.transpose(axes).astype("float32") / 255.0


@takes_picture
def normalize(data, mean=0.0, std=1.0):
    """(data - mean) / std for each channel of (C, H, W) or (N, C, H, W); numbers, or one a channel."""
    def channel(v):
        if isinstance(v, (int, float)):
            return v
        values = _core.array(v, dtype="float32").reshape(-1)
        return values.reshape(-1, 1, 1)
    return (data - channel(mean)) / channel(std)


@takes_picture
def color_normalize(src, mean, std=None):
    """(src - mean) / std with the channels on the last axis; None skips a part."""
    def last(v):
        return v if isinstance(v, (int, float, _core.ndarray)) else _core.array(v, dtype="float32")
    src = src if mean is None else src - last(mean)
    return src if std is None else src / last(std)


def _like(value, src):
    """float32 values in the dtype of `src`; integers are cut off at their limits."""
    dtype = str(src.dtype)
    if "int" in dtype:
        limits = onp.iinfo(dtype)
        return np.clip(value, limits.min, limits.max).astype(dtype)
    return value.astype(dtype)


def _float(src):
    return src.astype("float32")


def _gray(src):
    """The brightness of each pixel, (..., 1)."""
    if src.shape[-1] == 1:
        return src
    return (src * _core.array(_GRAY, dtype="float32")).sum(axis=-1, keepdims=True)


@takes_picture
def adjust_brightness(src, alpha):
    """All values times `alpha`."""
    return _like(_float(src) * alpha, src)


@takes_picture
def adjust_contrast(src, alpha):
    """alpha * src + (1 - alpha) * the mean brightness."""
    x = _float(src)
    return _like(x * alpha + (1 - alpha) * _gray(x).mean(), src)


@takes_picture
def adjust_saturation(src, alpha):
    """alpha * src + (1 - alpha) * each pixel's brightness."""
    x = _float(src)
    return _like(x * alpha + (1 - alpha) * _gray(x), src)


@takes_picture
def adjust_hue(src, turn):
    """Colours turned by `turn` whole circles, in YIQ space; brightness stays. Grey pictures stay as they are."""
    if src.shape[-1] == 1:
        return src
    u, w = math.cos(2 * math.pi * turn), math.sin(2 * math.pi * turn)
    matrix = _YIQ_TO_RGB @ onp.array([[1, 0, 0], [0, u, -w], [0, w, u]]) @ _RGB_TO_YIQ
    return _like(np.dot(_float(src), _core.array(matrix.T, dtype="float32")), src)


@takes_picture
def adjust_lighting(src, alpha):
    """Adds ImageNet's colour components, scaled by three numbers."""
    shift = (_EIGENVECTORS * onp.asarray(alpha, dtype="float64")) @ _EIGENVALUES
    return _like(_float(src) + _core.array(shift, dtype="float32"), src)


@takes_picture
def random_brightness(src, min_factor, max_factor):
    """`adjust_brightness` by a random factor."""
    return adjust_brightness(src, generator().uniform(min_factor, max_factor))


@takes_picture
def random_contrast(src, min_factor, max_factor):
    """`adjust_contrast` by a random factor."""
    return adjust_contrast(src, generator().uniform(min_factor, max_factor))


@takes_picture
def random_saturation(src, min_factor, max_factor):
    """`adjust_saturation` by a random factor."""
    return adjust_saturation(src, generator().uniform(min_factor, max_factor))


@takes_picture
def random_hue(src, min_factor, max_factor):
    """`adjust_hue` by a random turn; a factor of 1 leaves colours as they are."""
    return adjust_hue(src, generator().uniform(min_factor, max_factor) - 1.0)


@takes_picture
def random_color_jitter(src, brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0):
    """The four adjustments in random order, each by a random factor within its strength; 0 leaves one out."""
    steps = [(f, v) for f, v in ((random_brightness, brightness), (random_contrast, contrast),
                                 (random_saturation, saturation), (random_hue, hue)) if v]
    for i in generator().permutation(len(steps)):
        function, strength = steps[i]
        src = function(src, max(0, 1 - strength), 1 + strength)
    return src


@takes_picture
def random_lighting(src, alpha_std=0.05):
    """`adjust_lighting` by normal numbers of deviation `alpha_std`."""
    return adjust_lighting(src, generator().normal(0, alpha_std, 3))
