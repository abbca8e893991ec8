# SPDX-License-Identifier: Apache-2.0
"""DenseNet: each layer sees the outputs of all before it in its stage."""
from __future__ import annotations

from ....base import describe
from ... import nn
from .constructors import Classifier, constructor, load_pretrained, relu, side_by_side, stack

__all__ = ["DenseNet"]

_SIZES = {121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)), 169: (64, 32, (6, 12, 32, 32)),
          201: (64, 32, (6, 12, 48, 32))}


def _conv(channels, kernel, padding=0):
    return nn.BatchNorm(), relu(), nn.Conv2D(channels, kernel, padding=padding, use_bias=False)


def _layer(growth_rate, bn_size, dropout):
    new = stack(*_conv(bn_size * growth_rate, 1), *_conv(growth_rate, 3, 1))
    if dropout:
        new.add(nn.Dropout(dropout))
    return side_by_side(nn.Identity(), new)


class DenseNet(Classifier):
    """num_init_features: channels of the first layer; growth_rate: channels that each layer adds; block_config: layers of
    each stage; bn_size: how many times growth_rate channels the 1 x 1 convolutions make. Pictures of 224 x 224."""

    def __init__(self, num_init_features, growth_rate, block_config, bn_size=4, dropout=0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        self.features = stack(nn.Conv2D(num_init_features, 7, 2, 3, use_bias=False), nn.BatchNorm(), relu(),
                              nn.MaxPool2D(3, 2, 1))
        channels = num_init_features
        for stage, count in enumerate(block_config):
            if stage > 0:
                channels //= 2
                self.features.add(stack(*_conv(channels, 1), nn.AvgPool2D(2, 2)))
            self.features.add(stack(*[_layer(growth_rate, bn_size, dropout) for _ in range(count)]))
            channels += count * growth_rate
        self.features.add(nn.BatchNorm(), relu(), nn.AvgPool2D(7), nn.Flatten())
        self.output = nn.Dense(classes)


def get_densenet(num_layers, pretrained=False, ctx=None, root=None, **kwargs):
    """DenseNet with 121, 161, 169 or 201 layers. ValueError for other numbers."""
    if num_layers not in _SIZES:
        raise ValueError(f"get_densenet: num_layers must be one of {', '.join(map(str, _SIZES))}; got "
                         f"{describe(num_layers)}")
    return load_pretrained(DenseNet(*_SIZES[num_layers], **kwargs), f"densenet{num_layers}", pretrained, ctx, root)


for _n in _SIZES:
    globals()[f"densenet{_n}"] = constructor(f"densenet{_n}", f"DenseNet with {_n} layers.", get_densenet, _n)
    __all__.append(f"densenet{_n}")
