# SPDX-License-Identifier: Apache-2.0
"""`mx.nd`: MXNet's older array namespace. Arrays are the same type as `mx.np`'s. A name is looked for in `legacy`,
then in the registry's `nd`, `npx` and `np` spaces, so `F.relu(x)` in a `hybrid_forward` works."""
from __future__ import annotations

import importlib as _importlib

from .. import _core, np, npx  # noqa: F401
from ..base import did_you_mean as _did_you_mean
from ..registry import functions as _functions
from ..np import random  # noqa: F401
from ..operator import Custom  # noqa: F401
from ..serialization import load, save_params as save  # noqa: F401
from . import contrib  # noqa: F401

legacy = _importlib.import_module(__name__ + ".legacy")
NDArray = _core.ndarray
waitall = _core.waitall


def array(source_array, ctx=None, dtype=None):
    """A new array from any array-like; float32 unless the source or `dtype` says otherwise."""
    return _core.array(source_array, dtype=dtype, ctx=ctx)


def zeros(shape, ctx=None, dtype=None, stype=None, **others):
    """Zeros of a shape, float32 by default. NotImplementedError for a storage type other than 'default'."""
    if stype not in (None, "default"):
        raise NotImplementedError(f"zeros: only dense storage exists; got stype={stype!r}")
    return np.zeros(shape, dtype=dtype or "float32", ctx=ctx, **others)


def ones(shape, ctx=None, dtype=None, **others):
    """Ones of a shape, float32 by default."""
    return np.ones(shape, dtype=dtype or "float32", ctx=ctx, **others)


def full(shape, val, ctx=None, dtype="float32", out=None):
    """A constant array of a shape."""
    return np.full(shape, val, dtype=dtype, **({} if ctx is None else {"ctx": ctx}))


def empty(shape, ctx=None, dtype=None):
    """An array of a shape; the values are zeros."""
    return zeros(shape, ctx, dtype)


def concat(*data, dim=1):
    """Joins arrays along the axis `dim`."""
    return np.concatenate(data[0] if len(data) == 1 and isinstance(data[0], (list, tuple)) else data, axis=dim)


def stack(*data, axis=0):
    """Joins arrays along a new axis."""
    return np.stack(data[0] if len(data) == 1 and isinstance(data[0], (list, tuple)) else data, axis=axis)


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in vars(legacy) and not name.startswith("_"):
        return vars(legacy)[name]
    for space in ("nd", "npx", "np"):
        found = _functions(space).get(name)
        if found is not None:
            return found
    for module in (npx, np):
        if name in vars(module):
            return vars(module)[name]
    known = [*vars(legacy)] + [n for s in ("nd", "npx", "np") for n in _functions(s)]
    raise AttributeError(f"mx.nd has no attribute {name!r}.{_did_you_mean(name, known)}")


def __dir__():
    """What `__getattr__` finds, for completion."""
    found = {*globals(), *vars(legacy), *vars(np), *vars(npx)} | {n for s in ("nd", "npx", "np") for n in _functions(s)}
    return sorted(n for n in found if not n.startswith("_"))
