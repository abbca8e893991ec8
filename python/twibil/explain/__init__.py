# SPDX-License-Identifier: Apache-2.0
"""What the compiler did with a graph, as text and as a page with pictures: `explain`."""
from __future__ import annotations

import zlib

import numpy as onp

from .. import _core
from .explanation import Explanation
from .machine import machine

__all__ = ["explain", "Explanation"]


def explain(compiled, signature=None, *, title="compiled graph", html=None, measure=False, seconds=0.5):
    """An `Explanation` of how `compiled` (a `_core.Compiled`) runs for a signature; print it, or look at its page.

    signature: ([(shape, dtype)] of the inputs, training, [which inputs want a gradient]); None for that of the last
    call. html: path of a page to write. measure: True to run each kernel on made-up arrays of the inputs' shapes and
    take its time, or a list of arrays to run on; they are copied, nothing changes (but host functions inside the graph
    are called). seconds: how long to measure.

    Raises ValueError before the first call without a signature, and for graphs whose shapes depend on values."""
    if signature is None:
        signature = compiled.last_signature()
        if signature is None:
            raise ValueError("explain: the graph was not called yet, so its shapes are not known; call it first, or say "
                             "for which shapes")
    data = compiled.describe(signature)
    measured = None
    if measure is not False and measure is not None:
        arrays = _made_up(signature[0][:len(compiled.names()) - len(compiled.captured())]) if measure is True else list(measure)
        measured = compiled.measure(signature, arrays, float(seconds))
    explanation = Explanation(data, title, machine(), measured)
    if html is not None:
        explanation.save(html)
    return explanation


def notebook_html(explainable):
    """The main parts of the page of what has `explain()`; None, which makes notebooks show the repr, where nothing can be
    explained yet."""
    try:
        return explainable.explain()._repr_html_()
    except (ValueError, RuntimeError):
        return None


def _made_up(sigs) -> list:
    """Arrays of the inputs' shapes: floats between 0 and 1, zeros of integers. Captured arrays are there already."""
    arrays = []
    for shape, dtype in sigs:
        name = str(dtype)
        if name.startswith(("float", "bfloat")):
            values = onp.random.default_rng(zlib.crc32(repr(shape).encode())).random(shape, dtype="float32")
        else:
            values = onp.zeros(shape, "int64")
        arrays.append(_core.array(values, dtype=dtype))
    return arrays
