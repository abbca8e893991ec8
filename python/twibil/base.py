# SPDX-License-Identifier: Apache-2.0
"""Small helpers that the whole front end shares: error texts, name registries, numeric type tuples."""
from __future__ import annotations

import difflib
import numbers
import os
from pathlib import Path
from typing import Any, Callable, Iterable

import numpy as onp

numeric_types = (numbers.Number, onp.generic)
integer_types = (int, onp.integer)
string_types = (str,)


class MXNetError(RuntimeError):
    """Base of errors that are neither a wrong value, type, index nor key; those raise Python's own classes."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`' Did you mean x?'` for the known name nearest to `name`, or an empty string."""
    near = difflib.get_close_matches(str(name), list(known), n=2)
    return f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def describe(value: Any) -> str:
    """A short text for error messages: shape and dtype of an array, else type and value."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} of shape {list(value.shape)} and dtype {value.dtype}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"


def data_dir() -> Path:
    """Where downloads and data sets live: `$MXNET_HOME`, else `~/.mxnet`."""
    return Path(os.environ.get("MXNET_HOME", "~/.mxnet")).expanduser()


class Registry:
    """Classes by name, lower case, with aliases; makes objects from a name, an object, a class or JSON text.

    `kind` is the word used in messages ("optimizer", "metric", ...)."""

    def __init__(self, kind: str):
        self.kind = kind
        self.classes: dict = {}

    def register(self, cls=None, *names: str):
        """Adds `cls` under its lower-case name and `names`; usable as `@register` or `@register('a', 'b')`."""
        if isinstance(cls, str):
            first = cls
            return lambda c: self.register(c, first, *names)
        for name in (cls.__name__, *names):
            self.classes[name.lower()] = cls
        return cls

    def alias(self, *names: str) -> Callable:
        """Decorator that adds names to a class without its own."""
        def add(cls):
            for name in names:
                self.classes[name.lower()] = cls
            return cls
        return add

    def find(self, name: str):
        """The class registered as `name`; KeyError-free: raises ValueError with the nearest names."""
        cls = self.classes.get(str(name).lower())
        if cls is None:
            raise ValueError(f"{self.kind}: a registered name is needed; got {name!r}."
                             f"{did_you_mean(str(name).lower(), self.classes)} "
                             f"Known: {', '.join(sorted(self.classes))}")
        return cls

    def create(self, spec, base: type, *args, **kwargs):
        """`spec` as an instance of `base`: an instance is returned, a class called, a name looked up, JSON decoded."""
        if isinstance(spec, base):
            if args or kwargs:
                raise ValueError(f"{self.kind}: no arguments may follow an object; got {args} {kwargs}")
            return spec
        if isinstance(spec, type) and issubclass(spec, base):
            return spec(*args, **kwargs)
        if isinstance(spec, str):
            if spec.startswith("["):
                import json
                name, more = json.loads(spec)
                return self.find(name)(*args, **{**more, **kwargs})
            return self.find(spec)(*args, **kwargs)
        raise TypeError(f"{self.kind}: a name, a class or an object is needed; got {describe(spec)}")
