# SPDX-License-Identifier: Apache-2.0
"""`Parameter`: an array that a block owns, made when its shape is known, with a gradient and a copy for each device."""
from __future__ import annotations

import warnings

import numpy as onp

from .. import _core, autograd, initializer
from ..base import MXNetError, describe, integer_types
from ..context import Device, cpu, current_context
from ..sym import Symbol, Variable
from . import generation

_GRAD_REQS = ("write", "add", "null")


class DeferredInitializationError(MXNetError):
    """A parameter's array was asked for before its shape became known from the first input."""


def known(shape) -> bool:
    """Whether a shape is complete; 0 and -1 stand for unknown sizes."""
    return shape is not None and all(n > 0 for n in shape)


def device_list(ctx) -> list:
    """A device, a list of devices or None (the current device) as a list of `Device`."""
    if ctx is None:
        return [current_context()]
    return [Device(c) for c in (ctx if isinstance(ctx, (list, tuple)) else [ctx])]


def placement(ctx) -> list:
    """`device_list`, for parameters. NotImplementedError for several CPUs: they are one memory, and one copy."""
    devices = device_list(ctx)
    if len(devices) > 1 and sum(d.device_type.startswith("cpu") for d in devices) > 1:
        raise NotImplementedError("Parameter: one copy on the CPU is enough, as all its numbers name one memory; got "
                                  f"{devices}")
    return devices


class Parameter:
    """A named array of a block.

    name: its last word tells initializers what it is (weight, bias, gamma, ...).
    shape: sizes may be 0 or -1, which are filled in from the first input where `allow_deferred_init`.
    grad_req: 'write', 'add' or 'null'. lr_mult, wd_mult: factors on a Trainer's rate and decay.
    init: this parameter's own initializer; else the one given to `initialize`."""

    def __init__(self, name="weight", grad_req="write", shape=None, dtype="float32", lr_mult=1.0, wd_mult=1.0,
                 init=None, allow_deferred_init=False, differentiable=True, stype="default", grad_stype="default"):
        if stype != "default" or grad_stype not in ("default", None):
            raise NotImplementedError(f"Parameter {name!r}: only dense storage exists; got stype={stype!r}, "
                                      f"grad_stype={grad_stype!r}")
        self._name = name
        self._path = None
        self._shape = (shape,) if isinstance(shape, integer_types) else None if shape is None else tuple(shape)
        self.dtype = dtype
        self.lr_mult, self.wd_mult = lr_mult, wd_mult
        self.init = init
        self.allow_deferred_init = allow_deferred_init
        self._differentiable = differentiable
        self._data: dict | None = None
        self._single = None
        self._deferred: tuple | None = None
        self._var = None
        self.grad_req = grad_req

    def __repr__(self):
        return f"Parameter {self.name} (shape={self.shape}, dtype={_dtype_name(self.dtype)})"

    def __getstate__(self):
        return {**self.__dict__, "_single": None, "_var": None}

    def __setstate__(self, state):
        """Copies and unpickled parameters get gradient buffers of their own."""
        self.__dict__.update(state)
        if self._data is not None:
            self._keep(self._data)

    @property
    def name(self) -> str:
        """The name within the outermost block known so far ('body.0.weight'), else the local name ('weight')."""
        return self._path or self._name

    @property
    def shape(self):
        """The shape, or None; unknown sizes are -1 (0 where they were given so)."""
        return self._shape

    @shape.setter
    def shape(self, new):
        new = tuple(int(n) for n in new)
        old = self._shape
        if old is not None and (len(old) != len(new) or any(a > 0 and b > 0 and a != b for a, b in zip(old, new))):
            raise ValueError(f"Parameter {self.name!r}: shape must fit {list(old)}; got {list(new)}")
        self._shape = new if old is None else tuple(b if a <= 0 else a for a, b in zip(old, new))

    @property
    def grad_req(self) -> str:
        """'write': gradients replace, 'add': they accumulate, 'null': none is kept."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req):
        if req not in _GRAD_REQS:
            raise ValueError(f"Parameter {self.name!r}: grad_req must be one of {', '.join(_GRAD_REQS)}; got {req!r}")
        req = req if self._differentiable else "null"
        changed = getattr(self, "_grad_req", req) != req
        self._grad_req = req
        if changed and self._data is not None:
            self._keep({ctx: a.detach() for ctx, a in self._data.items()})

    stype = grad_stype = property(lambda self: "default")

    def _keep(self, arrays: dict) -> None:
        """Makes `arrays` (by device) this parameter's values, with gradient buffers."""
        if self._grad_req != "null":
            for a in arrays.values():
                a.attach_grad(self._grad_req)
        generation.changed()
        self._data = arrays
        self._single = next(iter(arrays.values())) if len(arrays) == 1 else None

    def initialize(self, init=None, ctx=None, default_init=None, force_reinit=False, device=None) -> None:
        """Makes the array on each device, now or, for an incomplete shape, at the first forward pass.

        init: replaces the parameter's own initializer; default_init: used where it has none (default Uniform(0.07)).
        A second call without `force_reinit` warns and changes nothing. ValueError: incomplete shape, not deferrable."""
        if self._data is not None and not force_reinit:
            warnings.warn(f"Parameter {self.name!r} has values already; force_reinit=True replaces them", stacklevel=2)
            return
        self._data = self._single = None
        generation.changed()
        default_init = default_init if default_init is not None else initializer.Uniform()
        if init is None:
            init = self.init if self.init is not None else default_init
        self._deferred = (init, placement(ctx if device is None else device), default_init, None)
        if known(self._shape):
            self._finish_deferred_init()
        elif not self.allow_deferred_init:
            self._deferred = None
            raise ValueError(f"Parameter {self.name!r}: a complete shape is needed to initialize; got {self._shape}. "
                             "Give the missing sizes (in_units, in_channels, ...)")

    def _finish_deferred_init(self) -> None:
        """Makes the array that `initialize` put off; ValueError where the shape is still incomplete."""
        if self._deferred is None:
            return
        init, devices, default_init, data = self._deferred
        if not known(self._shape):
            raise ValueError(f"Parameter {self.name!r}: the shape is incomplete: {self._shape}. Give the missing "
                             "sizes, or write `infer_shape` in its block")
        from .. import np
        with _core.Untraced(), autograd.pause():
            if data is None:
                data = np.zeros(self._shape, dtype=self.dtype)
                own = initializer.create(init)
                if isinstance(own, initializer.Initializer):
                    initializer.create(default_init)(initializer.InitDesc(self.name, {"__init__": own}), data)
                else:
                    own(initializer.InitDesc(self.name), data)
            self._keep({ctx: self._place(data, ctx) for ctx in devices})
        self._deferred = None

    @staticmethod
    def _place(data, ctx):
        return data.copy() if ctx == cpu() and data.ctx == cpu() else _core.array(data, dtype=data.dtype, ctx=ctx)

    def _check(self, ctx=None) -> dict:
        """The arrays by device; raises where there are none yet, or none on `ctx`."""
        if self._data is None:
            if self._deferred is not None:
                raise DeferredInitializationError(
                    f"Parameter {self.name!r} has no values yet: its shape {self._shape} becomes complete at the first "
                    "forward pass. Run one batch through the network first, or give in_units/in_channels/...")
            raise MXNetError(f"Parameter {self.name!r} (shape {self._shape}) has not been initialized. Call "
                             "net.initialize() (or net.load_parameters(...)) before using it; a parameter made by a "
                             "Block must belong to the block that is initialized")
        if ctx is not None and ctx not in self._data:
            raise MXNetError(f"Parameter {self.name!r} is not on {ctx}; it was initialized on {list(self._data)}")
        return self._data

    def data(self, ctx=None, device=None):
        """The array (on `ctx`, else on the current device or the only one)."""
        if self._single is not None and ctx is None:
            return self._single
        return self._pick(self._check(), ctx if device is None else device)

    def _pick(self, arrays: dict, ctx):
        if ctx is None:
            ctx = current_context()
            if ctx not in arrays:
                return next(iter(arrays.values()))
        ctx = Device(ctx)
        return self._check(ctx)[ctx]

    def on(self, x):
        """The array on the device of the array `x`; for a symbol the parameter's symbol."""
        if isinstance(x, Symbol):
            return self.var()
        return self._single if self._single is not None else self.data(x.ctx)

    def list_data(self) -> list:
        """The arrays of all devices."""
        return list(self._check().values())

    def grad(self, ctx=None, device=None):
        """The gradient (on `ctx`); MXNetError where grad_req is 'null'."""
        array = self.data(ctx, device)
        if self._grad_req == "null":
            raise MXNetError(f"Parameter {self.name!r} has no gradient: its grad_req is 'null'")
        return array.grad

    def list_grad(self) -> list:
        """The gradients of all devices."""
        return [self.grad(ctx) for ctx in self._check()]

    def list_ctx(self) -> list:
        """The devices that hold, or will hold, the array."""
        if self._data is None and self._deferred is not None:
            return list(self._deferred[1])
        return list(self._check())

    list_device = list_ctx

    def zero_grad(self) -> None:
        """Sets the gradients to zero; nothing where grad_req is 'null'."""
        if self._data is not None and self._grad_req != "null":
            for a in self._data.values():
                a.grad[...] = 0

    def set_data(self, data) -> None:
        """Copies `data` (an array-like of the parameter's shape) into the array on every device."""
        data = data if isinstance(data, _core.ndarray) else _core.array(data, dtype=self.dtype)
        self.shape = data.shape
        if self._data is None:
            if self._deferred is None:
                self._check()
            self._deferred = (*self._deferred[:3], data.astype(self.dtype))
            self._finish_deferred_init()
            return
        with autograd.pause():
            for a in self._data.values():
                a[...] = data if a.ctx == data.ctx else data.as_in_ctx(a.ctx)

    def _check_loaded(self, data, name: str, source, cast_dtype: bool) -> None:
        """ValueError where an array called `name` in a file has not this parameter's shape, TypeError for its dtype."""
        if self._shape is not None and (len(self._shape) != data.ndim or
                                        any(a > 0 and a != b for a, b in zip(self._shape, data.shape))):
            raise ValueError(f"{source}: {name!r} has shape {list(data.shape)}; the network needs {list(self._shape)}")
        if not cast_dtype and _dtype_name(data.dtype) != _dtype_name(self.dtype):
            raise TypeError(f"{source}: {name!r} has dtype {data.dtype}; the network needs {_dtype_name(self.dtype)}. "
                            "cast_dtype=True converts")

    def _load(self, data, ctx=None, cast_dtype=False, dtype_source="current") -> None:
        """Takes values from a file that passed `_check_loaded`, and initializes where that was not done."""
        if _dtype_name(data.dtype) != _dtype_name(self.dtype):
            if dtype_source == "saved":
                self.cast(data.dtype)
            data = data.astype(self.dtype)
        if self._data is None:
            self.shape = data.shape
            devices = placement(ctx) if ctx is not None or self._deferred is None else self._deferred[1]
            self._deferred = (None, devices, None, data)
            self._finish_deferred_init()
        else:
            if ctx is not None and device_list(ctx) != list(self._data):
                self.reset_ctx(ctx)
            self.set_data(data)

    def reset_ctx(self, ctx) -> None:
        """Moves the parameter to other devices."""
        devices = placement(ctx)
        if self._data is not None:
            with autograd.pause():
                data = next(iter(self._data.values())).detach()
                self._keep({c: self._place(data, c) for c in devices})
        elif self._deferred is not None:
            self._deferred = (self._deferred[0], devices, *self._deferred[2:])
        else:
            self._check()

    reset_device = reset_ctx

    def cast(self, dtype) -> None:
        """Changes the dtype of values and gradient."""
        self.dtype = dtype
        if self._data is not None:
            with autograd.pause():
                self._keep({ctx: a.detach().astype(dtype) for ctx, a in self._data.items()})

    def var(self):
        """The variable that stands for the parameter in symbols, called by its name."""
        known_var = self._var
        if known_var is None or known_var.name != self.name:
            shape = self._shape and tuple(n if n > 0 else -1 for n in self._shape)
            own = self.init if isinstance(self.init, (str, initializer.Initializer)) else None
            self._var = known_var = Variable(self.name, shape=shape, dtype=self.dtype, lr_mult=self.lr_mult,
                                             wd_mult=self.wd_mult, init=own)
        return known_var


class Constant(Parameter):
    """A parameter that training leaves alone. `Constant(value)` or MXNet 1's `Constant(name, value)`."""

    def __init__(self, name, value=None):
        if value is None:
            name, value = "const", name
        if not isinstance(name, str):
            raise TypeError(f"Constant: the name must be text; got {describe(name)}")
        value = value if isinstance(value, _core.ndarray) else _core.array(value)
        self.value = value
        super().__init__(name, grad_req="null", shape=value.shape, dtype=value.dtype,
                         init=_Given(value), differentiable=False)
        if not known(self._shape):
            raise ValueError(f"Constant {name!r}: a value with elements is needed; got shape {list(value.shape)}")

    def __repr__(self):
        return f"Constant {self.name} (shape={self.shape}, dtype={_dtype_name(self.dtype)})"


class _Given(initializer.Initializer):
    """Fills with a given array."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def _init_weight(self, _, arr):
        arr[...] = self.value


def _dtype_name(dtype) -> str:
    text = str(dtype)
    return text if text == "bfloat16" else onp.dtype(dtype).name


from .parameter_dict import ParameterDict  # noqa: E402,F401  (MXNet's place of the name)
