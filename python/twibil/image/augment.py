# SPDX-License-Identifier: Apache-2.0
"""Augmenters of MXNet's `image` module: objects that map a picture (height, width, channels) to a picture."""
from __future__ import annotations

import json

import numpy as onp

from .. import _core, np
from ..host_random import generator
from . import color, geometry


class Augmenter:
    """Base of augmenters; keyword arguments are kept for `dumps`."""

    def __init__(self, **kwargs):
        self._kwargs = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in kwargs.items()}

    def dumps(self):
        """Name and arguments as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src):
        raise NotImplementedError(f"{type(self).__name__}.__call__ must be written")


class SequentialAug(Augmenter):
    """Augmenters one after the other."""

    def __init__(self, ts):
        super().__init__()
        self.ts = list(ts)

    def dumps(self):
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src):
        for t in self.ts:
            src = t(src)
        return src


class RandomOrderAug(SequentialAug):
    """Augmenters in random order."""

    def __call__(self, src):
        for i in generator().permutation(len(self.ts)):
            src = self.ts[i](src)
        return src


class ResizeAug(Augmenter):
    """Shorter edge to `size`."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src):
        return geometry.resize_short(src, self.size, self.interp)


class ForceResizeAug(ResizeAug):
    """To size (width, height), whatever the proportions."""

    def __call__(self, src):
        return geometry.imresize(src, *self.size, interp=self.interp)


class RandomCropAug(ResizeAug):
    """A random crop of `size`."""

    def __call__(self, src):
        return geometry.random_crop(src, self.size, self.interp)[0]


class CenterCropAug(ResizeAug):
    """The centre crop of `size`."""

    def __call__(self, src):
        return geometry.center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """A random crop of random area and proportions, resized to `size`."""

    def __init__(self, size, area, ratio, interp=2):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.area, self.ratio, self.interp = size, area, ratio, interp

    def __call__(self, src):
        return geometry.random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class BrightnessJitterAug(Augmenter):
    """Values times 1 plus or minus up to `brightness`."""

    def __init__(self, brightness):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src):
        return color.random_brightness(src, 1 - self.brightness, 1 + self.brightness)


class ContrastJitterAug(Augmenter):
    """Contrast times 1 plus or minus up to `contrast`."""

    def __init__(self, contrast):
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def __call__(self, src):
        return color.random_contrast(src, 1 - self.contrast, 1 + self.contrast)


class SaturationJitterAug(Augmenter):
    """Saturation times 1 plus or minus up to `saturation`."""

    def __init__(self, saturation):
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def __call__(self, src):
        return color.random_saturation(src, 1 - self.saturation, 1 + self.saturation)


class HueJitterAug(Augmenter):
    """Colours turned by up to `hue` half circles either way."""

    def __init__(self, hue):
        super().__init__(hue=hue)
        self.hue = hue

    def __call__(self, src):
        return color.adjust_hue(src, generator().uniform(-self.hue, self.hue) / 2)


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation in random order."""

    def __init__(self, brightness, contrast, saturation):
        kinds = ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast), (SaturationJitterAug, saturation))
        super().__init__([kind(strength) for kind, strength in kinds if strength > 0])


class LightingAug(Augmenter):
    """Adds colour components by normal numbers of deviation `alphastd`."""

    def __init__(self, alphastd, eigval, eigvec):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, onp.asarray(eigval), onp.asarray(eigvec)

    def __call__(self, src):
        shift = (self.eigvec * generator().normal(0, self.alphastd, 3)) @ self.eigval
        return src + _core.array(shift, dtype="float32")


class ColorNormalizeAug(Augmenter):
    """(src - mean) / std, channels last."""

    def __init__(self, mean, std):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = mean, std

    def __call__(self, src):
        return color.color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Grey with probability `p`, in three channels."""

    def __init__(self, p):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src):
        if generator().uniform() >= self.p:
            return src
        gray = (src * _core.array([0.21, 0.72, 0.07], dtype="float32")).sum(axis=-1, keepdims=True)
        return np.concatenate([gray] * 3, axis=-1)


class HorizontalFlipAug(Augmenter):
    """Mirrored left to right with probability `p`."""

    def __init__(self, p):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src):
        return geometry.random_flip_left_right(src, self.p)


class CastAug(Augmenter):
    """To another dtype."""

    def __init__(self, typ="float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src):
        return src.astype(self.typ)


def CreateAugmenter(data_shape, resize=0, rand_crop=False, rand_resize=False, rand_mirror=False, mean=None, std=None,
                    brightness=0, contrast=0, saturation=0, hue=0, pca_noise=0, rand_gray=0, inter_method=2) -> list:
    """MXNet's usual list of augmenters for pictures of shape (channels, height, width).

    mean, std: True stands for ImageNet's. ValueError for rand_resize without rand_crop."""
    size = (data_shape[2], data_shape[1])
    augmenters: list = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise ValueError("CreateAugmenter: rand_resize needs rand_crop")
        augmenters.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        augmenters.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        augmenters.append(HorizontalFlipAug(0.5))
    augmenters.append(CastAug())
    if brightness or contrast or saturation:
        augmenters.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        augmenters.append(HueJitterAug(hue))
    if pca_noise > 0:
        augmenters.append(LightingAug(pca_noise, color._EIGENVALUES, color._EIGENVECTORS))
    if rand_gray > 0:
        augmenters.append(RandomGrayAug(rand_gray))
    mean = onp.array([123.68, 116.28, 103.53]) if mean is True else mean
    std = onp.array([58.395, 57.12, 57.375]) if std is True else std
    if mean is not None or std is not None:
        augmenters.append(ColorNormalizeAug(mean, std))
    return augmenters
