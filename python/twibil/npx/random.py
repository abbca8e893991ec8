# SPDX-License-Identifier: Apache-2.0
"""`mx.npx.random`: samplers whose size is a batch in front of the parameters' shape, and Bernoulli."""
from __future__ import annotations

import numpy as _onp

from .. import _core as _core
from ..base import integer_types as _integer_types
from ..registry import functions as _functions
from ..np import random as _np_random
from ..random import seed  # noqa: F401


def _full(batch_shape, *params):
    batch = (batch_shape,) if isinstance(batch_shape, _integer_types) else tuple(batch_shape or ())
    return batch + _onp.broadcast_shapes(*[getattr(p, "shape", ()) for p in params])


def normal_n(loc=0.0, scale=1.0, batch_shape=None, dtype=None, ctx=None):
    """Normal samples of shape (*batch_shape, *shape of loc and scale)."""
    more = {} if ctx is None else {"ctx": ctx}
    return _np_random.normal(loc, scale, size=_full(batch_shape, loc, scale), dtype=dtype, **more)


def uniform_n(low=0.0, high=1.0, batch_shape=None, dtype=None, ctx=None):
    """Uniform samples of shape (*batch_shape, *shape of low and high)."""
    more = {} if ctx is None else {"ctx": ctx}
    return _np_random.uniform(low, high, size=_full(batch_shape, low, high), dtype=dtype, **more)


def bernoulli(prob=None, logit=None, size=None, dtype=None, ctx=None):
    """1 with probability `prob` (or sigmoid(logit)), else 0; exactly one of the two is given (else ValueError)."""
    if (prob is None) == (logit is None):
        raise ValueError("bernoulli: exactly one of prob and logit is needed")
    if prob is None:
        prob = _functions("npx")["sigmoid"](logit if isinstance(logit, _core.ndarray) else _core.array(logit))
    return _np_random.bernoulli(prob, size=size, dtype=dtype)
