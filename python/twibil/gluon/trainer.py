# SPDX-License-Identifier: Apache-2.0
"""`Trainer`: applies an optimizer to parameters after each backward pass."""
from __future__ import annotations

import json
import warnings

from .. import autograd, optimizer as opt
from ..base import describe
from ..serialization import load_params, save_params
from ..optimizer.updater import Updater, flatten_state, restore_state
from .parameter import Parameter

_KVSTORES = ("local", "device", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device", "nccl")


class Trainer:
    """Updates `params` (a dict or list of Parameters) with an optimizer (a name or an object).

    optimizer_params: arguments of a named optimizer ('learning_rate', 'momentum', 'wd', ...). kvstore: gradients of
    several devices of this machine are summed whatever its name; a distributed one raises NotImplementedError.
    Raises ValueError for no parameters, TypeError for things that are no Parameters."""

    def __init__(self, params, optimizer, optimizer_params=None, kvstore="device", compression_params=None,
                 update_on_kvstore=None):
        named = params if isinstance(params, dict) else None
        if not isinstance(params, (dict, list, tuple)):
            raise TypeError(f"Trainer: params must be a dict or a list of Parameters; got {describe(params)}")
        self._params = list(params.values()) if isinstance(params, dict) else list(params)
        for p in self._params:
            if not isinstance(p, Parameter):
                raise TypeError(f"Trainer: params must contain Parameters only; got {describe(p)}")
        if not self._params:
            raise ValueError("Trainer: there are no parameters to train; the block has none")
        if compression_params is not None:
            raise NotImplementedError("Trainer: gradient compression does not exist in this version")
        if isinstance(kvstore, str) and kvstore not in _KVSTORES:
            raise NotImplementedError(f"Trainer: kvstore {kvstore!r} does not exist in this version; "
                                      f"known are {', '.join(_KVSTORES)} and None")
        self._names = list(named) if named is not None else [f"{i}:{p.name}" for i, p in enumerate(self._params)]
        self._init_optimizer(optimizer, dict(optimizer_params or {}))
        self._scale = self._optimizer.rescale_grad
        self._updater = Updater(self._optimizer)
        self._written: dict = {}  # the gradient that the last step of a parameter used, and how often it was written
        self._warned: set = set()

    def _init_optimizer(self, optimizer, arguments: dict) -> None:
        table = dict(enumerate(self._params))
        if isinstance(optimizer, opt.Optimizer):
            if arguments:
                raise ValueError(f"Trainer: optimizer_params must be empty with an optimizer object; got {arguments}")
            self._optimizer = optimizer
            self._optimizer.param_dict = table
        else:
            self._optimizer = opt.create(optimizer, param_dict=table, **arguments)

    @property
    def optimizer(self) -> opt.Optimizer:
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The rate of the next step, before multipliers."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Sets the rate; ValueError where a scheduler decides it."""
        self._optimizer.set_learning_rate(lr)

    def step(self, batch_size, ignore_stale_grad=False) -> None:
        """One update: gradients of all devices are summed, divided by `batch_size`, and given to the optimizer.

        A parameter whose gradient was not computed since the last step keeps its value with `ignore_stale_grad`; else its
        old gradient is used again, with a warning. ValueError for a batch size that is not positive."""
        self._rescale(batch_size)
        self.allreduce_grads()
        self._update(ignore_stale_grad)

    def allreduce_grads(self) -> None:
        """Makes each device's gradients the sum over devices; nothing to do for one device."""
        for p in self._params:
            if p.grad_req == "null" or p._single is not None:
                continue
            grads = p.list_grad()
            with autograd.pause():
                total = grads[0].copy()
                for g in grads[1:]:
                    total += g.as_in_ctx(total.ctx)
                for g in grads:
                    g[...] = total.as_in_ctx(g.ctx)

    def update(self, batch_size, ignore_stale_grad=False) -> None:
        """The update without summing over devices, for use after `allreduce_grads()`."""
        self._rescale(batch_size)
        self._update(ignore_stale_grad)

    def _rescale(self, batch_size) -> None:
        if not batch_size > 0:
            raise ValueError(f"Trainer: batch_size must be positive; got {batch_size}")
        self._optimizer.rescale_grad = self._scale / batch_size

    def _update(self, ignore_stale_grad: bool) -> None:
        index, weights, grads = [], [], []
        for i, p in enumerate(self._params):
            if p.grad_req == "null":
                continue
            weight = p._single if p._single is not None else p.list_data()[0]
            grad = weight.grad
            if self._written.get(i) == (id(grad), grad._version) and self._stale(p, ignore_stale_grad):
                continue
            index.append(i), weights.append(weight), grads.append(grad)
        with autograd.pause():
            self._updater(index, grads, weights)
            for i, weight, grad in zip(index, weights, grads):
                self._written[i] = (id(grad), grad._version)
                if self._params[i]._single is None:
                    for other in self._params[i].list_data()[1:]:
                        other[...] = weight.as_in_ctx(other.ctx)

    def _stale(self, parameter, ignore: bool) -> bool:
        """Whether to leave out a parameter whose gradient nobody wrote since the last step; warns once if not."""
        if not ignore and id(parameter) not in self._warned:
            self._warned.add(id(parameter))
            warnings.warn(f"Trainer: the gradient of {parameter.name!r} was not computed since the last step, which used "
                          "it already; ignore_stale_grad=True leaves such parameters as they are", stacklevel=4)
        return ignore

    def save_states(self, fname) -> None:
        """Writes the optimizer's states, counts and numbers to a file, atomically; `load_states` continues from them
        with the same bits."""
        arrays, states = [], {}
        for i, state in self._updater.states.items():
            states[str(i)] = flatten_state(state, arrays)
        o = self._optimizer
        info = {"format": 1, "optimizer": type(o).__name__, "numbers": _numbers(o), "names": self._names,
                "counts": {str(i): n for i, n in o._index_update_count.items()}, "states": states,
                "scheduler": None if o.lr_scheduler is None else
                {"kind": type(o.lr_scheduler).__name__, "numbers": _numbers(o.lr_scheduler)}}
        from .. import np
        text = np.array(list(json.dumps(info).encode()), dtype="uint8")
        save_params(fname, {"info": text, **{f"state.{i}": a for i, a in enumerate(arrays)}})

    def load_states(self, fname) -> None:
        """Reads what `save_states` wrote. Nothing changes unless everything fits.

        Raises ValueError for another optimizer, scheduler or other parameters, OSError for files."""
        loaded = load_params(fname)
        if not isinstance(loaded, dict) or "info" not in loaded:
            raise ValueError(f"{fname}: not a file of optimizer states; MXNet's own are pickles, which are not read")
        info = json.loads(bytes(loaded["info"].asnumpy().tolist()).decode())
        o, schedule = self._optimizer, self._optimizer.lr_scheduler
        kind = None if schedule is None else type(schedule).__name__
        saved_kind = None if info["scheduler"] is None else info["scheduler"]["kind"]
        for what, saved, mine in (("optimizer", info["optimizer"], type(o).__name__), ("scheduler", saved_kind, kind),
                                  ("number of parameters", len(info["names"]), len(self._names))):
            if saved != mine:
                raise ValueError(f"{fname}: {what} must be {saved}, as saved; this Trainer has {mine}")
        arrays = [loaded[f"state.{i}"] for i in range(len(loaded) - 1)]
        states = {int(i): restore_state(s, arrays) for i, s in info["states"].items()}
        for i, state in states.items():
            self._check_state(fname, i, state)
        self._updater.states = states
        o._index_update_count = {int(i): n for i, n in info["counts"].items()}
        vars(o).update(info["numbers"])
        if schedule is not None:
            vars(schedule).update(info["scheduler"]["numbers"])

    def _check_state(self, fname, i: int, state) -> None:
        """ValueError where an array of a state has not its parameter's shape."""
        for part in state if isinstance(state, tuple) else [state]:
            if isinstance(part, tuple):
                self._check_state(fname, i, part)
            elif part is not None and self._params[i].shape != part.shape:
                raise ValueError(f"{fname}: the state of {self._names[i]!r} has shape {list(part.shape)}; the "
                                 f"parameter has {list(self._params[i].shape)}")


def _numbers(thing) -> dict:
    """The attributes that are plain numbers, text, None or lists of numbers."""
    def plain(v):
        return v is None or isinstance(v, (bool, int, float, str)) or (
            isinstance(v, list) and all(isinstance(x, (int, float)) for x in v))
    return {k: v for k, v in vars(thing).items() if plain(v)}
