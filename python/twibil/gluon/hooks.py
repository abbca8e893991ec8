# SPDX-License-Identifier: Apache-2.0
"""`HookHandle`: removes a function from the dict of hooks that it was added to."""
from __future__ import annotations

import itertools

from . import generation

_numbers = itertools.count()


class HookHandle:
    """Adds `hook` to `hooks`; `detach()`, or the end of a `with`, removes it."""

    def __init__(self, hooks: dict, hook):
        if not callable(hook):
            raise TypeError(f"hook: a function is needed; got {type(hook).__name__}")
        self._hooks, self._id = hooks, next(_numbers)
        hooks[self._id] = hook
        generation.changed()

    def detach(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._hooks.pop(self._id, None)
        generation.changed()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.detach()
