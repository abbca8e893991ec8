# SPDX-License-Identifier: Apache-2.0
"""`Optimizer`: rates, decays and update counts of parameters; and `KernelOptimizer`, whose formula is an operator."""
from __future__ import annotations

import warnings

from .. import _core
from ..base import Registry, describe, did_you_mean

_registry = Registry("optimizer")


class Optimizer:
    """Base of optimizers. Derive, write `create_state(index, weight)` and `update(index, weight, grad, state)`.

    rescale_grad, clip_gradient, wd: the gradient is multiplied, clipped to [-c, c], then `wd * weight` is added.
    learning_rate: 0.01 where neither it nor `lr_scheduler` is given; it replaces the scheduler's base rate.
    multi_precision: half-precision weights are updated through a float32 copy.
    param_dict: index -> Parameter, whose lr_mult and wd_mult count; param_idx2name: index -> name for `set_lr_mult`."""

    aggregate_num = 0

    def __init__(self, rescale_grad=1.0, param_idx2name=None, wd=0.0, clip_gradient=None, learning_rate=None,
                 lr_scheduler=None, sym=None, begin_num_update=0, multi_precision=False, param_dict=None, **unknown):
        if unknown:
            known = ["rescale_grad", "wd", "clip_gradient", "learning_rate", "lr_scheduler", "multi_precision"]
            name = next(iter(unknown))
            raise TypeError(f"{type(self).__name__}: {name!r} is not an argument.{did_you_mean(name, known)}")
        if learning_rate is not None and lr_scheduler is not None and lr_scheduler.base_lr != learning_rate:
            warnings.warn(f"{type(self).__name__}: learning_rate {learning_rate} replaces the scheduler's base_lr "
                          f"{lr_scheduler.base_lr}")
            lr_scheduler.base_lr = learning_rate
        self.lr = 0.01 if learning_rate is None and lr_scheduler is None else learning_rate
        self.rescale_grad, self.clip_gradient, self.wd = rescale_grad, clip_gradient, wd
        self.lr_scheduler = lr_scheduler
        self.multi_precision = multi_precision
        self.begin_num_update = self.num_update = begin_num_update
        self._index_update_count: dict = {}
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = dict(param_dict or {})
        self.lr_mult: dict = {}
        self.wd_mult: dict = {}
        self.set_wd_mult({})

    @staticmethod
    def register(cls):
        """Class decorator: makes the optimizer known by its lower-case name."""
        return register(cls)

    @staticmethod
    def create_optimizer(name, **kwargs):
        """An optimizer by name."""
        return create(name, **kwargs)

    @property
    def learning_rate(self) -> float:
        """The rate of the next update, before multipliers."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Sets the rate; ValueError where a scheduler decides it."""
        if self.lr_scheduler is not None:
            raise ValueError("set_learning_rate: the rate comes from lr_scheduler; change that, or create the "
                             "optimizer without one")
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: dict) -> None:
        """Rate multipliers by parameter name or index; 1 for others."""
        self.lr_mult = dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: dict) -> None:
        """Decay multipliers by parameter name or index. Where only names are known (no `param_dict`), parameters whose
        name ends neither in _weight nor in _gamma are not decayed unless named here."""
        self.wd_mult = {n: 0.0 for n in self.idx2name.values() if not n.endswith(("_weight", "_gamma"))}
        self.wd_mult.update(args_wd_mult)

    def _mult(self, index, table: dict, attribute: str) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], attribute)
        if index in table:
            return table[index]
        return table.get(self.idx2name.get(index), 1.0)

    def _get_lr(self, index) -> float:
        return self.learning_rate * self._mult(index, self.lr_mult, "lr_mult")

    def _get_wd(self, index) -> float:
        return self.wd * self._mult(index, self.wd_mult, "wd_mult")

    def _update_count(self, index) -> None:
        for i in index if isinstance(index, (list, tuple)) else [index]:
            count = self._index_update_count.get(i, self.begin_num_update) + 1
            self._index_update_count[i] = count
            self.num_update = max(count, self.num_update)

    def create_state(self, index, weight):
        """The state kept for a weight: None, an array or a tuple of these. Called once a weight."""
        return None

    def create_state_multi_precision(self, index, weight):
        """The state for a weight, with a float32 copy of a half-precision weight where `multi_precision` is on."""
        if str(weight.dtype) in ("float16", "bfloat16"):
            if self.multi_precision:
                master = weight.astype("float32")
                return (master, self.create_state(index, master))
            warnings.warn(f"{type(self).__name__}: accumulating in {weight.dtype} loses small updates; "
                          "multi_precision=True keeps a float32 copy")
        return self.create_state(index, weight)

    def update(self, index, weight, grad, state) -> None:
        """Changes `weight` and `state` in place by the gradient `grad`."""
        raise NotImplementedError(f"{type(self).__name__}.update must be written")

    def update_multi_precision(self, index, weight, grad, state) -> None:
        """As `update`, through the float32 copy where there is one."""
        if isinstance(index, (list, tuple)):
            if not any(self._has_master(w) for w in weight):
                return self.update(index, weight, grad, state)
            for one in zip(index, weight, grad, state):
                self.update_multi_precision(*one)
        elif self._has_master(weight):
            master, inner = state
            self.update(index, master, grad.astype("float32"), inner)
            weight[...] = master
        else:
            self.update(index, weight, grad, state)

    def _has_master(self, weight) -> bool:
        return self.multi_precision and str(weight.dtype) in ("float16", "bfloat16")


class KernelOptimizer(Optimizer):
    """An optimizer whose formula is a registered operator that changes weight and states in place.

    `kernel(state)` of a subclass gives (operator name, list of state arrays, attributes); many weights go in one
    call."""

    aggregate_num = 1 << 30

    def kernel(self, state) -> tuple:
        """Operator, state arrays and attributes for a state made by `create_state`."""
        raise NotImplementedError

    def rate(self, index) -> float:
        """The rate passed to the operator; the update was counted already."""
        return self._get_lr(index)

    def update(self, index, weight, grad, state) -> None:
        """One weight, or lists of indices, weights, gradients and states."""
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = [index], [weight], [grad], [state]
        self._update_count(index)
        common = {"rescale_grad": float(self.rescale_grad),
                  "clip_gradient": -1.0 if self.clip_gradient is None else float(self.clip_gradient)}
        groups: dict = {}
        for i, w, g, s in zip(index, weight, grad, state):
            name, arrays, attrs = self.kernel(s)
            group = groups.setdefault(name, ([], [], [], [], [], {**attrs, **common}))
            for values, value in zip(group, (w, g, arrays, self.rate(i), self._get_wd(i))):
                values.append(value)
        for name, (weights, grads, states, lrs, wds, attrs) in groups.items():
            _core.multi_update(name, weights, grads, states, lrs, wds, **attrs)


def zeros_like(weight):
    """A zero state of a weight's shape, dtype and device."""
    from .. import np
    return np.zeros_like(weight)


def register(cls):
    """Class decorator: makes the optimizer known by its lower-case name."""
    if not (isinstance(cls, type) and issubclass(cls, Optimizer)):
        raise TypeError(f"optimizer.register: a class derived from Optimizer is needed; got {describe(cls)}")
    return _registry.register(cls)


def create(name, **kwargs) -> Optimizer:
    """An optimizer from a name ('sgd'), a class or an object."""
    return _registry.create(name, Optimizer, **kwargs)
