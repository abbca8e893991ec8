# SPDX-License-Identifier: Apache-2.0
"""`mx.np.random`: samples. Seed with `mx.np.random.seed` or `mx.random.seed`; unseeded processes differ."""
from __future__ import annotations

from .. import _core
from ..base import did_you_mean as _did_you_mean

_ops = dict(_core.functions("np.random"))
globals().update(_ops)


def seed(seed=None, ctx="all"):
    """Starts the generator of this process from `seed` (None: from the system's entropy)."""
    from ..random import seed as set_seed
    set_seed(seed, ctx)


def _device(ctx, device):
    return {} if ctx is None and device is None else {"ctx": device if ctx is None else ctx}


def rand(*size, **kwargs):
    """Uniform samples in [0, 1) of shape `size`, float32 by default."""
    return _ops["uniform"](0.0, 1.0, size=size, **kwargs)


def randn(*size, **kwargs):
    """Standard normal samples of shape `size`, float32 by default."""
    return _ops["normal"](0.0, 1.0, size=size, **kwargs)


def randint(low, high=None, size=None, dtype=None, ctx=None, device=None, out=None):
    """Integers in [low, high), or in [0, low) where `high` is None; int64 by default.

    Raises ValueError for an empty range."""
    if high is None:
        low, high = 0, low
    if high <= low:
        raise ValueError(f"randint: high must be above low; got low={low}, high={high}")
    value = _ops["randint"](low, high, size=size, dtype=dtype or "int64", **_device(ctx, device))
    return _into(value, out)


def _into(value, out):
    if out is None:
        return value
    out[...] = value
    return out


def choice(a, size=None, replace=True, p=None, ctx=None, device=None, out=None):
    """Samples from range(a) or from the first axis of `a`, with probabilities `p` (uniform where None).

    Raises ValueError for probabilities that do not fit or more samples than elements without replacement."""
    count = a if isinstance(a, int) else a.shape[0]
    index = _ops["choice"](count, size=size, replace=replace, p=p, **_device(ctx, device))
    return _into(index if isinstance(a, int) else a[index], out)


def permutation(x, ctx=None, device=None):
    """A shuffled copy of `x`, or of range(x) for an integer."""
    x = _core.array(list(range(x)), dtype="int64", ctx=ctx or device) if isinstance(x, int) else x.copy()
    shuffle(x)
    return x


def shuffle(x):
    """Shuffles the first axis of `x` in place."""
    x[...] = _ops["shuffle"](x)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"mx.np.random has no attribute {name!r}.{_did_you_mean(name, globals())}")
