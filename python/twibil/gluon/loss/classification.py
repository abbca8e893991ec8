# SPDX-License-Identifier: Apache-2.0
"""Losses on classes and probabilities: cross entropies and divergence."""
from __future__ import annotations

from ... import np, npx
from .base import Loss, like


class SoftmaxCrossEntropyLoss(Loss):
    """-log of the predicted probability of the label.

    pred: scores with classes along `axis` (log-probabilities with `from_logits`). label: class numbers of pred's shape
    without `axis` (`sparse_label`), else probabilities of pred's shape. IndexError for a class out of range."""

    def __init__(self, axis=-1, sparse_label=True, from_logits=False, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._axis, self._sparse_label, self._from_logits = axis, sparse_label, from_logits

    def forward(self, pred, label, sample_weight=None):
        if not self._from_logits:
            pred = npx.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            loss = -npx.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -(pred * like(label, pred, "SoftmaxCrossEntropyLoss")).sum(axis=self._axis, keepdims=True)
        return self._mean(self._weigh(loss, sample_weight))


class SigmoidBinaryCrossEntropyLoss(Loss):
    """-(pos_weight * label * log p + (1 - label) * log(1 - p)), p = sigmoid(pred), or pred itself with
    `from_sigmoid`."""

    def __init__(self, from_sigmoid=False, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def forward(self, pred, label, sample_weight=None, pos_weight=None):
        label = like(label, pred, "SigmoidBinaryCrossEntropyLoss")
        if self._from_sigmoid:
            positive = np.log(pred + 1e-12) * label
            loss = -((positive if pos_weight is None else positive * pos_weight)
                     + np.log(1.0 - pred + 1e-12) * (1.0 - label))
        else:
            tail = npx.activation(-np.abs(pred), "softrelu")
            if pos_weight is None:
                loss = npx.relu(pred) - pred * label + tail
            else:
                loss = pred - pred * label + (1 + (pos_weight - 1) * label) * (tail + npx.relu(-pred))
        return self._mean(self._weigh(loss, sample_weight))


class KLDivLoss(Loss):
    """label * (log(label) - pred) with log-probabilities pred (scores without `from_logits`).

    The sum over all axes but the batch's, as MXNet 1.9.1 has it."""

    def __init__(self, from_logits=True, axis=-1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._axis = from_logits, axis

    def forward(self, pred, label, sample_weight=None):
        if not self._from_logits:
            pred = npx.log_softmax(pred, axis=self._axis)
        loss = self._weigh(label * (np.log(label + 1e-12) - pred), sample_weight)
        axes = self._others(loss)
        return loss.sum(axis=axes) if axes else loss


SoftmaxCELoss = SoftmaxCrossEntropyLoss
SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss
