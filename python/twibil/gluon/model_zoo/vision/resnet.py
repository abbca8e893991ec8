# SPDX-License-Identifier: Apache-2.0
"""Residual networks: version 1 (normalise after each convolution) and version 2 (before it)."""
from __future__ import annotations

from .... import npx
from ....base import describe
from ... import nn
from ...block import HybridBlock
from .constructors import Classifier, constructor, load_pretrained, relu, stack

__all__ = ["ResNetV1", "ResNetV2", "BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "get_resnet"]

_BASIC, _BOTTLENECK = (64, 64, 128, 256, 512), (64, 256, 512, 1024, 2048)
_SIZES = {18: ((2, 2, 2, 2), _BASIC), 34: ((3, 4, 6, 3), _BASIC), 50: ((3, 4, 6, 3), _BOTTLENECK),
          101: ((3, 4, 23, 3), _BOTTLENECK), 152: ((3, 8, 36, 3), _BOTTLENECK)}


def _conv3x3(channels, stride, in_channels):
    return nn.Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """relu(body(x) + x), where x goes through a 1 x 1 convolution if `downsample`."""

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        self.body = stack(*self._layers(channels, stride, in_channels))
        self.downsample = stack(nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels),
                                nn.BatchNorm()) if downsample else None

    def forward(self, x):
        return npx.relu(self.body(x) + (self.downsample(x) if self.downsample else x))


class BasicBlockV1(_BlockV1):
    """Two 3 x 3 convolutions."""

    def _layers(self, channels, stride, in_channels):
        return (_conv3x3(channels, stride, in_channels), nn.BatchNorm(), relu(), _conv3x3(channels, 1, channels),
                nn.BatchNorm())


class BottleneckV1(_BlockV1):
    """A 3 x 3 convolution on a quarter of the channels, between 1 x 1 ones. The first of them takes the stride."""

    def _layers(self, channels, stride, in_channels):
        narrow = channels // 4
        return (nn.Conv2D(narrow, 1, stride), nn.BatchNorm(), relu(), _conv3x3(narrow, 1, narrow), nn.BatchNorm(),
                relu(), nn.Conv2D(channels, 1), nn.BatchNorm())


class _BlockV2(HybridBlock):
    """body(a) + x for a = relu(bn1(x)), or body(a) + downsample(a)."""

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        for i, conv in enumerate(self._convolutions(channels, stride, in_channels), 1):
            setattr(self, f"bn{i}", nn.BatchNorm())
            setattr(self, f"conv{i}", conv)
        self._steps = i
        self.downsample = nn.Conv2D(channels, 1, stride, use_bias=False,
                                    in_channels=in_channels) if downsample else None

    def forward(self, x):
        y = npx.relu(self.bn1(x))
        shortcut = self.downsample(y) if self.downsample else x
        y = self.conv1(y)
        for i in range(2, self._steps + 1):
            y = getattr(self, f"conv{i}")(npx.relu(getattr(self, f"bn{i}")(y)))
        return y + shortcut


class BasicBlockV2(_BlockV2):
    """Two 3 x 3 convolutions."""

    def _convolutions(self, channels, stride, in_channels):
        return _conv3x3(channels, stride, in_channels), _conv3x3(channels, 1, channels)


class BottleneckV2(_BlockV2):
    """A 3 x 3 convolution on a quarter of the channels, between 1 x 1 ones. It takes the stride."""

    def _convolutions(self, channels, stride, in_channels):
        narrow = channels // 4
        return (nn.Conv2D(narrow, 1, use_bias=False), _conv3x3(narrow, stride, narrow),
                nn.Conv2D(channels, 1, use_bias=False))


class _ResNet(Classifier):
    """layers: blocks of each stage; channels: those of the first layer and of each stage; thumbnail: a 3 x 3 convolution
    comes first, for pictures of about 32 x 32."""

    def __init__(self, block, layers, channels, classes=1000, thumbnail=False, **kwargs):
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise ValueError(f"{type(self).__name__}: channels must have one entry more than layers; got {len(channels)} "
                             f"and {len(layers)}")
        self.features = stack(*self._before())
        if thumbnail:
            self.features.add(_conv3x3(channels[0], 1, 0))
        else:
            self.features.add(nn.Conv2D(channels[0], 7, 2, 3, use_bias=False), nn.BatchNorm(), relu(),
                              nn.MaxPool2D(3, 2, 1))
        for stage, (count, before, width) in enumerate(zip(layers, channels, channels[1:])):
            first = block(width, 2 if stage else 1, width != before, in_channels=before)
            self.features.add(stack(first, *[block(width, 1, in_channels=width) for _ in range(count - 1)]))
        self.features.add(*self._after())
        self.output = nn.Dense(classes, in_units=channels[-1])


class ResNetV1(_ResNet):
    """Normalises after each convolution."""

    def _before(self):
        return ()

    def _after(self):
        return (nn.GlobalAvgPool2D(),)


class ResNetV2(_ResNet):
    """Normalises before each convolution, and the picture itself."""

    def _before(self):
        return (nn.BatchNorm(scale=False, center=False),)

    def _after(self):
        return nn.BatchNorm(), relu(), nn.GlobalAvgPool2D(), nn.Flatten()


_VERSIONS = {1: (ResNetV1, BasicBlockV1, BottleneckV1), 2: (ResNetV2, BasicBlockV2, BottleneckV2)}


def get_resnet(version, num_layers, pretrained=False, ctx=None, root=None, **kwargs):
    """ResNet of version 1 or 2 with 18, 34, 50, 101 or 152 layers. ValueError for others."""
    if num_layers not in _SIZES:
        raise ValueError(f"get_resnet: num_layers must be one of {', '.join(map(str, _SIZES))}; got "
                         f"{describe(num_layers)}")
    if version not in _VERSIONS:
        raise ValueError(f"get_resnet: version must be 1 or 2; got {describe(version)}")
    network, basic, bottleneck = _VERSIONS[version]
    layers, channels = _SIZES[num_layers]
    net = network(basic if channels is _BASIC else bottleneck, layers, channels, **kwargs)
    return load_pretrained(net, f"resnet{num_layers}_v{version}", pretrained, ctx, root)


for _version in _VERSIONS:
    for _n in _SIZES:
        _name = f"resnet{_n}_v{_version}"
        globals()[_name] = constructor(_name, f"ResNet with {_n} layers, version {_version}.", get_resnet, _version, _n)
        __all__.append(_name)
