# SPDX-License-Identifier: Apache-2.0
"""AlexNet in the form of "One weird trick for parallelizing convolutional neural networks", without normalisation."""
from __future__ import annotations

from ... import nn
from .constructors import Classifier, load_pretrained, stack

__all__ = ["AlexNet", "alexnet"]


class AlexNet(Classifier):
    """Five convolutions and three dense layers."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)

        def conv(channels, kernel, stride=1, padding=1):
            return nn.Conv2D(channels, kernel, stride, padding, activation="relu")
        self.features = stack(
            conv(64, 11, 4, 2), nn.MaxPool2D(3, 2), conv(192, 5, padding=2), nn.MaxPool2D(3, 2),
            conv(384, 3), conv(256, 3), conv(256, 3), nn.MaxPool2D(3, 2), nn.Flatten(),
            nn.Dense(4096, activation="relu"), nn.Dropout(0.5), nn.Dense(4096, activation="relu"), nn.Dropout(0.5))
        self.output = nn.Dense(classes)


def alexnet(pretrained=False, ctx=None, root=None, **kwargs):
    """AlexNet for pictures of 224 x 224.

    classes: number of scores. pretrained: load weights from a file in `root`, to the device `ctx`."""
    return load_pretrained(AlexNet(**kwargs), "alexnet", pretrained, ctx, root)
