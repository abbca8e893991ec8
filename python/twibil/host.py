# SPDX-License-Identifier: Apache-2.0
"""Functions in Python as nodes of graphs. While a graph runs, such a node calls back with arrays that have elements."""
from __future__ import annotations

import copy
from typing import Any

from . import _core, autograd
from .base import describe


class HostFunction:
    """What a node of a graph calls. Derive and write the methods; objects may be called by several threads.

    A signature is (shape, dtype), None where it is not known."""

    name = "host_function"
    has_gradient = True

    def infer(self, inputs: list) -> list:
        """Signatures of the results from those of the inputs."""
        raise NotImplementedError

    def complete(self, inputs: list) -> list:
        """Signatures of inputs, those filled in that follow from others."""
        return inputs

    def run(self, inputs: list, training: bool) -> list:
        """Results, with the signatures that `infer` gives."""
        raise NotImplementedError

    def gradient(self, inputs: list, outputs: list, head_grads: list, training: bool) -> list:
        """A gradient, or None, for each input; a head gradient is None where nothing arrived."""
        raise NotImplementedError


def call(function: HostFunction, inputs: list, outputs: int = 0, name: str = "") -> Any:
    """The function's results on arrays (now, or as a node of the running trace), or on symbols (`outputs` of them)."""
    return _core.host_call(function, inputs, outputs, name)


class FunctionNode(HostFunction):
    """An `autograd.Function` inside a trace. Each run works on a copy of the object; the gradient runs forward again, for
    what it saves."""

    def __init__(self, function):
        self.name = type(function).__name__
        self._function = function
        self._results: dict = {}
        self.single = True

    def _forward(self, inputs, training):
        function = copy.copy(self._function)
        with autograd.pause(train_mode=training):
            out = function.forward(*inputs)
        self.single = isinstance(out, _core.ndarray)
        outputs = [out] if self.single else list(out) if isinstance(out, (list, tuple)) else [out]
        for y in outputs:
            if not isinstance(y, _core.ndarray):
                raise TypeError(f"{self.name}.forward must return an array or a tuple of arrays; got {describe(out)}")
        return function, outputs

    def infer(self, inputs):
        from . import np
        key = tuple((tuple(shape), str(dtype)) for shape, dtype in inputs)
        if key not in self._results:  # it is run once to see what it gives
            state = _core.random_state()
            with _core.Untraced():
                _, outputs = self._forward([np.ones(shape, dtype=dtype) for shape, dtype in inputs],
                                           autograd.is_training())
                self._results[key] = [(y.shape, y.dtype) for y in outputs]
            _core.set_random_state(state)
        return self._results[key]

    def run(self, inputs, training):
        return self._forward(inputs, training)[1]

    def gradient(self, inputs, outputs, head_grads, training):
        from . import np
        function, again = self._forward(inputs, training)
        grads = function._run_backward(inputs)(*[np.zeros_like(y) if g is None else g
                                                 for y, g in zip(again, head_grads)])
        return [g if g is None or isinstance(g, _core.ndarray) else _core.array(g) for g in grads]
