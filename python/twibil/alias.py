# SPDX-License-Identifier: Apache-2.0
"""`install_as_mxnet`: makes `import mxnet` and `import mxnet.x.y` mean this package and its modules."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys

_PACKAGE = __name__.rpartition(".")[0]
_LONG_NAMES = {"numpy": "np", "numpy_extension": "npx"}  # MXNet's files, whose short names are attributes


def _real(rest: str) -> str:
    """The module here that `mxnet` + `rest` means: '.numpy.random' is twibil.np.random."""
    first, dot, more = rest[1:].partition(".")
    return _PACKAGE + rest[:1] + _LONG_NAMES.get(first, first) + dot + more


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports under an alias with the modules of the real package: the same objects, loaded once."""

    def __init__(self, alias: str):
        self.alias = alias

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.alias and not fullname.startswith(self.alias + "."):
            return None
        real = _real(fullname[len(self.alias):])
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name == real:
                return None
            raise
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=hasattr(module, "__path__"))
        spec.loader_state = (module, module.__spec__)
        return spec

    def create_module(self, spec):
        return spec.loader_state[0]

    def exec_module(self, module):
        """The module ran already; its own spec is put back in place of the alias's."""
        module.__spec__ = module.__spec__.loader_state[1]


def install_as_mxnet(name: str = "mxnet") -> None:
    """From now on `import mxnet` and its submodules give this package: `from d2l import mxnet as d2l` then works.

    Calling it again changes nothing. Raises ImportError where another MXNet was imported before."""
    package = importlib.import_module(_PACKAGE)
    present = sys.modules.get(name)
    if present is not None and present is not package:
        raise ImportError(f"install_as_mxnet: another {name!r} is imported already ("
                          f"{getattr(present, '__file__', '?')}); call this before anything imports it")
    if not any(isinstance(f, _Finder) and f.alias == name for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name))
    for real, module in list(sys.modules.items()):
        if (real == _PACKAGE or real.startswith(_PACKAGE + ".")) and module is not None:
            sys.modules[name + real[len(_PACKAGE):]] = module
