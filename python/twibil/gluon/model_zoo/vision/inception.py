# SPDX-License-Identifier: Apache-2.0
"""Inception networks: v3, and the one with batch normalisation before it (Inception-BN)."""
from __future__ import annotations

from ... import nn
from .constructors import Classifier, load_pretrained, relu, side_by_side, stack

__all__ = ["Inception3", "inception_v3", "InceptionBN", "inception_bn"]


# ---- v3: no biases; branches are lists of (channels, kernel, stride, padding), which may begin with a pooling layer ----
def _conv(channels, kernel, strides=1, padding=0):
    return stack(nn.Conv2D(channels, kernel, strides, padding, use_bias=False), nn.BatchNorm(epsilon=0.001), relu())


def _branch(*layers):
    return stack(*[_conv(*layer) if isinstance(layer, tuple) else layer for layer in layers])


def _mean():
    return nn.AvgPool2D(3, 1, 1)


def _row(channels, length=7):
    return channels, (1, length), 1, (0, length // 2)


def _column(channels, length=7):
    return channels, (length, 1), 1, (length // 2, 0)


def _local(pooled):
    return side_by_side(_branch((64, 1)), _branch((48, 1), (64, 5, 1, 2)),
                        _branch((64, 1), (96, 3, 1, 1), (96, 3, 1, 1)), _branch(_mean(), (pooled, 1)))


def _shrink_to_17():
    return side_by_side(_branch((384, 3, 2)), _branch((64, 1), (96, 3, 1, 1), (96, 3, 2)), _branch(nn.MaxPool2D(3, 2)))


def _long(n):
    return side_by_side(_branch((192, 1)), _branch((n, 1), _row(n), _column(192)),
                        _branch((n, 1), _column(n), _row(n), _column(n), _row(192)), _branch(_mean(), (192, 1)))


def _shrink_to_8():
    return side_by_side(_branch((192, 1), (320, 3, 2)), _branch((192, 1), _row(192), _column(192), (192, 3, 2)),
                        _branch(nn.MaxPool2D(3, 2)))


def _wide():
    def split():
        return side_by_side(_branch(_row(384, 3)), _branch(_column(384, 3)))
    return side_by_side(_branch((320, 1)), stack(_branch((384, 1)), split()),
                        stack(_branch((448, 1), (384, 3, 1, 1)), split()), _branch(_mean(), (192, 1)))


class Inception3(Classifier):
    """Inception v3 for pictures of 299 x 299."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)
        self.features = stack(
            _conv(32, 3, 2), _conv(32, 3), _conv(64, 3, 1, 1), nn.MaxPool2D(3, 2), _conv(80, 1), _conv(192, 3),
            nn.MaxPool2D(3, 2), *map(_local, (32, 64, 64)), _shrink_to_17(), *map(_long, (128, 160, 160, 192)),
            _shrink_to_8(), _wide(), _wide(), nn.AvgPool2D(8), nn.Dropout(0.5))
        self.output = nn.Dense(classes)


def inception_v3(pretrained=False, ctx=None, root=None, **kwargs):
    """Inception v3 for pictures of 299 x 299.

    classes: number of scores. pretrained: load weights from a file in `root`, to the device `ctx`."""
    return load_pretrained(Inception3(**kwargs), "inceptionv3", pretrained, ctx, root)


# ---- Inception-BN: convolutions have biases ----
def _unit(channels, kernel, stride=1):
    return nn.Conv2D(channels, kernel, stride, kernel // 2), nn.BatchNorm(), relu()


def _chain(*layers):
    return stack(*[part for layer in layers for part in _unit(*layer)])


def _same(one, reduce3, three, reduce_double, double, pooled, pool=nn.AvgPool2D):
    return side_by_side(_chain((one, 1)), _chain((reduce3, 1), (three, 3)),
                        _chain((reduce_double, 1), (double, 3), (double, 3)),
                        stack(pool(3, 1, 1), *_unit(pooled, 1)))


def _half(reduce3, three, reduce_double, double):
    return side_by_side(_chain((reduce3, 1), (three, 3, 2)),
                        _chain((reduce_double, 1), (double, 3), (double, 3, 2)), nn.MaxPool2D(3, 2, 1))


class InceptionBN(Classifier):
    """Inception with batch normalisation, as in MXNet's examples, for pictures of 224 x 224. (MXNet's zoo lacks it.)"""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)
        self.features = stack(
            _chain((64, 7, 2)), nn.MaxPool2D(3, 2), _chain((64, 1), (192, 3)), nn.MaxPool2D(3, 2),
            _same(64, 64, 64, 64, 96, 32), _same(64, 64, 96, 64, 96, 64), _half(128, 160, 64, 96),
            _same(224, 64, 96, 96, 128, 128), _same(192, 96, 128, 96, 128, 128), _same(160, 128, 160, 128, 160, 128),
            _same(96, 128, 192, 160, 192, 128), _half(128, 192, 192, 256), _same(352, 192, 320, 160, 224, 128),
            _same(352, 192, 320, 192, 224, 128, nn.MaxPool2D), nn.GlobalAvgPool2D(), nn.Flatten())
        self.output = nn.Dense(classes)


def inception_bn(pretrained=False, ctx=None, root=None, **kwargs):
    """Inception with batch normalisation, for pictures of 224 x 224.

    classes: number of scores. pretrained: load weights from a file in `root`, to the device `ctx`."""
    return load_pretrained(InceptionBN(**kwargs), "inception_bn", pretrained, ctx, root)
