# SPDX-License-Identifier: Apache-2.0
"""Metrics on numbers: errors, correlation, distances, and the mean of a loss."""
from __future__ import annotations

import math

import numpy as onp

from .base import EvalMetric, alias, host, pairs, register


class _Errors(EvalMetric):
    """Mean of a function of label - prediction over all elements. ValueError where numbers of elements differ."""

    def __init__(self, name, output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, type(self).__name__):
            if label.size != pred.size:
                raise ValueError(f"{type(self).__name__}: labels and predictions must have equal sizes; got "
                                 f"{list(label.shape)} and {list(pred.shape)}")
            self._add(self._error(label.astype("float64").ravel() - pred.astype("float64").ravel()), label.size)

    def _error(self, d):
        return (d * d).sum()


@register
class MAE(_Errors):
    """Mean absolute error."""

    def __init__(self, name="mae", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def _error(self, d):
        return onp.abs(d).sum()


@register
class MSE(_Errors):
    """Mean squared error."""

    def __init__(self, name="mse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)


@register
class RMSE(_Errors):
    """Root of the mean squared error of all elements."""

    def __init__(self, name="rmse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def _value(self, total, count):
        return math.sqrt(total / count) if count else float("nan")


@alias("pearsonr")
@register
class PearsonCorrelation(EvalMetric):
    """Correlation of labels and predictions of equal shapes. average 'macro': mean of the batches' values, 'micro': the
    value of all elements together."""

    def __init__(self, name="pearsonr", output_names=None, label_names=None, average="macro"):
        if average not in ("macro", "micro"):
            raise ValueError(f"PearsonCorrelation: average must be 'macro' or 'micro'; got {average!r}")
        self.average = average
        super().__init__(name, output_names, label_names, average=average)

    def reset(self):
        self._everything: list = []
        super().reset()

    def reset_local(self):
        self._recent: list = []
        super().reset_local()

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, "PearsonCorrelation"):
            if label.shape != pred.shape:
                raise ValueError(f"PearsonCorrelation: equal shapes are needed; got {list(label.shape)} and "
                                 f"{list(pred.shape)}")
            pair = onp.stack([label.ravel(), pred.ravel()]).astype("float64")
            self._add(onp.corrcoef(pair)[0, 1], 1)
            if self.average == "micro":
                for moments in (self._recent, self._everything):
                    _merge(moments, pair)

    def get(self):
        return (self.name, _correlation(self._recent)) if self.average == "micro" else super().get()

    def get_global(self):
        return (self.name, _correlation(self._everything)) if self.average == "micro" else super().get_global()


def _merge(moments: list, pair) -> None:
    """Adds values to [count, means, 2 x 2 scatter], by the update of Chan, Golub and LeVeque."""
    count, mean = pair.shape[1], pair.mean(axis=1)
    scatter = (pair - mean[:, None]) @ (pair - mean[:, None]).T
    if moments:
        delta, total = mean - moments[1], moments[0] + count
        scatter = moments[2] + scatter + onp.outer(delta, delta) * (moments[0] * count / total)
        mean, count = moments[1] + delta * (count / total), total
    moments[:] = [count, mean, scatter]


def _correlation(moments: list) -> float:
    if not moments:
        return float("nan")
    s = moments[2]
    return float(s[0, 1] / math.sqrt(s[0, 0] * s[1, 1])) if s[0, 0] * s[1, 1] > 0 else float("nan")


@register
class Loss(EvalMetric):
    """Mean of the predictions themselves, which are losses; labels do not count."""

    def __init__(self, name="loss", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def update(self, _, preds):
        for pred in preds if isinstance(preds, (list, tuple)) else [preds]:
            pred = host(pred)
            self._add(pred.astype("float64").sum(), pred.size)


@register
class MeanPairwiseDistance(EvalMetric):
    """Mean p-norm of label - prediction over the last axis."""

    def __init__(self, name="mpd", output_names=None, label_names=None, p=2):
        super().__init__(name, output_names, label_names, p=p)
        self.p = p

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, "MeanPairwiseDistance"):
            d = (onp.abs(pred.astype("float64") - label) ** self.p).sum(axis=-1) ** (1.0 / self.p)
            self._add(d.sum(), d.size)


@alias("cos_sim")
@register
class MeanCosineSimilarity(EvalMetric):
    """Mean cosine of labels and predictions over the last axis."""

    def __init__(self, name="cos_sim", output_names=None, label_names=None, eps=1e-8):
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def update(self, labels, preds):
        for label, pred in pairs(labels, preds, "MeanCosineSimilarity"):
            label, pred = label.astype("float64"), pred.astype("float64")
            norms = onp.linalg.norm(label, axis=-1) * onp.linalg.norm(pred, axis=-1)
            cosine = (label * pred).sum(axis=-1) / onp.maximum(norms, self.eps)
            self._add(cosine.sum(), cosine.size)
