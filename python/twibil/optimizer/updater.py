# SPDX-License-Identifier: Apache-2.0
"""`Updater`: an optimizer together with the states of the weights that it updates."""
from __future__ import annotations

from .. import _core
from .base import Optimizer


class Updater:
    """Calls an optimizer for weights by index, making their states at first use; `states` is a dict by index."""

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.states: dict = {}

    def __call__(self, index, grad, weight) -> None:
        """Updates one weight, or lists of weights, in place."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        for i, w in zip(index, weight):
            if i not in self.states:
                self.states[i] = self.optimizer.create_state_multi_precision(i, w)
        states = [self.states[i] for i in index]
        if self.optimizer.aggregate_num > 0:
            self.optimizer.update_multi_precision(index, weight, grad, states)
        else:
            for one in zip(index, weight, grad, states):
                self.optimizer.update_multi_precision(*one)


def flatten_state(state, arrays: list):
    """A state's nesting with arrays replaced by their place in `arrays`, to which they are appended."""
    if state is None:
        return None
    if isinstance(state, _core.ndarray):
        arrays.append(state)
        return len(arrays) - 1
    if isinstance(state, (list, tuple)):
        return [flatten_state(s, arrays) for s in state]
    raise TypeError(f"optimizer state: arrays, tuples and None can be saved; got {type(state).__name__}")


def restore_state(nesting, arrays: list):
    """The inverse of `flatten_state`."""
    if isinstance(nesting, list):
        return tuple(restore_state(n, arrays) for n in nesting)
    return None if nesting is None else arrays[nesting]


def get_updater(optimizer: Optimizer) -> Updater:
    """An updater for an optimizer."""
    return Updater(optimizer)
