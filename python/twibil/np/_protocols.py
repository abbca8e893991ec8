# SPDX-License-Identifier: Apache-2.0
"""What NumPy's own functions do with this package's arrays: `numpy.add(x, y)` is `mx.np.add(x, y)` where one is an
array of this package. The array type's `__array_ufunc__` and `__array_function__` call these."""
from __future__ import annotations

import numpy as onp

from .. import _core, autograd
from ..registry import functions as _functions


def _host(value):
    """Arrays in a nest of lists, tuples and dicts as NumPy arrays."""
    if isinstance(value, _core.ndarray):
        return value.asnumpy()
    if isinstance(value, (list, tuple)):
        return type(value)(_host(v) for v in value)
    if isinstance(value, dict):
        return {k: _host(v) for k, v in value.items()}
    return value


def _on_host(function, args, kwargs):
    """NumPy's own function on copies; the result is NumPy's. ValueError while recording, as it has no gradient."""
    if autograd.is_recording():
        raise ValueError(f"numpy.{function.__name__} has no counterpart with a gradient here; call it outside "
                         "autograd.record(), or on x.asnumpy()")
    return function(*_host(args), **_host(kwargs))


def array_ufunc(ufunc, method, *inputs, **kwargs):
    """`ufunc(*inputs)`: the function of that name in `mx.np`; NumPy's own where there is none, or into NumPy arrays."""
    out = kwargs.get("out") or ()
    mine = _functions("np").get(ufunc.__name__)
    into_numpy = any(isinstance(o, onp.ndarray) for o in out)
    if method != "__call__" or mine is None or into_numpy or set(kwargs) - {"out"}:
        return _on_host(getattr(ufunc, method), inputs, kwargs)
    return mine(*inputs, out=out[0]) if out else mine(*inputs)


def array_function(function, types, args, kwargs):
    """`function(*args, **kwargs)`: the function of that name in `mx.np` or `mx.np.linalg`, else NumPy's own."""
    from .. import np
    space = np.linalg if function.__module__ == "numpy.linalg" else np
    mine = vars(space).get(function.__name__)
    if mine is None:
        return _on_host(function, args, kwargs)
    return mine(*args, **kwargs)
