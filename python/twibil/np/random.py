# SPDX-License-Identifier: Apache-2.0
"""`mx.np.random`: samples. Seed with `mx.np.random.seed` or `mx.random.seed`; unseeded processes differ.

Parameters are numbers or arrays; arrays broadcast with each other and with `size`, which defaults to their shape."""
from __future__ import annotations

import numpy as _onp

from .. import _core
from ..base import did_you_mean as _did_you_mean, integer_types as _integer_types
from ..registry import functions as _functions
from .distributions import *  # noqa: F401,F403
from ._arguments import as_array as _as_array, check_device as _check_device
from .distributions import normal, uniform

_np, _npx = _functions("np"), _functions("npx")


def seed(seed=None, ctx="all"):
    """Starts the generator of this process from `seed` (None: from the system's entropy)."""
    from ..random import seed as set_seed
    set_seed(seed, ctx)


def rand(*size, **kwargs):
    """Uniform samples in [0, 1) of shape `size`, of the default dtype."""
    return uniform(0.0, 1.0, size=size, **kwargs)


def randn(*size, **kwargs):
    """Standard normal samples of shape `size`, of the default dtype."""
    return normal(0.0, 1.0, size=size, **kwargs)


def randint(low, high=None, size=None, dtype=None, ctx=None, device=None, out=None):
    """Integers in [low, high), or in [0, low) where `high` is None; int64 by default.

    Raises ValueError for an empty range."""
    _check_device(ctx, device)
    if high is None:
        low, high = 0, low
    if high <= low:
        raise ValueError(f"randint: high must be above low; got low={low}, high={high}")
    value = _functions("np.random")["randint"](int(low), int(high), size=size, dtype=dtype or "int64")
    return _into(value, out)


def _rows(x, name: str):
    x = _as_array(x)
    if x.ndim == 0:
        raise ValueError(f"{name}: an integer or an array with at least one dimension is needed; got a number")
    return x


def _into(value, out):
    if out is None:
        return value
    out[...] = value
    return out


def choice(a, size=None, replace=True, p=None, ctx=None, device=None, out=None):
    """Samples from range(a) or from the first axis of `a`, with probabilities `p` (uniform where None); int64 numbers
    for an integer `a`.

    Raises ValueError for probabilities that do not fit, or more samples than elements without replacement."""
    _check_device(ctx, device)
    a = a if isinstance(a, _integer_types) else _rows(a, "choice")
    n = a if isinstance(a, _integer_types) else a.shape[0]
    count = 1 if size is None else int(_onp.prod(size, dtype=_onp.int64))
    if n <= 0 or (not replace and count > n):
        raise ValueError(f"choice: {count} samples cannot be taken from {n} elements"
                         f"{'' if replace else ' without replacement'}")
    p = None if p is None else _weights(p, n)
    if p is not None and not replace and int((p > 0).sum()) < count:
        raise ValueError(f"choice: {count} samples without replacement need as many probabilities above 0; got "
                         f"{int((p > 0).sum())}")
    index = _places(n, count, replace, p)
    index = index.reshape(() if size is None else (size,) if isinstance(size, _integer_types) else tuple(size))
    return _into(index if isinstance(a, _integer_types) else a[index], out)


def _weights(p, n: int):
    p = p if isinstance(p, _core.ndarray) else _core.array(p)
    if p.shape != (n,) or float(p.min()) < 0 or abs(float(p.sum()) - 1) > 1e-3:
        raise ValueError(f"choice: p must be {n} probabilities that sum to 1; got shape {list(p.shape)}, sum "
                         f"{float(p.sum()):.6g}")
    return p


def _places(n: int, count: int, replace: bool, p):
    """`count` numbers of range(n)."""
    if p is None:
        return randint(0, n, size=(count,)) if replace else _npx["random_permutation"](n)[:count]
    if replace:
        return _npx["random_categorical"](p, samples=count).reshape((count,)).astype("int64")
    keys = _np["log"](p) - _np["log"](-_np["log"](uniform(1e-12, 1.0, size=(n,))))  # Gumbel noise: the largest win
    return _core.array(_onp.argsort(-keys.asnumpy())[:count])


def multinomial(n, pvals, size=None, ctx=None, device=None):
    """How often each outcome comes up in `n` trials, int64 of shape (*size, len(pvals))."""
    _check_device(ctx, device)
    pvals = pvals if isinstance(pvals, _core.ndarray) else _core.array(pvals)
    return _npx["random_multinomial"](pvals, n, size=size)


def bernoulli(prob=0.5, size=None, dtype=None, ctx=None, device=None):
    """1 with probability `prob`, else 0; of the default dtype."""
    _check_device(ctx, device)
    if isinstance(prob, _core.ndarray):
        return (uniform(size=prob.shape if size is None else size) < prob).astype(dtype or _core.default_dtype())
    return _npx["random_bernoulli"](float(prob), size=size, dtype=dtype)


def permutation(x, ctx=None, device=None):
    """A shuffled copy of `x`, or of range(x) (int64) for an integer."""
    _check_device(ctx, device)
    if isinstance(x, _integer_types):
        return _npx["random_permutation"](x)
    x = _rows(x, "permutation")
    return x[_npx["random_permutation"](x.shape[0])]


def shuffle(x):
    """Shuffles the first axis of `x` in place."""
    if not isinstance(x, _core.ndarray):
        raise TypeError(f"shuffle: an array is needed; got {type(x).__name__}")
    x[...] = permutation(x)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"mx.np.random has no attribute {name!r}.{_did_you_mean(name, globals())}")
