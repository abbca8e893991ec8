# SPDX-License-Identifier: Apache-2.0
"""`Initializer`: fills an array according to the kind of parameter that its name tells; and their registry."""
from __future__ import annotations

import json

from ..base import Registry, describe

_registry = Registry("initializer")
alias = _registry.alias


class InitDesc(str):
    """The name of a parameter, with attributes: `__init__` is the parameter's own initializer, if it has one."""

    def __new__(cls, name, attrs=None, global_init=None):
        desc = super().__new__(cls, name)
        desc.attrs = attrs or {}
        desc.global_init = global_init
        return desc


# The end of a parameter's name decides which method fills it.
_SUFFIXES = (("weight", "_init_weight"), ("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"),
             ("moving_mean", "_init_zero"), ("running_mean", "_init_zero"), ("moving_var", "_init_one"),
             ("running_var", "_init_one"), ("moving_inv_var", "_init_zero"), ("moving_avg", "_init_zero"),
             ("min", "_init_zero"), ("max", "_init_one"), ("alpha", "_init_weight"), ("parameters", "_init_weight"))


class Initializer:
    """Base of initializers. Derive and write `_init_weight(self, name, arr)`, which fills `arr` in place.

    Keyword arguments of the constructor are kept for `dumps()` and `repr`."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        self._verbose = False
        self._print_func = None

    def set_verbosity(self, verbose: bool = False, print_func=None) -> Initializer:
        """Makes the initializer print each array's name and norm as it is filled."""
        self._verbose = verbose
        self._print_func = print_func or (lambda x: str((float((x * x).sum()) / max(x.size, 1)) ** 0.5))
        return self

    def dumps(self) -> str:
        """Name and arguments as JSON, from which `create` makes an equal object."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other):
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._kwargs.items())})"

    def __call__(self, desc, arr) -> None:
        """Fills `arr`. A parameter's own initializer (in `desc.attrs`) wins; else the end of the name decides:
        weight, bias and beta (0), gamma (1), running statistics. Raises ValueError for a name that tells nothing."""
        if not isinstance(desc, str):
            raise TypeError(f"initializer: a parameter's name is needed; got {describe(desc)}")
        desc = desc if isinstance(desc, InitDesc) else InitDesc(desc)
        own = desc.attrs.get("__init__")
        if own:
            create(own)._init_weight(desc, arr)
        else:
            for suffix, method in _SUFFIXES:
                if desc.lower().endswith(suffix):
                    getattr(self, method)(desc, arr)
                    break
            else:
                self._init_default(desc, arr)
        if self._verbose:
            print(f"initialized {desc} by {own or type(self).__name__}: {self._print_func(arr)}")

    def _init_weight(self, name, arr):
        raise NotImplementedError(f"{type(self).__name__}._init_weight must be written")

    def _init_zero(self, _, arr):
        arr[...] = 0

    def _init_one(self, _, arr):
        arr[...] = 1

    _init_bias = _init_beta = _init_zero
    _init_gamma = _init_one

    def _init_default(self, name, arr):
        raise ValueError(f"initializer: the name {str(name)!r} tells no kind of parameter; it must end in weight, "
                         "bias, gamma, beta or another known word, or give the parameter its own `init`")


def register(cls):
    """Class decorator: makes the initializer known by its lower-case name."""
    if not (isinstance(cls, type) and issubclass(cls, Initializer)):
        raise TypeError(f"initializer.register: a class derived from Initializer is needed; got {describe(cls)}")
    return _registry.register(cls)


def create(spec, *args, **kwargs) -> Initializer:
    """An initializer from an object, a class, a name ('xavier') or `dumps()` text."""
    if not isinstance(spec, (str, type, Initializer)) and callable(spec):
        return spec
    return _registry.create(spec, Initializer, *args, **kwargs)
