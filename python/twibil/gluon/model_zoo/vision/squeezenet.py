# SPDX-License-Identifier: Apache-2.0
"""SqueezeNet: few channels, from which 1 x 1 and 3 x 3 convolutions make many again."""
from __future__ import annotations

from ....base import describe
from ... import nn
from .constructors import Classifier, constructor, load_pretrained, relu, side_by_side, stack

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

_POOL = 0  # in place of a width
_VERSIONS = {"1.0": ((96, 7), (16, 16, 32, _POOL, 32, 48, 48, 64, _POOL, 64)),
             "1.1": ((64, 3), (16, 16, _POOL, 32, 32, _POOL, 48, 48, 64, 64))}


def _conv(channels, kernel, padding=0):
    return stack(nn.Conv2D(channels, kernel, padding=padding), relu())


def _fire(width):
    return stack(_conv(width, 1), side_by_side(_conv(4 * width, 1), _conv(4 * width, 3, 1)))


def _pool():
    return nn.MaxPool2D(3, 2, ceil_mode=True)


class SqueezeNet(Classifier):
    """version: '1.0' or '1.1'. Pictures must have at least 224 x 224 pixels."""

    def __init__(self, version, classes=1000, **kwargs):
        super().__init__(**kwargs)
        if version not in _VERSIONS:
            raise ValueError(f"SqueezeNet: version must be '1.0' or '1.1'; got {describe(version)}")
        (channels, kernel), widths = _VERSIONS[version]
        self.features = stack(nn.Conv2D(channels, kernel, 2), relu(), _pool())
        self.features.add(*[_pool() if width == _POOL else _fire(width) for width in widths], nn.Dropout(0.5))
        self.output = stack(nn.Conv2D(classes, 1), relu(), nn.AvgPool2D(13), nn.Flatten())


def get_squeezenet(version, pretrained=False, ctx=None, root=None, **kwargs):
    """SqueezeNet '1.0' or '1.1' (the same accuracy for 2.4 times less work)."""
    return load_pretrained(SqueezeNet(version, **kwargs), f"squeezenet{version}", pretrained, ctx, root)


squeezenet1_0 = constructor("squeezenet1_0", "SqueezeNet 1.0.", get_squeezenet, "1.0")
squeezenet1_1 = constructor("squeezenet1_1", "SqueezeNet 1.1.", get_squeezenet, "1.1")
