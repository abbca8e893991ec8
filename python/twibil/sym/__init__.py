# SPDX-License-Identifier: Apache-2.0
"""Symbols: networks that are declared first, then compiled and run. `mx.sym.np` and `mx.sym.npx` hold the operators
under NumPy's names, `mx.sym` itself under MXNet's."""
from __future__ import annotations

from .compiled import CompiledFunction, compile  # noqa: F401
from .names import AttrScope, NameManager, Prefix  # noqa: F401
from .symbol import Constant, Group, Symbol, Variable, var  # noqa: F401
