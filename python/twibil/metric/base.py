# SPDX-License-Identifier: Apache-2.0
"""`EvalMetric` with its registry, metrics made of metrics, and metrics from functions."""
from __future__ import annotations

import numpy as onp

from .. import _core
from ..base import Registry, describe

_registry = Registry("metric")
alias = _registry.alias


def host(x) -> onp.ndarray:
    """An array or array-like as a NumPy array."""
    return x.asnumpy() if isinstance(x, _core.ndarray) else onp.asarray(x)


def pairs(labels, preds, name: str):
    """(label, prediction) pairs from two arrays or two lists of equal length, as NumPy arrays."""
    def as_list(x):
        return list(x) if isinstance(x, (list, tuple)) else [x]
    labels, preds = as_list(labels), as_list(preds)
    if len(labels) != len(preds):
        raise ValueError(f"{name}: as many labels as predictions are needed; got {len(labels)} and {len(preds)}")
    return [(host(label), host(pred)) for label, pred in zip(labels, preds)]


def check_label_shapes(labels, preds, wrap=False, shape=False):
    """The two as lists (`wrap`); ValueError where lengths (or shapes) differ."""
    got = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if got[0] != got[1]:
        raise ValueError(f"metric: labels and predictions must match; got {got[0]} and {got[1]}")
    if wrap:
        labels = [labels] if isinstance(labels, _core.ndarray) else labels
        preds = [preds] if isinstance(preds, _core.ndarray) else preds
    return labels, preds


class EvalMetric:
    """Base of metrics. Derive and write `update(labels, preds)`, which calls `_add(sum, count)`; `get` divides them.

    labels and preds: an array each, or lists of arrays of equal length. output_names, label_names select entries of the
    dicts given to `update_dict`. Local values are those since `reset_local`, global ones those since `reset`."""

    def __init__(self, name, output_names=None, label_names=None, **kwargs):
        self.name = str(name)
        self.output_names, self.label_names = output_names, label_names
        kwargs.pop("has_global_stats", None)
        self._kwargs = kwargs
        self.reset()

    def __str__(self):
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict:
        """Name and arguments."""
        return {**self._kwargs, "metric": type(self).__name__, "name": self.name, "output_names": self.output_names,
                "label_names": self.label_names}

    def update_dict(self, label: dict, pred: dict) -> None:
        """`update` from dicts by name."""
        preds = [pred[n] for n in self.output_names] if self.output_names is not None else list(pred.values())
        labels = [label[n] for n in self.label_names] if self.label_names is not None else list(label.values())
        self.update(labels, preds)

    def update(self, labels, preds) -> None:
        """Takes in a batch."""
        raise NotImplementedError(f"{type(self).__name__}.update must be written")

    def _add(self, total, count) -> None:
        self.sum_metric += float(total)
        self.num_inst += int(count)
        self.global_sum_metric += float(total)
        self.global_num_inst += int(count)

    def reset(self) -> None:
        """Forgets everything."""
        self.global_sum_metric, self.global_num_inst = 0.0, 0
        self.reset_local()

    def reset_local(self) -> None:
        """Forgets the local values."""
        self.sum_metric, self.num_inst = 0.0, 0

    def _value(self, total, count):
        """The metric from a sum and a count; nan without data."""
        return total / count if count else float("nan")

    def get(self):
        """(name, value), nan before the first update."""
        return self.name, self._value(self.sum_metric, self.num_inst)

    def get_global(self):
        """(name, value) since `reset`."""
        return self.name, self._value(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list:
        """(name, value) pairs as a list."""
        return _pairs(*self.get())

    def get_global_name_value(self) -> list:
        """Global (name, value) pairs as a list."""
        return _pairs(*self.get_global())


def _pairs(name, value) -> list:
    names = name if isinstance(name, list) else [name]
    values = value if isinstance(value, list) else [value]
    return list(zip(names, values))


def register(cls):
    """Class decorator: makes the metric known by its lower-case name."""
    if not (isinstance(cls, type) and issubclass(cls, EvalMetric)):
        raise TypeError(f"metric.register: a class derived from EvalMetric is needed; got {describe(cls)}")
    return _registry.register(cls)


def create(metric, *args, **kwargs):
    """A metric from a name ('acc'), an object, a function f(label, pred), or a list of these."""
    if isinstance(metric, (list, tuple)):
        return CompositeEvalMetric([create(m, *args, **kwargs) for m in metric])
    if callable(metric) and not isinstance(metric, (type, EvalMetric)):
        return CustomMetric(metric, *args, **kwargs)
    return _registry.create(metric, EvalMetric, *args, **kwargs)


@alias("composite")
@register
class CompositeEvalMetric(EvalMetric):
    """Several metrics updated together; `get` gives lists."""

    def __init__(self, metrics=None, name="composite", output_names=None, label_names=None):
        self.metrics = [create(m) for m in metrics or []]
        super().__init__(name, output_names, label_names)

    def add(self, metric) -> None:
        """Adds a metric."""
        self.metrics.append(create(metric))

    def get_metric(self, index):
        """A metric by number; IndexError out of range."""
        if not 0 <= index < len(self.metrics):
            raise IndexError(f"CompositeEvalMetric: index {index} is out of range for {len(self.metrics)} metrics")
        return self.metrics[index]

    def update_dict(self, label, pred):
        if self.label_names is not None:
            label = {k: v for k, v in label.items() if k in self.label_names}
        if self.output_names is not None:
            pred = {k: v for k, v in pred.items() if k in self.output_names}
        for m in self.metrics:
            m.update_dict(label, pred)

    def update(self, labels, preds):
        for m in self.metrics:
            m.update(labels, preds)

    def reset(self):
        for m in self.metrics:
            m.reset()

    def reset_local(self):
        for m in self.metrics:
            m.reset_local()

    def get(self):
        found = [p for m in self.metrics for p in m.get_name_value()]
        return [n for n, _ in found], [v for _, v in found]

    def get_global(self):
        found = [p for m in self.metrics for p in m.get_global_name_value()]
        return [n for n, _ in found], [v for _, v in found]


@register
class CustomMetric(EvalMetric):
    """A function feval(label, pred) on NumPy arrays that gives a value, or (sum, count), for each pair.

    allow_extra_outputs: more predictions than labels are fine, the first ones count."""

    def __init__(self, feval, name=None, allow_extra_outputs=False, output_names=None, label_names=None):
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            name = f"custom({name})" if "<" in name else name
        super().__init__(name, output_names, label_names)
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs

    def update(self, labels, preds):
        if self._allow_extra_outputs and isinstance(preds, (list, tuple)) and isinstance(labels, (list, tuple)):
            preds = preds[:len(labels)]
        for label, pred in pairs(labels, preds, self.name):
            value = self._feval(label, pred)
            self._add(*(value if isinstance(value, tuple) else (value, 1)))


def np(numpy_feval, name=None, allow_extra_outputs=False):
    """A `CustomMetric` from a function on NumPy arrays."""
    return CustomMetric(numpy_feval, name or numpy_feval.__name__, allow_extra_outputs)
