# SPDX-License-Identifier: Apache-2.0
"""`mx.random`: the seed, and MXNet's names for samplers."""
from __future__ import annotations

from . import _core, host_random
from .base import describe
from .np import random as _np_random


def seed(seed_state=None, ctx="all"):
    """Starts the random generator from an integer (None: from the system's entropy); the same numbers follow for any
    number of threads. `ctx`: a device, or 'all'."""
    if seed_state is None:
        import secrets
        seed_state = secrets.randbits(63)
    if isinstance(seed_state, bool) or not hasattr(seed_state, "__index__"):
        raise TypeError(f"seed: an integer is needed; got {seed_state!r}")
    host_random.reseed(abs(int(seed_state)))
    _core.seed(int(seed_state)) if ctx == "all" else _core.seed(int(seed_state), ctx)


def uniform(low=0.0, high=1.0, shape=None, dtype=None, ctx=None, out=None):
    """Uniform samples in [low, high) of the given shape."""
    return _sample("uniform", low, high, shape, dtype, ctx, out)


def normal(loc=0.0, scale=1.0, shape=None, dtype=None, ctx=None, out=None):
    """Normal samples with mean `loc` and deviation `scale`."""
    return _sample("normal", loc, scale, shape, dtype, ctx, out)


def _sample(name, a, b, shape, dtype, ctx, out):
    if out is not None and not isinstance(out, _core.ndarray):
        raise TypeError(f"{name}: out must be an array; got {describe(out)}")
    if shape is None and out is not None:
        shape = out.shape
    more = {} if ctx is None else {"ctx": ctx}
    value = getattr(_np_random, name)(a, b, size=shape, dtype=dtype, **more)
    if out is None:
        return value
    out[...] = value
    return out


randn, randint, shuffle = _np_random.randn, _np_random.randint, _np_random.shuffle


def get_state() -> dict:
    """The state of the device's and the host's generators, as numbers and text that JSON can hold."""
    return {"device": list(_core.random_state()), "host": host_random.generator().bit_generator.state}


def set_state(state: dict) -> None:
    """Continues from a state of `get_state`: the same numbers follow."""
    _core.set_random_state(tuple(state["device"]))
    host_random.generator().bit_generator.state = state["host"]
