# SPDX-License-Identifier: Apache-2.0
"""Initializers that look at one element at a time: constants, uniform and normal samples."""
from __future__ import annotations

from .. import _core
from .base import Initializer, alias, register


@alias("zeros")
@register
class Zero(Initializer):
    """All zeros."""

    def __init__(self):
        super().__init__()

    def _init_weight(self, _, arr):
        arr[...] = 0


@alias("ones")
@register
class One(Initializer):
    """All ones."""

    def __init__(self):
        super().__init__()

    def _init_weight(self, _, arr):
        arr[...] = 1


@register
class Constant(Initializer):
    """A constant: a number, or an array-like that broadcasts to the parameter's shape."""

    def __init__(self, value=0.0):
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, _, arr):
        value = self.value
        arr[...] = value if isinstance(value, (int, float, _core.ndarray)) else _core.array(value, dtype=arr.dtype)

    def dumps(self):
        value = self.value if isinstance(self.value, (int, float)) else _core.array(self.value).tolist()
        return Initializer.dumps(Constant(value)) if value is not self.value else super().dumps()


@register
class Uniform(Initializer):
    """Uniform samples in [-scale, scale)."""

    def __init__(self, scale=0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _, arr):
        from ..np import random
        arr[...] = random.uniform(-self.scale, self.scale, size=arr.shape)


@register
class Normal(Initializer):
    """Normal samples with mean 0 and deviation `sigma`."""

    def __init__(self, sigma=0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _, arr):
        from ..np import random
        arr[...] = random.normal(0.0, self.sigma, size=arr.shape)


@register
class LSTMBias(Initializer):
    """Zeros, but `forget_bias` for the forget gate (the second quarter) of an LSTM's bias."""

    def __init__(self, forget_bias=1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, _, arr):
        arr[...] = 0
        quarter = arr.shape[0] // 4
        arr[quarter:2 * quarter] = self.forget_bias
