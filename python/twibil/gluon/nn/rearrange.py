# SPDX-License-Identifier: Apache-2.0
"""Layers that move elements: pixel shuffle and reflecting padding."""
from __future__ import annotations

from ... import np
from ...base import integer_types
from ..block import HybridBlock
from .conv import window


class _PixelShuffle(HybridBlock):
    """(N, f1*...*fd*C, n1..nd) to (N, C, n1*f1..nd*fd)."""

    dims = 0

    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self._factors = window(factor, self.dims, f"{type(self).__name__}: factor")

    def forward(self, x):
        d, f, (batch, channels, *sizes) = self.dims, self._factors, x.shape
        group = 1
        for v in f:
            group *= v
        if channels % group:
            raise ValueError(f"{type(self).__name__}: {channels} channels do not divide by the factors {f}")
        y = x.reshape(batch, channels // group, *f, *sizes)
        order = [0, 1] + [axis for i in range(d) for axis in (2 + d + i, 2 + i)]
        return y.transpose(order).reshape(batch, channels // group, *[n * v for n, v in zip(sizes, f)])

    def __repr__(self):
        return f"{type(self).__name__}({self._factors if self.dims > 1 else self._factors[0]})"


class PixelShuffle1D(_PixelShuffle):
    """Channels become places along one axis."""

    dims = 1


class PixelShuffle2D(_PixelShuffle):
    """Channels become places along two axes."""

    dims = 2


class PixelShuffle3D(_PixelShuffle):
    """Channels become places along three axes."""

    dims = 3


class ReflectionPad2D(HybridBlock):
    """Pads height and width (NCHW) by mirroring; padding: a number for all four sides, or MXNet's eight numbers."""

    def __init__(self, padding=0, **kwargs):
        super().__init__(**kwargs)
        p = (0, 0, 0, 0, padding, padding, padding, padding) if isinstance(padding, integer_types) else tuple(padding)
        if len(p) != 8:
            raise ValueError(f"ReflectionPad2D: padding must be an integer or 8 of them; got {padding}")
        self._padding = tuple(zip(p[::2], p[1::2]))

    def forward(self, x):
        return np.pad(x, self._padding, mode="reflect")
