# SPDX-License-Identifier: Apache-2.0
"""The functions of the compiled registry by namespace, made once; they can be copied and pickled by name."""
from __future__ import annotations

import copyreg
import functools

from . import _core


@functools.lru_cache(maxsize=None)
def functions(space: str) -> dict:
    """The functions of 'np', 'npx', 'nd', 'np.random' or 'ndarray' by name. Not to be changed."""
    return _core.functions(space)


def _find(name: str):
    """The function that prints as `<function name>`."""
    space, _, short = name.rpartition(".")
    return functions(space)[short] if space else _core.operators()[short]


def _reduce(function):
    return _find, (repr(function)[len("<function "):-1],)


copyreg.pickle(type(next(iter(functions("npx").values()))), _reduce)
