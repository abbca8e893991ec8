# SPDX-License-Identifier: Apache-2.0
"""Transforms: blocks without parameters that map pictures, (height, width, channels) unless said otherwise."""
from __future__ import annotations

from .... import image
from ....host_random import generator
from ...block import Block, HybridBlock
from ...nn import HybridSequential, Sequential


class Compose(Sequential):
    """Transforms one after the other."""

    def __init__(self, transforms):
        super().__init__()
        self.add(*transforms)


class HybridCompose(HybridSequential):
    """`Compose` of hybrid blocks."""

    def __init__(self, transforms):
        super().__init__()
        self.add(*transforms)


class Cast(HybridBlock):
    """To another dtype."""

    def __init__(self, dtype="float32"):
        super().__init__()
        self._dtype = dtype

    def forward(self, x):
        return x.astype(self._dtype)


class ToTensor(HybridBlock):
    """(H, W, C) or (N, H, W, C) of 0 to 255 to channels first, float32 of 0 to 1."""

    def forward(self, x):
        return image.to_tensor(x)


class Normalize(HybridBlock):
    """(x - mean) / std for each channel of (C, H, W) or (N, C, H, W)."""

    def __init__(self, mean=0.0, std=1.0):
        super().__init__()
        self._mean, self._std = mean, std

    def forward(self, x):
        return image.normalize(x, self._mean, self._std)


class Resize(HybridBlock):
    """To size (width, height), or a number for both edges; with keep_ratio for the shorter edge."""

    def __init__(self, size, keep_ratio=False, interpolation=1):
        super().__init__()
        self._size, self._keep, self._interpolation = size, keep_ratio, interpolation

    def forward(self, x):
        return image.resize(x, self._size, self._keep, self._interpolation)


class CenterCrop(Block):
    """The centre in size (width, height), or a number for both."""

    def __init__(self, size, interpolation=1):
        super().__init__()
        self._size, self._interpolation = size, interpolation

    def forward(self, x):
        return image.center_crop(x, self._size, self._interpolation)[0]


class CropResize(HybridBlock):
    """The rectangle at (x, y), resized to `size` where given."""

    def __init__(self, x, y, width, height, size=None, interpolation=1):
        super().__init__()
        self._box, self._size, self._interpolation = (x, y, width, height), size, interpolation

    def forward(self, x):
        out = image.crop(x, *self._box)
        return out if self._size is None else image.resize(out, self._size, False, self._interpolation or 1)


class RandomCrop(Block):
    """A rectangle of size (width, height) at random, after a border of `pad` zeros."""

    def __init__(self, size, pad=None, pad_value=0, interpolation=1):
        super().__init__()
        self._size, self._pad, self._value, self._interpolation = size, pad, pad_value, interpolation

    def forward(self, x):
        if self._pad:
            x = image.copyMakeBorder(x, *[self._pad] * 4, values=self._value)
        return image.random_crop(x, self._size, self._interpolation)[0]


class RandomResizedCrop(Block):
    """A random rectangle with a share `scale` of the area and proportions `ratio`, resized to `size`."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=1):
        super().__init__()
        self._args = (size, scale, ratio, interpolation)

    def forward(self, x):
        return image.random_size_crop(x, *self._args)[0]


class RandomFlipLeftRight(HybridBlock):
    """Mirrored left to right with probability `p`."""

    def __init__(self, p=0.5):
        super().__init__()
        self._p = p

    def forward(self, x):
        return image.random_flip_left_right(x, self._p)


class RandomFlipTopBottom(RandomFlipLeftRight):
    """Mirrored top to bottom with probability `p`."""

    def forward(self, x):
        return image.random_flip_top_bottom(x, self._p)


class RandomBrightness(HybridBlock):
    """Values times a random factor of 1 - strength (at least 0) to 1 + strength."""

    _function = staticmethod(image.random_brightness)

    def __init__(self, strength):
        super().__init__()
        self._range = (max(0, 1 - strength), 1 + strength)

    def forward(self, x):
        return self._function(x, *self._range)


class RandomContrast(RandomBrightness):
    """Contrast times a random factor."""

    _function = staticmethod(image.random_contrast)


class RandomSaturation(RandomBrightness):
    """Saturation times a random factor."""

    _function = staticmethod(image.random_saturation)


class RandomHue(RandomBrightness):
    """Colours turned by up to `strength` circles either way."""

    _function = staticmethod(image.random_hue)


class RandomColorJitter(HybridBlock):
    """Brightness, contrast, saturation and hue in random order; 0 leaves one out."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        super().__init__()
        self._args = (brightness, contrast, saturation, hue)

    def forward(self, x):
        return image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """Adds colour components by normal numbers of deviation `alpha`."""

    def __init__(self, alpha):
        super().__init__()
        self._alpha = alpha

    def forward(self, x):
        return image.random_lighting(x, self._alpha)


class RandomGray(HybridBlock):
    """Grey, in three channels, with probability `p`."""

    def __init__(self, p=0.5):
        super().__init__()
        self._augment = image.RandomGrayAug(p)

    def forward(self, x):
        return self._augment(x)


class RandomApply(Sequential):
    """A transform applied with probability `p`."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, x):
        return self.transforms(x) if generator().uniform() < self.p else x


HybridRandomApply = RandomApply
