# SPDX-License-Identifier: Apache-2.0
"""Losses on margins: hinge, squared hinge, logistic, triplet."""
from __future__ import annotations

from ... import np, npx
from .base import Loss, like


class HingeLoss(Loss):
    """mean of max(0, margin - pred * label), labels -1 and 1."""

    def __init__(self, margin=1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, pred, label, sample_weight=None):
        loss = npx.relu(self._margin - pred * like(label, pred, "HingeLoss"))
        return self._mean(self._weigh(loss, sample_weight))


class SquaredHingeLoss(HingeLoss):
    """mean of max(0, margin - pred * label)^2, labels -1 and 1."""

    def forward(self, pred, label, sample_weight=None):
        loss = np.square(npx.relu(self._margin - pred * like(label, pred, "SquaredHingeLoss")))
        return self._mean(self._weigh(loss, sample_weight))


class LogisticLoss(Loss):
    """mean of log(1 + exp(-pred * label)); labels -1 and 1 ('signed'), or 0 and 1 ('binary')."""

    def __init__(self, weight=None, batch_axis=0, label_format="signed", **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise ValueError(f"LogisticLoss: label_format must be 'signed' or 'binary'; got {label_format!r}")
        self._label_format = label_format

    def forward(self, pred, label, sample_weight=None):
        label = like(label, pred, "LogisticLoss")
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = npx.relu(pred) - pred * label + npx.activation(-np.abs(pred), "softrelu")
        return self._mean(self._weigh(loss, sample_weight))


class TripletLoss(Loss):
    """max(0, sum (positive - pred)^2 - sum (negative - pred)^2 + margin), one value an example."""

    def __init__(self, margin=1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def forward(self, pred, positive, negative):
        positive, negative = like(positive, pred, "TripletLoss"), like(negative, pred, "TripletLoss")
        gap = np.square(positive - pred) - np.square(negative - pred)
        axes = self._others(gap)
        return self._weigh(npx.relu((gap.sum(axis=axes) if axes else gap) + self._margin))
