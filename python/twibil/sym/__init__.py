# SPDX-License-Identifier: Apache-2.0
"""Symbols: networks that are declared first, then compiled and run. `mx.sym` holds the operators under the names that
MXNet's graphs use, `mx.sym.np` and `mx.sym.npx` under NumPy's; all of them come from the compiled registry."""
from __future__ import annotations

import sys as _sys
import types as _types

from ..base import did_you_mean as _did_you_mean
from ..registry import functions as _functions
from .compiled import CompiledFunction, compile  # noqa: F401
from .executor import Executor  # noqa: F401
from .names import AttrScope, NameManager, Prefix  # noqa: F401
from .symbol import Constant, Group, Symbol, Variable, fromjson, load, load_json, var  # noqa: F401

_SPACES = {"np": "sym.np", "npx": "sym.npx", "np.random": "sym.np.random", "np.linalg": "sym.np.linalg",
           "npx.random": "sym.npx.random", "random": "sym.random", "contrib": "sym.contrib", "linalg": "sym.linalg",
           "image": "sym.image", "_internal": "sym"}


class _Namespace(_types.ModuleType):
    """Operators of one space of the registry."""

    def __getattr__(self, name: str):
        found = _functions(self._space).get(name) if not name.startswith("__") else None
        if found is None:
            raise AttributeError(f"{self.__name__[len('twibil.'):]} has no attribute {name!r}"
                                 f"{_did_you_mean(name, _functions(self._space))}")
        return found

    def __dir__(self):
        return sorted(_functions(self._space))


def _add_namespaces():
    for name, space in _SPACES.items():
        module = _Namespace(f"{__name__}.{name}", f"Operators that make symbols: {space}.")
        module._space = space
        _sys.modules[module.__name__] = module
        parent, _, short = name.rpartition(".")
        setattr(_sys.modules[f"{__name__}.{parent}" if parent else __name__], short, module)


_add_namespaces()


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    for space in ("sym", "sym.npx", "sym.np"):
        found = _functions(space).get(name)
        if found is not None:
            return found
    raise AttributeError(f"mx.sym has no attribute {name!r}.{_did_you_mean(name, _functions('sym'))}")


def __dir__():
    return sorted({*globals(), *(n for n in _functions("sym") if not n.startswith("_"))})
