# SPDX-License-Identifier: Apache-2.0
"""VGG networks: 3 x 3 convolutions only, and three large dense layers."""
from __future__ import annotations

from .... import initializer
from ....base import describe
from ... import nn
from .constructors import Classifier, constructor, load_pretrained, relu, stack

__all__ = ["VGG", "get_vgg"]

_WIDTHS = (64, 128, 256, 512, 512)
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Classifier):
    """layers: convolutions of each stage; filters: their channels, as many; batch_norm: normalise after each."""

    def __init__(self, layers, filters, classes=1000, batch_norm=False, **kwargs):
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise ValueError(f"VGG: layers and filters must have one entry a stage; got {len(layers)} and "
                             f"{len(filters)} entries")
        self.features = stack()
        for count, width in zip(layers, filters):
            for _ in range(count):
                spread = initializer.Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
                self.features.add(nn.Conv2D(width, 3, padding=1, weight_initializer=spread))
                if batch_norm:
                    self.features.add(nn.BatchNorm())
                self.features.add(relu())
            self.features.add(nn.MaxPool2D(strides=2))
        for _ in range(2):
            self.features.add(nn.Dense(4096, activation="relu", weight_initializer="normal"), nn.Dropout(0.5))
        self.output = nn.Dense(classes, weight_initializer="normal")


def get_vgg(num_layers, pretrained=False, ctx=None, root=None, **kwargs):
    """VGG with 11, 13, 16 or 19 layers for pictures of 224 x 224. ValueError for other numbers."""
    if num_layers not in _DEPTHS:
        raise ValueError(f"get_vgg: num_layers must be one of {', '.join(map(str, _DEPTHS))}; got {describe(num_layers)}")
    name = f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}"
    return load_pretrained(VGG(_DEPTHS[num_layers], _WIDTHS, **kwargs), name, pretrained, ctx, root)


for _n in _DEPTHS:
    globals()[f"vgg{_n}"] = constructor(f"vgg{_n}", f"VGG with {_n} layers.", get_vgg, _n)
    globals()[f"vgg{_n}_bn"] = constructor(f"vgg{_n}_bn", f"VGG with {_n} layers and batch normalisation.", get_vgg, _n,
                                           batch_norm=True)
    __all__ += [f"vgg{_n}", f"vgg{_n}_bn"]
