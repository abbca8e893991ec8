# SPDX-License-Identifier: Apache-2.0
"""Initializers that choose by name: from saved values, or by patterns."""
from __future__ import annotations

import re


class Load:
    """Fills parameters from a dict of arrays or a `.params` file, and others with `default_init`.

    Raises ValueError for a wrong shape, and for a missing name without a default."""

    def __init__(self, param, default_init=None, verbose=False):
        if isinstance(param, str):
            from ..serialization import load_params
            param = load_params(param)
        if not isinstance(param, dict):
            raise TypeError(f"Load: a file name or a dict of arrays is needed; got {type(param).__name__}")
        self.param = {k[4:] if k.startswith(("arg:", "aux:")) else k: v for k, v in param.items()}
        self.default_init, self.verbose = default_init, verbose

    def __call__(self, name, arr):
        if name in self.param:
            value = self.param[name]
            if value.shape != arr.shape:
                raise ValueError(f"Load: {str(name)!r} needs shape {list(arr.shape)}; got {list(value.shape)}")
            arr[...] = value
        elif self.default_init is not None:
            self.default_init(name, arr)
        else:
            raise ValueError(f"Load: no value for {str(name)!r}, and no default_init")


class Mixed:
    """The first initializer whose pattern matches the parameter's name; ValueError where none does."""

    def __init__(self, patterns, initializers):
        if len(patterns) != len(initializers):
            raise ValueError(f"Mixed: one initializer a pattern is needed; got {len(patterns)} and {len(initializers)}")
        self.map = [(re.compile(p), i) for p, i in zip(patterns, initializers)]

    def __call__(self, name, arr):
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ValueError(f"Mixed: no pattern matches {str(name)!r}; add '.*' as the last")
