# SPDX-License-Identifier: Apache-2.0
"""For which shapes a compiled function is explained."""
from __future__ import annotations

from .. import _core
from ..base import did_you_mean


def signature_of(f, shapes=None, training=None, gradients=None):
    """The signature of a `CompiledFunction` that `explain` takes: that of the last call, changed by what is given."""
    last = f._compiled.last_signature()
    if training is None:
        training = last is not None and last[1]
    if shapes is None and last is not None:
        sigs, wants = last[0], last[2]
    elif shapes is None and f._last is not None:  # traced, not called
        sigs, wants = f._last, [False] * len(f.names)
    else:
        sigs, wants = _from_shapes(f, shapes or {}, bool(training)), [False] * len(f.names)
    if gradients is not None:
        chosen = set(f.names if gradients is True else [] if gradients is False else gradients)
        for name in chosen - set(f.names):
            raise ValueError(f"explain: gradients names {name!r}, which is no argument.{did_you_mean(str(name), f.names)}")
        wants = [name in chosen for name in f.names] + wants[len(f.names):]
    return sigs, bool(training), wants


def _from_shapes(f, shapes, training: bool) -> list:
    if not isinstance(shapes, dict):
        raise TypeError(f"explain: shapes must be a dict of shapes by name; got {type(shapes).__name__}")
    known = {}
    for name, value in shapes.items():
        if name not in f.names:
            raise ValueError(f"explain: shapes names {name!r}, which is no argument.{did_you_mean(str(name), f.names)}")
        array = isinstance(value, _core.ndarray) or hasattr(value, "dtype")
        known[name] = (tuple(value.shape), value.dtype) if array else (tuple(value), None)
    found, _ = f.symbol._infer(known, training, True)
    missing = [name for name in f.names if found.get(name) is None]
    if missing:
        raise ValueError(f"explain: the shapes of {', '.join(missing[:8])} are not known; call the function first, or give "
                         "them: explain(shapes={'" + missing[0] + "': (...)})")
    return [found[name] for name in f.names]
