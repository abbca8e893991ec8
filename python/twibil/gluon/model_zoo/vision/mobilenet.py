# SPDX-License-Identifier: Apache-2.0
"""MobileNet and MobileNetV2: depthwise 3 x 3 convolutions between 1 x 1 ones."""
from __future__ import annotations

from .... import npx
from ... import nn
from ...block import HybridBlock
from .constructors import Classifier, constructor, load_pretrained, relu, stack

__all__ = ["MobileNet", "MobileNetV2", "get_mobilenet", "get_mobilenet_v2"]

_MULTIPLIERS = {1.0: "1.0", 0.75: "0.75", 0.5: "0.5", 0.25: "0.25"}
# (channels, stride) of each pair of a depthwise and a 1 x 1 convolution
_PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
# (channels, blocks, stride of the first block, expansion) of each stage
_STAGES = ((16, 1, 1, 1), (24, 2, 2, 6), (32, 3, 2, 6), (64, 4, 2, 6), (96, 3, 1, 6), (160, 3, 2, 6), (320, 1, 1, 6))


class RELU6(HybridBlock):
    """Values below 0 become 0, values above 6 become 6."""

    def forward(self, x):
        return npx.clip_between(x, a_min=0, a_max=6)  # MXNet's clip when exported


def _conv(channels, kernel=1, stride=1, groups=1, activation=relu):
    layers = (nn.Conv2D(channels, kernel, stride, kernel // 2, groups=groups, use_bias=False), nn.BatchNorm())
    return (*layers, activation()) if activation else layers


class MobileNet(Classifier):
    """multiplier: the share of the original channels, at least 0.25."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        width = int(32 * multiplier)
        self.features = stack(*_conv(width, 3, 2))
        for channels, stride in _PAIRS:
            self.features.add(*_conv(width, 3, stride, groups=width))
            width = int(channels * multiplier)
            self.features.add(*_conv(width))
        self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
        self.output = nn.Dense(classes)


class LinearBottleneck(HybridBlock):
    """Expands the channels t times, filters each, and projects them to `channels` without a nonlinearity."""

    def __init__(self, in_channels, channels, t, stride, **kwargs):
        super().__init__(**kwargs)
        wide = in_channels * t
        self.use_shortcut = stride == 1 and in_channels == channels
        self.out = stack(*_conv(wide, activation=RELU6), *_conv(wide, 3, stride, wide, RELU6),
                         *_conv(channels, activation=None))

    def forward(self, x):
        y = self.out(x)
        return y + x if self.use_shortcut else y


class MobileNetV2(Classifier):
    """multiplier: the share of the original channels."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        width = int(32 * multiplier)
        self.features = stack(*_conv(width, 3, 2, activation=RELU6))
        for channels, count, first_stride, t in _STAGES:
            for j in range(count):
                self.features.add(LinearBottleneck(width, int(channels * multiplier), t, first_stride if j == 0 else 1))
                width = int(channels * multiplier)
        self.features.add(*_conv(int(1280 * max(1.0, multiplier)), activation=RELU6), nn.GlobalAvgPool2D())
        self.output = stack(nn.Conv2D(classes, 1, use_bias=False), nn.Flatten())


def get_mobilenet(multiplier, pretrained=False, ctx=None, root=None, **kwargs):
    """MobileNet with `multiplier` times the original channels."""
    name = f"mobilenet{_MULTIPLIERS.get(multiplier, multiplier)}"
    return load_pretrained(MobileNet(multiplier, **kwargs), name, pretrained, ctx, root)


def get_mobilenet_v2(multiplier, pretrained=False, ctx=None, root=None, **kwargs):
    """MobileNetV2 with `multiplier` times the original channels."""
    name = f"mobilenetv2_{_MULTIPLIERS.get(multiplier, multiplier)}"
    return load_pretrained(MobileNetV2(multiplier, **kwargs), name, pretrained, ctx, root)


for _value, _text in _MULTIPLIERS.items():
    for _prefix, _title, _make in (("mobilenet", "MobileNet", get_mobilenet),
                                   ("mobilenet_v2_", "MobileNetV2", get_mobilenet_v2)):
        _name = _prefix + _text.replace(".", "_")
        globals()[_name] = constructor(_name, f"{_title} with {_text} times the original channels.", _make, _value)
        __all__.append(_name)
