# SPDX-License-Identifier: Apache-2.0
"""Optimizers that scale each element's step by a history of its gradients: Adam, AdaGrad, RMSProp, AdaDelta."""
from __future__ import annotations

import math

from .base import KernelOptimizer, register, zeros_like


@register
class Adam(KernelOptimizer):
    """m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; weight -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + epsilon)."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_update=False, **kwargs):
        super().__init__(learning_rate=_rate(learning_rate, 0.001, kwargs), **kwargs)
        self.beta1, self.beta2, self.epsilon, self.lazy_update = beta1, beta2, epsilon, lazy_update

    def create_state(self, index, weight):
        return zeros_like(weight), zeros_like(weight)

    def rate(self, index):
        t = self._index_update_count[index]
        return self._get_lr(index) * math.sqrt(1 - self.beta2 ** t) / (1 - self.beta1 ** t)

    def kernel(self, state):
        return "adam_update", list(state), {"beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}


@register
class AdaGrad(KernelOptimizer):
    """h += g^2; weight -= lr g / (sqrt(h) + eps). `epsilon` is MXNet 2's name of `eps`."""

    def __init__(self, eps=1e-7, epsilon=None, **kwargs):
        super().__init__(**kwargs)
        self.float_stable_eps = self.epsilon = eps if epsilon is None else epsilon

    def create_state(self, index, weight):
        return zeros_like(weight)

    def kernel(self, state):
        return "adagrad_update", [state], {"epsilon": self.epsilon}


@register
class RMSProp(KernelOptimizer):
    """n = r n + (1-r) g^2; weight -= lr g / sqrt(n + epsilon). Centered (Graves): the variance n - mean^2 takes the
    place of n, and the step has momentum. gamma1 (rho) is r, gamma2 (momentum) the momentum.

    clip_weights: weights are clipped to [-c, c] after the step."""

    def __init__(self, learning_rate=0.001, gamma1=0.9, gamma2=0.9, epsilon=1e-8, centered=False, clip_weights=None,
                 rho=None, momentum=None, **kwargs):
        super().__init__(learning_rate=_rate(learning_rate, 0.001, kwargs), **kwargs)
        self.gamma1 = gamma1 if rho is None else rho
        self.gamma2 = gamma2 if momentum is None else momentum
        self.epsilon, self.centered, self.clip_weights = epsilon, centered, clip_weights

    def create_state(self, index, weight):
        return tuple(zeros_like(weight) for _ in range(3 if self.centered else 1))

    def kernel(self, state):
        attrs = {"gamma1": self.gamma1, "epsilon": self.epsilon,
                 "clip_weights": -1.0 if self.clip_weights is None else self.clip_weights}
        if self.centered:
            return "rmspropalex_update", list(state), {**attrs, "gamma2": self.gamma2}
        return "rmsprop_update", list(state), attrs


@register
class AdaDelta(KernelOptimizer):
    """a = rho a + (1-rho) g^2; d = sqrt(b + epsilon) / sqrt(a + epsilon) g; b = rho b + (1-rho) d^2;
    weight -= lr d. The rate is 1 unless given."""

    def __init__(self, rho=0.90, epsilon=1e-5, learning_rate=1.0, **kwargs):
        super().__init__(learning_rate=_rate(learning_rate, 1.0, kwargs), **kwargs)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index, weight):
        return zeros_like(weight), zeros_like(weight)

    def kernel(self, state):
        return "adadelta_update", list(state), {"rho": self.rho, "epsilon": self.epsilon}


def _rate(given: float, default: float, kwargs: dict):
    """None where the rate was left at its default and a scheduler decides."""
    return None if kwargs.get("lr_scheduler") is not None and given == default else given
