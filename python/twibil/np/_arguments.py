# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that are written in Python: arrays from array-likes, and axes that exist."""
from __future__ import annotations

import operator

from .. import _core


def as_array(x):
    """`x` itself where it is an array, else a new array of it."""
    return x if isinstance(x, _core.ndarray) else _core.array(x)


def check_device(*places) -> None:
    """ValueError where one of them (None: not given) is a device that does not exist."""
    for place in places:
        if place is not None:
            _core.array(0.0, ctx=place)


def axis_of(axis, ndim: int, name: str) -> int:
    """`axis` counted from the front. ValueError where there is none."""
    try:
        place = operator.index(axis)
    except TypeError:
        raise TypeError(f"{name}: an axis must be an integer; got {axis!r}") from None
    if not -ndim <= place < ndim:
        raise ValueError(f"{name}: axis {place} is out of range for an array with {ndim} dimensions")
    return place % ndim


def axes_of(axes, ndim: int, name: str) -> list:
    """One axis or several different ones, counted from the front."""
    places = [axis_of(a, ndim, name) for a in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len(set(places)) != len(places):
        raise ValueError(f"{name}: axes must differ; got {tuple(axes)}")
    return places
