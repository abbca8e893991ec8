# SPDX-License-Identifier: Apache-2.0
"""Names and attributes that symbols get where the user gives none: `NameManager`, `Prefix`, `AttrScope`."""
from __future__ import annotations

import threading

_local = threading.local()


def _stack(kind: str) -> list:
    if not hasattr(_local, kind):
        setattr(_local, kind, [])
    return getattr(_local, kind)


class NameManager:
    """Numbers names by hint: 'add0', 'add1'. In a `with` statement its numbers begin anew."""

    def __init__(self):
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """`name`, or the hint with the next number."""
        if name:
            return name
        count = self._counter.get(hint, 0)
        self._counter[hint] = count + 1
        return f"{hint}{count}"

    def __enter__(self):
        _stack("names").append(self)
        return self

    def __exit__(self, *exc):
        _stack("names").remove(self)


class Prefix(NameManager):
    """Puts a prefix before every name."""

    def __init__(self, prefix: str):
        super().__init__()
        self._prefix = prefix

    def get(self, name, hint):
        return self._prefix + super().get(name, hint)


class AttrScope:
    """Attributes for all symbols made in a `with` statement: AttrScope(ctx_group='dev1', __lr_mult__='0.1')."""

    def __init__(self, **kwargs):
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ValueError(f"AttrScope: {key} must be a string; got {type(value).__name__}")
        self._attr = kwargs

    def get(self, attr: dict | None) -> dict:
        """The scope's attributes, then those of `attr`."""
        return {**self._attr, **(attr or {})}

    def __enter__(self):
        stack = _stack("attrs")
        self._before = dict(self._attr)
        if stack:
            self._attr = {**stack[-1]._attr, **self._attr}
        stack.append(self)
        return self

    def __exit__(self, *exc):
        _stack("attrs").remove(self)
        self._attr = self._before


_default = NameManager()


def current() -> NameManager:
    """The name manager in force on this thread."""
    stack = _stack("names")
    return stack[-1] if stack else _default


def next_name(hint: str, name: str | None = None) -> str:
    """The name of a new node."""
    return current().get(name, hint.lower())


def current_attributes(attr: dict | None = None) -> dict:
    """`attr` with what the scopes in force add."""
    stack = _stack("attrs")
    return stack[-1].get(attr) if stack else dict(attr or {})
