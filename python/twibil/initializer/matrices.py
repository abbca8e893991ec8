# SPDX-License-Identifier: Apache-2.0
"""Initializers that look at a weight's fan-in and fan-out, or at the matrix as a whole."""
from __future__ import annotations

import math

import numpy as onp

from .. import _core
from .base import Initializer, alias, register


@register
class Orthogonal(Initializer):
    """A matrix with orthonormal rows or columns times `scale`; dimensions after the first count as one.

    rand_type: 'uniform' or 'normal', the distribution of the random matrix whose singular vectors are taken."""

    def __init__(self, scale=1.414, rand_type="uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise ValueError(f"Orthogonal: rand_type must be 'uniform' or 'normal'; got {rand_type!r}")
        self.scale, self.rand_type = scale, rand_type

    def _init_weight(self, _, arr):
        from ..np import random
        rows, columns = arr.shape[0], int(onp.prod(arr.shape[1:], dtype=onp.int64))
        sample = (random.uniform(-1.0, 1.0, size=(rows, columns)) if self.rand_type == "uniform"
                  else random.normal(0.0, 1.0, size=(rows, columns)))
        u, _, v = onp.linalg.svd(sample.asnumpy().astype("float64"), full_matrices=False)
        matrix = u if u.shape == (rows, columns) else v
        arr[...] = _core.array((self.scale * matrix).reshape(arr.shape).astype("float32"))


@register
class Xavier(Initializer):
    """Samples whose scale keeps the variance of signals through a layer: sqrt(magnitude / fan).

    rnd_type: 'uniform' or 'gaussian'. factor_type: fan is 'in', 'out' or their 'avg'.
    A weight needs at least two dimensions (else ValueError); those after the second multiply both fans."""

    def __init__(self, rnd_type="uniform", factor_type="avg", magnitude=3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian"):
            raise ValueError(f"Xavier: rnd_type must be 'uniform' or 'gaussian'; got {rnd_type!r}")
        if factor_type not in ("avg", "in", "out"):
            raise ValueError(f"Xavier: factor_type must be 'avg', 'in' or 'out'; got {factor_type!r}")
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name, arr):
        from ..np import random
        shape = arr.shape
        if len(shape) < 2:
            raise ValueError(f"Xavier: {str(name)!r} needs at least 2 dimensions; got shape {list(shape)}")
        receptive = math.prod(shape[2:])
        fan_in, fan_out = shape[1] * receptive, shape[0] * receptive
        fan = {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = math.sqrt(self.magnitude / fan) if fan else 0.0
        arr[...] = (random.uniform(-scale, scale, size=shape) if self.rnd_type == "uniform"
                    else random.normal(0.0, scale, size=shape))


@register
class MSRAPrelu(Xavier):
    """Gaussian Xavier with magnitude 2 / (1 + slope^2), for layers that a (leaky) rectifier follows."""

    def __init__(self, factor_type="avg", slope=0.25):
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope ** 2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """Weights of a transposed convolution that interpolates linearly; shape (..., height, width)."""

    def __init__(self):
        super().__init__()

    def _init_weight(self, _, arr):
        height, width = arr.shape[-2:]
        factor = math.ceil(width / 2.0)
        center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        x, y = onp.arange(width), onp.arange(height)
        plane = onp.outer(1 - abs(y / factor - center), 1 - abs(x / factor - center))
        arr[...] = _core.array(onp.broadcast_to(plane, arr.shape).astype("float32"))


alias("msra_prelu")(MSRAPrelu)
