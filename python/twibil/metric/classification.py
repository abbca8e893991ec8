# SPDX-License-Identifier: Apache-2.0
"""Metrics on class predictions: accuracies and the likelihood of the true class."""
from __future__ import annotations

import math

import numpy as onp

from .base import EvalMetric, alias, pairs, register


@alias("acc")
@register
class Accuracy(EvalMetric):
    """Share of right predictions. Predictions are class numbers of the labels' shape, or scores whose largest along
    `axis` counts. ValueError where the numbers of elements differ."""

    def __init__(self, axis=1, name="accuracy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, "Accuracy"):
            if pred.shape != label.shape and pred.ndim > self.axis:
                pred = pred.argmax(axis=self.axis)
            pred, label = pred.astype("int64").ravel(), label.astype("int64").ravel()
            if pred.size != label.size:
                raise ValueError(f"Accuracy: as many labels as predictions are needed; got {label.size} "
                                 f"and {pred.size}")
            self._add((pred == label).sum(), label.size)


@alias("top_k_accuracy", "top_k_acc")
@register
class TopKAccuracy(EvalMetric):
    """Share of examples whose label is among the `top_k` largest scores; predictions (batch, classes)."""

    def __init__(self, top_k=1, name="top_k_accuracy", output_names=None, label_names=None):
        if top_k <= 1:
            raise ValueError(f"TopKAccuracy: top_k must be above 1 (Accuracy is top 1); got {top_k}")
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k = top_k

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, "TopKAccuracy"):
            if pred.ndim != 2 or label.size != pred.shape[0]:
                raise ValueError("TopKAccuracy: predictions (batch, classes) and one label an example are needed; got "
                                 f"{list(pred.shape)} and {list(label.shape)}")
            k = min(self.top_k, pred.shape[1])
            best = onp.argpartition(pred.astype("float32"), -k)[:, -k:]
            self._add((best == label.astype("int64").reshape(-1, 1)).sum(), label.size)


def _probabilities(label, pred, name):
    """The predicted probability of each example's label; predictions (batch, classes)."""
    label = label.ravel().astype("int64")
    if pred.ndim != 2 or label.shape[0] != pred.shape[0]:
        raise ValueError(f"{name}: predictions (batch, classes) and one label an example are needed; got "
                         f"{list(pred.shape)} and {list(label.shape)}")
    if label.size and (label.min() < 0 or label.max() >= pred.shape[1]):
        raise IndexError(f"{name}: labels must be from 0 to {pred.shape[1] - 1}; got {label.min()} to {label.max()}")
    return pred[onp.arange(label.shape[0]), label].astype("float64")


@alias("ce", "cross-entropy")
@register
class CrossEntropy(EvalMetric):
    """Mean of -log(probability of the label + eps); predictions (batch, classes)."""

    def __init__(self, eps=1e-12, name="cross-entropy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, self.name):
            p = _probabilities(label, pred, self.name)
            self._add(-onp.log(p + self.eps).sum(), p.size)


@alias("nll_loss", "nll-loss")
@register
class NegativeLogLikelihood(CrossEntropy):
    """The same number as `CrossEntropy` under its other name."""

    def __init__(self, eps=1e-12, name="nll-loss", output_names=None, label_names=None):
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """exp of the mean of -log(probability of the label), where labels equal to `ignore_label` do not count.

    axis: the classes' axis in predictions."""

    def __init__(self, ignore_label=None, axis=-1, name="perplexity", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, axis=axis)
        self.ignore_label, self.axis = ignore_label, axis

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, "Perplexity"):
            pred = onp.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
            label = label.ravel().astype("int64")
            keep = label != self.ignore_label if self.ignore_label is not None else slice(None)
            p = _probabilities(label[keep], pred[keep] if label.size == pred.shape[0] else pred, "Perplexity")
            self._add(-onp.log(onp.maximum(p, 1e-10)).sum(), p.size)

    def _value(self, total, count):
        return math.exp(total / count) if count else float("nan")
