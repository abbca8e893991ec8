# SPDX-License-Identifier: Apache-2.0
"""Recording of operations and their gradients: `record`, `pause`, `backward`, `grad`, `Function`."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as onp

from . import _core
from .base import describe

is_recording = _core.is_recording
is_training = _core.is_training


def set_recording(is_record: bool) -> bool:
    """Turns recording on or off in this thread; returns the previous state."""
    return _core.set_recording(bool(is_record))


def set_training(train_mode: bool) -> bool:
    """Turns training behaviour (dropout, batch statistics) on or off in this thread; returns the previous state."""
    return _core.set_training(bool(train_mode))


_RECORD = {mode: _core.recording_scope(True, mode) for mode in (True, False)}
_PAUSE = {mode: _core.recording_scope(False, mode) for mode in (True, False)}
_TRAIN = _core.recording_scope(None, True)
_PREDICT = _core.recording_scope(None, False)


def record(train_mode: bool = True):
    """`with record():` operations inside are recorded, in training mode unless told otherwise."""
    return _RECORD[bool(train_mode)]


def pause(train_mode: bool = False):
    """`with pause():` operations inside are not recorded."""
    return _PAUSE[bool(train_mode)]


def train_mode():
    """`with train_mode():` training behaviour, recording as before."""
    return _TRAIN


def predict_mode():
    """`with predict_mode():` prediction behaviour, recording as before."""
    return _PREDICT


def _as_list(value: Any, name: str) -> list:
    if isinstance(value, _core.ndarray):
        return [value]
    if isinstance(value, (list, tuple)):
        return list(value)
    raise TypeError(f"autograd: {name} must be an array or a list of arrays; got {describe(value)}")


def _head_grads(heads: list, head_grads: Any) -> list | None:
    if head_grads is None:
        return None
    grads = _as_list(head_grads, "head_grads")
    if len(grads) != len(heads):
        raise ValueError(f"autograd: each head needs one head gradient; got {len(grads)} for {len(heads)} heads")
    return grads


def mark_variables(variables, gradients, grad_reqs: str | Sequence[str] = "write") -> None:
    """Attaches gradient buffers: after `backward`, `gradients[i]` holds the gradient by `variables[i]`.

    grad_reqs: 'write', 'add' or 'null', one for all or one each."""
    variables, gradients = _as_list(variables, "variables"), _as_list(gradients, "gradients")
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(reqs):
        raise ValueError("mark_variables: as many gradients and requests as variables are needed; "
                         f"got {len(variables)} variables, {len(gradients)} gradients, {len(reqs)} requests")
    _core.mark_variables(variables, gradients, reqs)


def backward(heads, head_grads=None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Computes gradients of `heads` by all marked variables and stores them in the variables' `grad`.

    head_grads: gradients by the heads (same shapes); ones where None."""
    heads = _as_list(heads, "heads")
    _core.backward(heads, _head_grads(heads, head_grads), retain_graph, train_mode)


def grad(heads, variables, head_grads=None, retain_graph: bool | None = None, create_graph: bool = False,
         train_mode: bool = True):
    """Gradients of `heads` by `variables`, returned and not stored; an array for an array, a list for a list.

    create_graph: record the computation of the gradients, so that they can be differentiated again.
    retain_graph: keep the graph for another call; by default the value of `create_graph`."""
    heads = _as_list(heads, "heads")
    wanted = _as_list(variables, "variables")
    retain = create_graph if retain_graph is None else retain_graph
    result = _core.grad(heads, wanted, _head_grads(heads, head_grads), retain, create_graph, train_mode)
    return result[0] if isinstance(variables, _core.ndarray) else result


def get_symbol(x):
    """The recorded history of `x` as a symbol; available with the symbolic edge."""
    raise NotImplementedError("autograd.get_symbol: there are no symbols in this version")


class Function:
    """A differentiable function with a gradient written in Python.

    Derive, write `forward(self, *inputs)` and `backward(self, *output_grads)` (one gradient for each input), then call
    an object. Both run without recording. `save_for_backward` keeps arrays for `backward` in `self.saved_tensors`.
    An object serves one call."""

    def __init__(self):
        self._used = False
        self.saved_tensors: tuple = ()

    def save_for_backward(self, *args) -> None:
        """Keeps `args` as `self.saved_tensors`."""
        self.saved_tensors = args

    def forward(self, *inputs):
        """Computes the outputs: an array or a tuple of arrays."""
        raise NotImplementedError(f"{type(self).__name__}.forward must be written")

    def backward(self, *output_grads):
        """Computes one gradient for each input from one gradient for each output."""
        raise NotImplementedError(f"{type(self).__name__}.backward must be written")

    def __call__(self, *inputs):
        if self._used:
            raise ValueError(f"{type(self).__name__}: each call needs its own object; this one was called before")
        self._used = True
        if _core.is_tracing():
            return self._node(inputs)
        with pause(train_mode=is_training()):
            outputs = self.forward(*inputs)
        if not is_recording():
            return outputs
        single = isinstance(outputs, _core.ndarray)
        if not single and not (isinstance(outputs, (list, tuple)) and all(isinstance(y, _core.ndarray) for y in outputs)):
            raise TypeError(f"{type(self).__name__}.forward must return an array or a tuple of arrays; "
                            f"got {describe(outputs)}")
        # The history hangs on arrays of their own: an output that `self` keeps for backward must not lead back to it.
        results = [y.detach() for y in ([outputs] if single else outputs)]
        _core.record_function(results, list(inputs), self._run_backward(inputs))
        return results[0] if single else tuple(results)

    def _node(self, inputs):
        """The call as a node of the running trace."""
        from .host import FunctionNode, call
        node = FunctionNode(self)
        out = call(node, list(inputs))
        return out[0] if node.single else tuple(out)

    def _run_backward(self, inputs):
        count, shapes = len(inputs), [x.shape for x in inputs]

        def run(*output_grads):
            with pause(train_mode=is_training()):
                grads = self.backward(*output_grads)
            grads = list(grads) if isinstance(grads, (list, tuple)) else [grads]
            if len(grads) != count:
                raise ValueError(f"{type(self).__name__}.backward: one gradient for each of {count} inputs is needed; "
                                 f"got {len(grads)}")
            for i, (g, shape) in enumerate(zip(grads, shapes)):
                if g is not None and not isinstance(g, (_core.ndarray, onp.ndarray)):
                    raise TypeError(f"{type(self).__name__}.backward: gradient {i} must be an array or None; "
                                    f"got {describe(g)}")
                if g is not None and g.shape != shape:
                    raise ValueError(f"{type(self).__name__}.backward: gradient {i} must have its input's shape "
                                     f"{list(shape)}; got {list(g.shape)}")
            return grads
        return run
