# SPDX-License-Identifier: Apache-2.0
"""Operators written in Python, as MXNet has them: derive `CustomOp` (what is computed) and `CustomOpProp` (names, shapes,
dtypes), register the latter under a name, and call `nd.Custom`, `npx.Custom` or `sym.Custom` with `op_type=name`."""
from __future__ import annotations

import threading
import types

import numpy as onp

from . import _core, autograd, control_flow
from .base import describe, did_you_mean
from .host import HostFunction, call
from .sym.symbol import Symbol, Variable
from .sym.names import next_name

__all__ = ["CustomOp", "CustomOpProp", "register", "get_all_registered_operators", "Custom"]


class CustomOp:
    """What an operator computes. Arrays come in lists, in the order of the prop's names."""

    def forward(self, is_train, req, in_data, out_data, aux):
        """Computes outputs from `in_data` and puts them with `self.assign(out_data[i], req[i], value)`."""
        raise NotImplementedError(f"{type(self).__name__}.forward must be written")

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        """Computes gradients of the inputs and puts them with `self.assign(in_grad[i], req[i], value)`."""
        raise NotImplementedError(f"{type(self).__name__}.backward must be written; the operator has no gradient without")

    def assign(self, dst, req, src) -> None:
        """Puts `src` into `dst` as `req` says: 'null' does nothing, 'write' and 'inplace' replace, 'add' adds."""
        if req == "null":
            return
        if req in ("write", "inplace"):
            dst[...] = src
        elif req == "add":
            dst += src
        else:
            raise ValueError(f"assign: req must be null, write, inplace or add; got {req!r}")


class CustomOpProp:
    """What is known of an operator before it runs. `__init__` takes the keyword arguments of the call as text.

    need_top_grad: False for losses, whose backward needs no gradient of the output."""

    def __init__(self, need_top_grad=True):
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape):
        """(input shapes, output shapes, auxiliary shapes) from the input shapes; all like the first input by default."""
        return in_shape, [in_shape[0]] * len(self.list_outputs()), [in_shape[0]] * len(self.list_auxiliary_states())

    def infer_type(self, in_type):
        """(input dtypes, output dtypes, auxiliary dtypes) from the input dtypes; all like the first by default."""
        return (in_type, [in_type[0]] * len(self.list_outputs()), [in_type[0]] * len(self.list_auxiliary_states()))

    def list_arguments(self):
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self):
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self):
        """Names of arrays that forward may change."""
        return []

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        """Which arrays backward reads; accepted, all of them are kept."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        """The `CustomOp` for inputs of these shapes and dtypes."""
        raise NotImplementedError(f"{type(self).__name__}.create_operator must be written")


_registered: dict = {}


def register(reg_name: str):
    """Makes a `CustomOpProp` known: `@register('name')`."""
    if not isinstance(reg_name, str):
        raise TypeError(f"register: a name is needed, @register('name'); got {describe(reg_name)}")

    def add(prop_class):
        if not (isinstance(prop_class, type) and issubclass(prop_class, CustomOpProp)):
            raise TypeError(f"register: a class derived from CustomOpProp is needed; got {describe(prop_class)}")
        _registered[reg_name] = prop_class
        return prop_class
    return add


def get_all_registered_operators() -> list:
    """Names of the operators that `register` has made known."""
    return list(_registered)


class _Call(HostFunction):
    """One call, or one node, of a custom operator. Its `CustomOp` is kept from forward to backward."""

    def __init__(self, name: str, prop: CustomOpProp, returns_states: bool):
        self.name, self._prop, self._returns_states = name, prop, returns_states
        self._arguments = len(prop.list_arguments())
        self._states = len(prop.list_auxiliary_states())
        self._operators: dict = {}
        self._lock = threading.Lock()

    def _shapes(self, inputs):
        given = [list(s[0]) if s is not None else [] for s in inputs[:self._arguments]]
        found = list(self._prop.infer_shape(given))
        return [[tuple(int(n) for n in shape) for shape in part] for part in found + [[]] * (3 - len(found))]

    def _types(self, inputs):
        given = [onp.dtype(s[1]).type if s is not None else None for s in inputs[:self._arguments]]
        known = next((t for t in given if t is not None), onp.float32)
        found = list(self._prop.infer_type([known if t is None else t for t in given]))
        return [list(part) for part in found + [[]] * (3 - len(found))]

    def complete(self, inputs):
        if inputs[0] is None:
            return inputs
        shapes, types = self._shapes(inputs), self._types(inputs)
        return list(zip(shapes[0] + shapes[2], types[0] + types[2]))

    def infer(self, inputs):
        shapes, types = self._shapes(inputs), self._types(inputs)
        for i, (known, wanted) in enumerate(zip(inputs, shapes[0])):
            if tuple(known[0]) != wanted:
                raise ValueError(f"{self.name}: input {self._prop.list_arguments()[i]} must have shape {list(wanted)}, as "
                                 f"infer_shape says; got {list(known[0])}")
        outputs = list(zip(shapes[1], types[1]))
        if len(outputs) != len(self._prop.list_outputs()):
            raise ValueError(f"{self.name}: infer_shape and infer_type must give a shape and a dtype for each of "
                             f"{self._prop.list_outputs()}; got {len(shapes[1])} and {len(types[1])}")
        return outputs + (list(inputs[self._arguments:]) if self._returns_states else [])

    def _operator(self, inputs) -> CustomOp:
        key = tuple((x.shape, str(x.dtype)) for x in inputs[:self._arguments])
        with self._lock:
            if key not in self._operators:
                from .context import current_context
                with autograd.pause(train_mode=autograd.is_training()):
                    self._operators[key] = self._prop.create_operator(
                        current_context(), [list(x.shape) for x in inputs[:self._arguments]],
                        [onp.dtype(x.dtype).type for x in inputs[:self._arguments]])
            return self._operators[key]

    def run(self, inputs, training):
        from . import np
        signatures = self.infer([(x.shape, x.dtype) for x in inputs])
        out = [np.zeros(shape, dtype=dtype) for shape, dtype in signatures[:len(self._prop.list_outputs())]]
        data, aux = inputs[:self._arguments], inputs[self._arguments:]
        self._operator(inputs).forward(is_train=training, req=["write"] * len(out), in_data=data, out_data=out, aux=aux)
        return out + (aux if self._returns_states else [])

    def gradient(self, inputs, outputs, head_grads, training):
        from . import np
        count = len(self._prop.list_outputs())
        data, aux = inputs[:self._arguments], inputs[self._arguments:]
        heads = [np.zeros_like(y) if g is None else g for y, g in zip(outputs[:count], head_grads)]
        grads = [np.zeros_like(x) for x in data]
        self._operator(inputs).backward(req=["write"] * len(grads), out_grad=heads, in_data=data,
                                        out_data=outputs[:count], in_grad=grads, aux=aux)
        return grads + [None] * len(aux)


def Custom(*args, op_type=None, name=None, **kwargs):
    """Calls the operator registered as `op_type` on arrays or symbols, inputs then auxiliary states, by position or by
    name; other keyword arguments go to its `CustomOpProp` as text. An array or symbol, or a list of several.

    ValueError for a name that is not registered, TypeError for missing inputs."""
    if op_type is None:
        raise TypeError("Custom: op_type, the name that the operator was registered under, is missing")
    if op_type not in _registered:
        raise ValueError(f"Custom: no operator is registered as {op_type!r}.{did_you_mean(op_type, _registered)}")
    by_name = {k: v for k, v in kwargs.items() if isinstance(v, (_core.ndarray, Symbol))}
    prop = _registered[op_type](**{k: v if isinstance(v, str) else str(v) for k, v in kwargs.items() if k not in by_name})
    arguments, states = list(prop.list_arguments()), list(prop.list_auxiliary_states())
    names = arguments + states
    if len(args) > len(names):
        raise TypeError(f"{op_type}: takes {len(names)} arrays ({', '.join(names)}); got {len(args)}")
    given = dict(zip(names, args))
    for key, value in by_name.items():
        if key not in names or key in given:
            raise TypeError(f"{op_type}: argument {key!r} is {'given twice' if key in given else 'not known'}; the inputs "
                            f"are {', '.join(names)}")
        given[key] = value
    symbolic = any(isinstance(v, Symbol) for v in given.values())
    label = next_name(op_type, name)
    if symbolic:
        if states:
            raise NotImplementedError(f"{op_type}: auxiliary states cannot be updated from symbols; call the operator on "
                                      "arrays, also in hybridize() and jit, or make them outputs")
        given.update((n, Variable(f"{label}_{n}")) for n in names if n not in given)
    missing = [n for n in names if n not in given]
    if missing:
        raise TypeError(f"{op_type}: {', '.join(missing)} must be given")
    traced = _core.is_tracing() and bool(states)
    out = call(_Call(op_type, prop, traced), [given[n] for n in names], len(prop.list_outputs()), label)
    if traced:
        for n, new in zip(states, out[len(prop.list_outputs()):]):
            given[n][...] = new
        out = out[:len(prop.list_outputs())]
    return out if len(out) > 1 else out[0]


def add_to(sym) -> None:
    """Gives the namespace of symbols what is written in Python: `Custom` and control flow."""
    sym.Custom = Custom
    if not hasattr(sym, "contrib"):
        sym.contrib = types.ModuleType(sym.__name__ + ".contrib", "Loops and branches of symbols.")
    for place in (sym.contrib, *([sym.npx] if hasattr(sym, "npx") else [])):
        for name in control_flow.__all__:
            setattr(place, name, getattr(control_flow, name))
