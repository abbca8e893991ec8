# SPDX-License-Identifier: Apache-2.0
"""Continuous distributions of `mx.np.random`: the core samples standard ones, parameters scale and shift them."""
from __future__ import annotations

import functools as _functools
import inspect as _inspect

import numpy as _onp

from .. import _core
from ..base import integer_types
from ..registry import functions as _functions
from ._arguments import check_device as _check_device

__all__ = ["uniform", "normal", "lognormal", "exponential", "gamma", "chisquare", "beta", "f", "laplace", "logistic",
           "gumbel", "rayleigh", "weibull", "pareto", "power"]

_np, _samplers = _functions("np"), _functions("np.random")


def _is_array(x) -> bool:
    return isinstance(x, (_core.ndarray, _onp.ndarray, list, tuple))


def _shape(size, *params):
    """The shape of the result: `size`, or the parameters' common shape."""
    if size is not None:
        return (size,) if isinstance(size, integer_types) else tuple(int(n) for n in size)
    return _onp.broadcast_shapes(*[p.shape if hasattr(p, "shape") else _onp.shape(p) for p in params])


def _finish(value, dtype, out):
    value = value if dtype is None or str(value.dtype) == str(dtype) else value.astype(dtype)
    if out is None:
        return value
    out[...] = value
    return out


def _array(x):
    return _core.array(x) if isinstance(x, (_onp.ndarray, list, tuple)) else x


def uniform(low=0.0, high=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Samples evenly distributed over [low, high), of the default dtype."""
    if _is_array(low) or _is_array(high):
        low, high = _array(low), _array(high)
        return _finish(low + (high - low) * _samplers["uniform"](0.0, 1.0, size=_shape(size, low, high)), dtype, out)
    return _finish(_samplers["uniform"](float(low), float(high), size=size, dtype=dtype), dtype, out)


def normal(loc=0.0, scale=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Normal samples with mean `loc` and deviation `scale`, of the default dtype. ValueError for a negative scale."""
    if _is_array(loc) or _is_array(scale):
        loc, scale = _array(loc), _array(scale)
        if isinstance(scale, _core.ndarray) and scale.size and float(scale.min()) < 0:
            raise ValueError("normal: scale must not be negative")
        return _finish(loc + scale * _samplers["normal"](0.0, 1.0, size=_shape(size, loc, scale)), dtype, out)
    return _finish(_samplers["normal"](float(loc), float(scale), size=size, dtype=dtype), dtype, out)


def exponential(scale=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Exponential samples with mean `scale`."""
    if _is_array(scale):
        scale = _array(scale)
        return _finish(scale * _samplers["exponential"](1.0, size=_shape(size, scale)), dtype, out)
    return _finish(_samplers["exponential"](float(scale), size=size, dtype=dtype), dtype, out)


def gamma(shape, scale=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Gamma samples. NotImplementedError for an array of shape parameters."""
    if _is_array(shape):
        raise NotImplementedError("gamma: the shape parameter must be a number here")
    value = _samplers["gamma"](float(shape), 1.0, size=_shape(size, scale), dtype=dtype)
    return _finish(value * _array(scale), dtype, out)


def _open_uniform(size, *params):
    """Uniform samples in (0, 1)."""
    return _samplers["uniform"](2.0 ** -25, 1.0, size=_shape(size, *params))


def lognormal(mean=0.0, sigma=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Samples whose logarithm is normal."""
    return _finish(_np["exp"](normal(mean, sigma, size)), dtype, out)


def laplace(loc=0.0, scale=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Double-exponential samples."""
    sign = _samplers["uniform"](-1.0, 1.0, size=_shape(size, loc, scale))
    return _finish(_array(loc) + _array(scale) * _np["sign"](sign) * exponential(1.0, sign.shape), dtype, out)


def logistic(loc=0.0, scale=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Logistic samples."""
    u = _open_uniform(size, loc, scale)
    return _finish(_array(loc) + _array(scale) * (_np["log"](u) - _np["log1p"](-u)), dtype, out)


def gumbel(loc=0.0, scale=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Gumbel samples: distributed as the largest of many."""
    return _finish(_array(loc) - _array(scale) * _np["log"](-_np["log"](_open_uniform(size, loc, scale))), dtype, out)


def rayleigh(scale=1.0, size=None, dtype=None, ctx=None, device=None, out=None):
    """Rayleigh samples."""
    return _finish(_array(scale) * _np["sqrt"](-2.0 * _np["log"](_open_uniform(size, scale))), dtype, out)


def weibull(a, size=None, dtype=None, ctx=None, device=None, out=None):
    """Weibull samples of shape parameter `a`."""
    return _finish((-_np["log"](_open_uniform(size, a))) ** (1.0 / _array(a)), dtype, out)


def pareto(a, size=None, dtype=None, ctx=None, device=None, out=None):
    """Pareto II (Lomax) samples of shape parameter `a`."""
    return _finish(_np["expm1"](-_np["log"](_open_uniform(size, a)) / _array(a)), dtype, out)


def power(a, size=None, dtype=None, ctx=None, device=None, out=None):
    """Samples on [0, 1] with density a x^(a-1)."""
    return _finish(_open_uniform(size, a) ** (1.0 / _array(a)), dtype, out)


def chisquare(df, size=None, dtype=None, ctx=None, device=None, out=None):
    """Chi-square samples with `df` degrees of freedom, a number."""
    return _finish(2.0 * gamma(df / 2.0, size=size), dtype, out)


def beta(a, b, size=None, dtype=None, ctx=None, device=None, out=None):
    """Beta samples; a and b are numbers."""
    x, y = gamma(a, size=size), gamma(b, size=size)
    return _finish(x / (x + y), dtype, out)


def f(dfnum, dfden, size=None, dtype=None, ctx=None, device=None, out=None):
    """F samples: the ratio of two chi-squares, each by its degrees of freedom (numbers)."""
    return _finish(chisquare(dfnum, size) / dfnum / (chisquare(dfden, size) / dfden), dtype, out)


def _placed(sampler):
    """The sampler, refusing a device (`ctx` or `device`) that does not exist."""
    first = list(_inspect.signature(sampler).parameters).index("ctx")

    @_functools.wraps(sampler)
    def sample(*args, **kwargs):
        _check_device(*args[first:first + 2], kwargs.get("ctx"), kwargs.get("device"))
        return sampler(*args, **kwargs)
    return sample


globals().update((name, _placed(globals()[name])) for name in __all__)
