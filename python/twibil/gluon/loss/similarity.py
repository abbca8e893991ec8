# SPDX-License-Identifier: Apache-2.0
"""Losses on pairs of vectors."""
from __future__ import annotations

from ... import np, npx
from .base import Loss, like
from .classification import KLDivLoss


def _norm(x):
    return np.sqrt((x * x).sum(axis=-1))


class CosineEmbeddingLoss(Loss):
    """1 - cos(input1, input2) for label 1, max(0, cos - margin) for label -1; shape (batch, 1)."""

    def __init__(self, weight=None, batch_axis=0, margin=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, input1, input2, label, sample_weight=None):
        input1 = like(input1, input2, "CosineEmbeddingLoss")
        cosine = (input1 * input2).sum(axis=-1) / np.maximum(_norm(input1) * _norm(input2), 1e-12)
        cosine, label = cosine.reshape(-1, 1), label.reshape(-1, 1)
        zero = np.zeros_like(cosine)
        loss = np.where(label == 1, 1 - cosine, zero)
        loss = loss + np.where(label == -1, np.maximum(cosine - self._margin, 0), zero)
        return self._weigh(loss, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: rows of x1 should be nearest to the same rows of x2, both (batch, features)."""

    def __init__(self, smoothing_parameter=0.3, weight=1.0, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def forward(self, x1, x2):
        if x1.shape != x2.shape or x1.ndim != 2 or x1.shape[0] < 2:
            raise ValueError("SDMLLoss: two arrays of equal shape (batch of at least 2, features) are needed; got "
                             f"{list(x1.shape)} and {list(x2.shape)}")
        n = x1.shape[0]
        gold = np.eye(n)
        labels = gold * (1 - self.smoothing_parameter) + (1 - gold) * (self.smoothing_parameter / (n - 1))
        distances = np.square(np.expand_dims(x1, 1) - np.expand_dims(x2, 0)).sum(axis=2)
        return self.kl_loss(npx.log_softmax(-distances, axis=1), labels)
