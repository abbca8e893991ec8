# SPDX-License-Identifier: Apache-2.0
"""Stochastic gradient descent, plain, with momentum and with Nesterov's momentum."""
from __future__ import annotations

from .base import KernelOptimizer, register, zeros_like


@register
class SGD(KernelOptimizer):
    """weight -= lr * g; with momentum m = momentum * m - lr * g, weight += m.

    lazy_update is accepted for sparse gradients, which do not exist here."""

    def __init__(self, learning_rate=None, momentum=0.0, lazy_update=False, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def create_state(self, index, weight):
        return zeros_like(weight) if self.momentum else None

    def kernel(self, state):
        if state is None:
            return "sgd_update", [], {}
        return "sgd_mom_update", [state], {"momentum": self.momentum}


@register
class NAG(KernelOptimizer):
    """Nesterov: m = momentum * m - lr * g; weight += momentum * m - lr * g. Without momentum as SGD."""

    def __init__(self, learning_rate=None, momentum=0.0, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum

    def create_state(self, index, weight):
        return zeros_like(weight) if self.momentum else None

    def kernel(self, state):
        if state is None:
            return "sgd_update", [], {}
        return "nag_mom_update", [state], {"momentum": self.momentum}
