# SPDX-License-Identifier: Apache-2.0
"""`ParameterDict`: parameters by name, as a dict with the operations that run over all of them."""
from __future__ import annotations

from .. import initializer
from ..base import did_you_mean, integer_types
from ..serialization import load_params, save_params
from . import parameter as _parameter


class ParameterDict(dict):
    """Parameters by name. `Block.params` is one, and `Block.collect_params()` returns one.

    prefix is put before names made by `get`; `shared` is a dict whose parameters are used instead of new ones."""

    def __init__(self, prefix="", shared=None):
        super().__init__()
        self._prefix = prefix
        self._shared = shared

    prefix = property(lambda self: self._prefix)

    def __repr__(self):
        head = f"{self._prefix} " if self._prefix else ""
        return head + "(\n" + "\n".join(f"  {p!r}" for p in self.values()) + "\n)"

    def __missing__(self, name):
        raise KeyError(f"no parameter is named {name!r}.{did_you_mean(name, self)}")

    def get(self, name, default=None, **kwargs):
        """The parameter of this name, shared or made with `Parameter`'s keyword arguments; else `default`.

        An existing one takes missing sizes from `shape`; ValueError where the two shapes do not fit."""
        full = self._prefix + name
        found = super().get(full)
        if found is None and self._shared is not None:
            found = dict.get(self._shared, name)
            if found is not None:
                self[full] = found
        if found is None:
            if not kwargs:
                return default
            found = self[full] = _parameter.Parameter(full, **kwargs)
        elif kwargs.get("shape") is not None:
            shape = kwargs["shape"]
            found.shape = (shape,) if isinstance(shape, integer_types) else shape
        return found

    def get_constant(self, name, value=None):
        """The constant of this name, made from `value` at the first call."""
        full = self._prefix + name
        if full not in self:
            if value is None:
                raise KeyError(f"no constant is named {full!r}; give a value to make one")
            self[full] = _parameter.Constant(full, value)
        return self[full]

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False, device=None) -> None:
        """`Parameter.initialize` of each; `init` (default Uniform(0.07)) serves those without one of their own."""
        init = initializer.create(init if init is not None else initializer.Uniform())
        if verbose and hasattr(init, "set_verbosity"):
            init.set_verbosity(verbose=verbose)
        for p in self.values():
            p.initialize(None, ctx, init, force_reinit=force_reinit, device=device)

    def zero_grad(self) -> None:
        """Sets all gradients to zero."""
        for p in self.values():
            p.zero_grad()

    def reset_ctx(self, ctx) -> None:
        """Moves all parameters to other devices."""
        for p in self.values():
            p.reset_ctx(ctx)

    reset_device = reset_ctx

    def list_ctx(self) -> list:
        """All devices that hold a parameter, each once."""
        return list(dict.fromkeys(c for p in self.values() for c in p.list_ctx()))

    def setattr(self, name, value) -> None:
        """Sets an attribute of all parameters: `params.setattr('grad_req', 'null')`."""
        for p in self.values():
            if not hasattr(p, name):
                raise AttributeError(f"Parameter has no attribute {name!r}.{did_you_mean(name, dir(p))}")
            setattr(p, name, value)

    def cast(self, dtype) -> None:
        """Changes the dtype of all parameters."""
        for p in self.values():
            p.cast(dtype)

    def save(self, filename, strip_prefix="") -> None:
        """Writes all parameters in MXNet's `.params` format, names without `strip_prefix`."""
        for name in self:
            if not name.startswith(strip_prefix):
                raise ValueError(f"save: prefix {strip_prefix!r} is not at the start of {name!r}")
        save_params(filename, {name[len(strip_prefix):]: p.data() for name, p in self.items()})

    def load(self, filename, ctx=None, allow_missing=False, ignore_extra=False, restore_prefix="", cast_dtype=False,
             dtype_source="current") -> None:
        """Reads a `.params` file written by `save`; names get `restore_prefix` in front.

        ValueError for missing or additional names unless allowed."""
        loaded = load_params(filename)
        if not isinstance(loaded, dict):
            raise ValueError(f"load: {filename} has arrays without names")
        strip = {k[4:] if k.startswith(("arg:", "aux:")) else k: v for k, v in loaded.items()}
        load_into(self, {restore_prefix + k: v for k, v in strip.items()}, filename, ctx, allow_missing, ignore_extra,
                  cast_dtype, dtype_source)


def load_into(params: dict, loaded: dict, source, ctx=None, allow_missing=False, ignore_extra=False, cast_dtype=False,
              dtype_source="current") -> None:
    """Gives parameters the loaded arrays of their names. Everything is checked before the first one changes.

    A parameter known by several names is present when one of them is. ValueError lists missing and additional names."""
    names_of: dict = {}
    for name, p in params.items():
        names_of.setdefault(id(p), []).append(name)
    missing = [n for n, p in params.items() if not any(m in loaded for m in names_of[id(p)])]
    extra = [n for n in loaded if n not in params]
    if missing and not allow_missing:
        raise ValueError(f"{source}: no values for parameters {_some(missing)}. The file has {_some(list(loaded))}."
                         f"{did_you_mean(missing[0], loaded)} allow_missing=True skips them")
    if extra and not ignore_extra:
        raise ValueError(f"{source}: {_some(extra)} belong to no parameter. The network has {_some(list(params))}."
                         f"{did_you_mean(extra[0], params)} ignore_extra=True skips them")
    for name, p in params.items():
        if name in loaded:
            p._check_loaded(loaded[name], name, source, cast_dtype)
    for name, p in params.items():
        if name in loaded:
            p._load(loaded[name], ctx, cast_dtype, dtype_source)


def _some(names: list, count: int = 6) -> str:
    shown = ", ".join(repr(n) for n in names[:count])
    return shown + (f" and {len(names) - count} more" if len(names) > count else "")
