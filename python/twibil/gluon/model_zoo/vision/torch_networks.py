# SPDX-License-Identifier: Apache-2.0
"""Small networks as PyTorch's packages have them, for whose weights see `model_zoo.load_torch_parameters`: torchvision's
MobileNetV2, and EfficientNet-Lite0. (MXNet's MobileNetV2 differs: it has one convolution more and no bias at the end.)"""
from __future__ import annotations

from .... import npx
from ... import nn
from ...block import HybridBlock
from .constructors import Classifier, load_pretrained, stack
from .mobilenet import RELU6

__all__ = ["TorchMobileNetV2", "mobilenet_v2_torch", "EfficientNetLite0", "efficientnet_lite0"]

# (channels, blocks, stride of the first block, expansion, kernel) of each stage
_MOBILENET = ((16, 1, 1, 1, 3), (24, 2, 2, 6, 3), (32, 3, 2, 6, 3), (64, 4, 2, 6, 3), (96, 3, 1, 6, 3), (160, 3, 2, 6, 3),
              (320, 1, 1, 6, 3))
_EFFICIENTNET = ((16, 1, 1, 1, 3), (24, 2, 2, 6, 3), (40, 2, 2, 6, 5), (80, 3, 2, 6, 3), (112, 3, 1, 6, 5),
                 (192, 4, 2, 6, 5), (320, 1, 1, 6, 3))


class _PadForStride2(HybridBlock):
    """Zeros around a picture of even sides, as TensorFlow pads before a convolution of stride 2: more of them behind."""

    def __init__(self, kernel, **kwargs):
        super().__init__(**kwargs)
        before, after = (kernel - 2) // 2, (kernel - 1) // 2
        self._before, self._after = (0, 0, before, before), (0, 0, after, after)

    def forward(self, x):
        return npx.pad_axes(x, before=self._before, after=self._after, mode="constant")


class _Builder:
    """Makes convolutions with normalisation; `tensorflow`: padded and with the epsilon as there."""

    def __init__(self, tensorflow):
        self.tensorflow = tensorflow

    def conv(self, channels, kernel=1, stride=1, groups=1, active=True):
        pads = self.tensorflow and stride == 2
        layers = [_PadForStride2(kernel)] if pads else []
        layers += [nn.Conv2D(channels, kernel, stride, 0 if pads else kernel // 2, groups=groups, use_bias=False),
                   nn.BatchNorm(epsilon=1e-3 if self.tensorflow else 1e-5)]
        return layers + [RELU6()] if active else layers

    def block(self, before, channels, expansion, kernel, stride):
        wide = before * expansion
        layers = self.conv(wide) if expansion != 1 else []
        layers += self.conv(wide, kernel, stride, wide) + self.conv(channels, active=False)
        return _Residual(layers) if stride == 1 and before == channels else stack(*layers)


class _Residual(HybridBlock):
    """x + body(x)."""

    def __init__(self, layers, **kwargs):
        super().__init__(**kwargs)
        self.body = stack(*layers)

    def forward(self, x):
        return x + self.body(x)


class _InvertedResiduals(Classifier):
    """A convolution, stages of inverted residuals, a wide 1 x 1 convolution, the mean of each channel, a dense layer."""

    def __init__(self, stages, tensorflow, classes, **kwargs):
        super().__init__(**kwargs)
        make, width = _Builder(tensorflow), 32
        self.features = stack(*make.conv(width, 3, 2))
        for channels, count, stride, expansion, kernel in stages:
            for i in range(count):
                self.features.add(make.block(width, channels, expansion, kernel, 1 if i else stride))
                width = channels
        self.features.add(*make.conv(1280), nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dropout(0.2))
        self.output = nn.Dense(classes)


class TorchMobileNetV2(_InvertedResiduals):
    """torchvision's mobilenet_v2, for pictures of 224 x 224."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(_MOBILENET, False, classes, **kwargs)


class EfficientNetLite0(_InvertedResiduals):
    """EfficientNet-Lite0, for pictures of 224 x 224 (sides must be multiples of 32)."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(_EFFICIENTNET, True, classes, **kwargs)


def mobilenet_v2_torch(pretrained=False, ctx=None, root=None, **kwargs):
    """MobileNetV2 as torchvision has it.

    classes: number of scores. pretrained: load weights from a file in `root`, to the device `ctx`."""
    return load_pretrained(TorchMobileNetV2(**kwargs), "mobilenetv2_torch", pretrained, ctx, root)


def efficientnet_lite0(pretrained=False, ctx=None, root=None, **kwargs):
    """EfficientNet-Lite0, an EfficientNet-B0 without squeeze-and-excitation and with relu6.

    classes: number of scores. pretrained: load weights from a file in `root`, to the device `ctx`."""
    return load_pretrained(EfficientNetLite0(**kwargs), "efficientnet_lite0", pretrained, ctx, root)
