# SPDX-License-Identifier: Apache-2.0
"""Losses on numbers: squared, absolute, Huber, Poisson."""
from __future__ import annotations

import math

from ... import np
from .base import Loss, like


class L2Loss(Loss):
    """mean of weight / 2 * (label - pred)^2."""

    def __init__(self, weight=1.0, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)

    def forward(self, pred, label, sample_weight=None):
        loss = np.square(like(label, pred, "L2Loss") - pred)
        return self._mean(self._weigh(loss, sample_weight, (1.0 if self._weight is None else self._weight) / 2))


class L1Loss(Loss):
    """mean of |label - pred|."""

    def forward(self, pred, label, sample_weight=None):
        return self._mean(self._weigh(np.abs(like(label, pred, "L1Loss") - pred), sample_weight))


class HuberLoss(Loss):
    """mean of d - rho / 2 where d = |label - pred| exceeds rho, else d^2 / (2 rho)."""

    def __init__(self, rho=1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        if rho <= 0:
            raise ValueError(f"HuberLoss: rho must be positive; got {rho}")
        self._rho = rho

    def forward(self, pred, label, sample_weight=None):
        d = np.abs(like(label, pred, "HuberLoss") - pred)
        loss = np.where(d > self._rho, d - 0.5 * self._rho, (0.5 / self._rho) * np.square(d))
        return self._mean(self._weigh(loss, sample_weight))


class PoissonNLLLoss(Loss):
    """Mean over everything of exp(pred) - target * pred, or of pred - target * log(pred) without `from_logits`.

    compute_full adds Stirling's approximation of log(target!) where target > 1. The result has no axes."""

    def __init__(self, weight=None, from_logits=True, batch_axis=0, compute_full=False, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full = from_logits, compute_full

    def forward(self, pred, target, sample_weight=None, epsilon=1e-08):
        target = like(target, pred, "PoissonNLLLoss")
        loss = np.exp(pred) - target * pred if self._from_logits else pred - target * np.log(pred + epsilon)
        if self._compute_full:
            big = np.maximum(target, 1)
            stirling = target * np.log(big) - target + 0.5 * np.log(2 * math.pi * big)
            loss = loss + np.where(target > 1, stirling, np.zeros_like(stirling))
        return self._weigh(loss, sample_weight).mean()
