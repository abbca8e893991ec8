# SPDX-License-Identifier: Apache-2.0
"""Metrics on two classes, from the table of right and wrong predictions."""
from __future__ import annotations

import math

import numpy as onp

from .base import EvalMetric, pairs, register


def table(label, pred, name: str, threshold: float = 0.5) -> onp.ndarray:
    """[true positives, false positives, false negatives, true negatives] for labels 0 and 1.

    Predictions: (batch, 2) scores whose larger counts, else probabilities of class 1 of the labels' size."""
    label = label.astype("int64").ravel()
    if pred.ndim == 2 and pred.shape[1] == 2 and pred.shape[0] == label.size:
        positive = pred.argmax(axis=1) == 1
    elif pred.size == label.size:
        positive = pred.ravel() > threshold
    else:
        raise ValueError(f"{name}: predictions (batch, 2), or one an example, are needed; got {list(pred.shape)} for "
                         f"{label.size} labels")
    if label.size and not onp.isin(label, (0, 1)).all():
        raise ValueError(f"{name}: labels must be 0 or 1; got {sorted(set(label.tolist()))[:6]}")
    true = label == 1
    return onp.array([(positive & true).sum(), (positive & ~true).sum(), (~positive & true).sum(),
                      (~positive & ~true).sum()], dtype="float64")


class _Table(EvalMetric):
    """A metric of the table. average 'macro': the mean of the batches' values, as MXNet 1 has it; 'micro': the value
    of all examples together."""

    def __init__(self, name, output_names=None, label_names=None, average="macro", threshold=0.5):
        if average not in ("macro", "micro"):
            raise ValueError(f"{type(self).__name__}: average must be 'macro' or 'micro'; got {average!r}")
        self.average, self.threshold = average, threshold
        super().__init__(name, output_names, label_names, average=average)

    def reset(self):
        self._global = onp.zeros(4)
        super().reset()

    def reset_local(self):
        self._local = onp.zeros(4)
        super().reset_local()

    def update(self, labels, preds):
        batch = sum((table(label, pred, type(self).__name__, self.threshold)
                     for label, pred in pairs(labels, preds, type(self).__name__)), onp.zeros(4))
        self._local += batch
        self._global += batch
        self._add(self._score(batch), 1)

    def _score(self, t) -> float:
        raise NotImplementedError

    def _micro(self, t):
        return self._score(t) if t.sum() else float("nan")

    def get(self):
        return (self.name, self._micro(self._local)) if self.average == "micro" else super().get()

    def get_global(self):
        return (self.name, self._micro(self._global)) if self.average == "micro" else super().get_global()


@register
class Fbeta(_Table):
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall); 0 where both are 0."""

    def __init__(self, name="fbeta", output_names=None, label_names=None, average="macro", beta=1.0, threshold=0.5):
        self.beta = beta
        super().__init__(name, output_names, label_names, average, threshold)

    def _score(self, t):
        b = self.beta ** 2
        below = (1 + b) * t[0] + t[1] + b * t[2]
        return (1 + b) * t[0] / below if below else 0.0


@register
class F1(Fbeta):
    """Harmonic mean of precision and recall."""

    def __init__(self, name="f1", output_names=None, label_names=None, average="macro", threshold=0.5):
        super().__init__(name, output_names, label_names, average, 1.0, threshold)


@register
class MCC(_Table):
    """Matthews' correlation of predictions and labels: -1 to 1, 0 for chance."""

    def __init__(self, name="mcc", output_names=None, label_names=None, average="macro", threshold=0.5):
        super().__init__(name, output_names, label_names, average, threshold)

    def _score(self, t):
        tp, fp, fn, tn = t
        product = 1.0
        for term in (tp + fp, tp + fn, tn + fp, tn + fn):
            product *= term or 1.0
        return (tp * tn - fp * fn) / math.sqrt(product)


@register
class BinaryAccuracy(EvalMetric):
    """Share of right predictions, where probabilities above `threshold` mean class 1."""

    def __init__(self, name="binary_accuracy", output_names=None, label_names=None, threshold=0.5):
        super().__init__(name, output_names, label_names, threshold=threshold)
        self.threshold = threshold

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, "BinaryAccuracy"):
            if label.size != pred.size:
                raise ValueError(f"BinaryAccuracy: as many labels as predictions are needed; got {label.size} "
                                 f"and {pred.size}")
            self._add(((pred.ravel() > self.threshold) == (label.ravel() == 1)).sum(), label.size)
