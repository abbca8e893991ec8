# SPDX-License-Identifier: Apache-2.0
"""`mx.library.load`: operators that users wrote in C++ (include/twibil/operator.h tells how)."""
from __future__ import annotations

import importlib
import os
import sys

from . import _core, registry


def load(path, verbose: bool = True):
    """Adds the operators that a library declares, all or none, and returns their public names.

    They become functions where their names say ('npx.my_mish' is `mx.npx.my_mish`), and methods ('ndarray.my_mish').
    A file that is no library, or was compiled against another version, is an OSError or RuntimeError; an operator
    whose name is taken is a ValueError, and nothing is added."""
    path = os.path.abspath(os.fspath(path))
    if not os.path.exists(path):
        raise OSError(f"library.load: there is no file {path}")
    functions = _core.load_operators(path)
    registry.functions.cache_clear()
    for name, function in functions.items():
        space, _, short = name.rpartition(".")
        if space == "ndarray":
            _core.add_methods({short: function})
        elif space:
            setattr(importlib.import_module(f"{__package__}.{space}"), short, function)
    if verbose:
        print(f"loaded {path}: {', '.join(functions)}", file=sys.stderr)
    return list(functions)
