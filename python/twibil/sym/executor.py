# SPDX-License-Identifier: Apache-2.0
"""`Executor`: a symbol bound to arrays, run again and again."""
from __future__ import annotations

from .. import _core, autograd
from ..base import did_you_mean
from ..np import zeros
from .compiled import kept_share


class Executor:
    """A compiled symbol with the arrays that it reads and writes. Made by `Symbol.bind` and `Symbol.simple_bind`."""

    def __init__(self, symbol, ctx, arguments: dict, gradients: dict, requests: dict, auxiliary: dict):
        self._symbol, self._ctx = symbol, ctx
        self.arg_dict, self.grad_dict, self.aux_dict = arguments, gradients, auxiliary
        self._requests = requests
        self._inputs = symbol.list_inputs()
        self._compiled = _core.compile(symbol, self._inputs, (), ())
        self._compiled.keep(kept_share(None))  # MXNET_BACKWARD_DO_MIRROR
        self._watching = None  # the graph with all nodes as outputs, while there is a monitor
        self._monitor, self._monitor_inputs = None, False
        self.outputs: list = []
        self._recorded = None  # variables, gradient arrays and outputs of the last forward in training

    # ---- making ----

    @classmethod
    def _bound(cls, symbol, ctx, args, args_grad, grad_req, aux_states):
        names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
        arguments = _by_name("args", names, args, needed=True)
        gradients = _by_name("args_grad", names, args_grad, needed=False)
        requests = _requests(names, grad_req)
        auxiliary = _by_name("aux_states", states, aux_states, needed=True)
        for name, array in gradients.items():
            if array.shape != arguments[name].shape:
                raise ValueError(f"bind: the gradient of {name} must have shape {arguments[name].shape}; got {array.shape}")
        for name in names:
            if name not in gradients:
                requests[name] = "null"
        return cls(symbol, ctx, arguments, gradients, requests, auxiliary)

    @classmethod
    def _with_new_arrays(cls, symbol, ctx, grad_req, type_dict, shared_exec, shared_buffer, shapes):
        names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
        argument_shapes, _, state_shapes = symbol._infer_shapes((), symbol._given((), shapes, "simple_bind"), True,
                                                                type_dict)
        missing = [n for n, s in zip(names + states, argument_shapes + state_shapes) if s is None or -1 in s]
        if missing:
            raise ValueError(f"simple_bind: the shapes of {', '.join(missing[:10])} do not follow from the given ones; "
                             "give them")
        types = symbol._infer_types((), type_dict or {})
        requests = _requests(names, grad_req)
        shared = {} if shared_exec is None else {**shared_exec.arg_dict, **shared_exec.aux_dict}
        shared.update(shared_buffer or {})

        def array(name, shape, dtype):
            given = shared.get(name)
            if given is not None and given.shape == tuple(shape) and given.dtype == dtype:
                return given
            made = zeros(shape, dtype=dtype)
            if shared_buffer is not None:
                shared_buffer[name] = made
            return made
        arguments = {n: array(n, s, t) for n, s, t in zip(names, argument_shapes, types[0])}
        auxiliary = {n: array(n, s, t) for n, s, t in zip(states, state_shapes, types[2])}
        gradients = {n: zeros(a.shape, dtype=a.dtype) for n, a in arguments.items() if requests[n] != "null"}
        return cls(symbol, ctx, arguments, gradients, requests, auxiliary)

    # ---- running ----

    def forward(self, is_train: bool = False, **kwargs):
        """Runs the graph; the outputs, as a list. kwargs: arrays that are copied into arguments first, by name.

        is_train: in training mode, and so that `backward` can follow. TypeError for a name that is no argument,
        ValueError for an array of another shape."""
        for name, value in kwargs.items():
            if name not in self.arg_dict:
                raise TypeError(f"forward: there is no argument {name!r}{did_you_mean(name, list(self.arg_dict))}")
            value = value if isinstance(value, _core.ndarray) else _core.array(value)
            target = self.arg_dict[name]
            if value.shape != target.shape:
                raise ValueError(f"forward: argument {name} must have shape {target.shape}; got {value.shape}. Use "
                                 "reshape() for others")
            if value is not target:
                target[...] = value
        given = {**self.arg_dict, **self.aux_dict}
        wanted = [n for n, r in self._requests.items() if r != "null"] if is_train else []
        variables = {n: given[n].detach() for n in wanted}
        if wanted:
            autograd.mark_variables([variables[n] for n in wanted], [self.grad_dict[n] for n in wanted],
                                    [self._requests[n] for n in wanted])
        given.update(variables)
        with autograd.record(train_mode=True) if is_train else autograd.pause(train_mode=False):
            outputs = self._run([given[n] for n in self._inputs])
        self._recorded = (outputs, bool(wanted)) if is_train else None
        self.outputs = [y.detach() for y in outputs] if is_train else outputs
        return self.outputs

    def backward(self, out_grads=None, is_train: bool = True):
        """Computes the gradients into `grad_arrays`. out_grads: gradients of the outputs (an array, a list or a
        dictionary by output name); None: ones. RuntimeError before a forward(is_train=True)."""
        if self._recorded is None:
            raise RuntimeError("backward: call forward(is_train=True) first")
        outputs, any_wanted = self._recorded
        if not any_wanted:
            return
        if isinstance(out_grads, dict):
            out_grads = [out_grads.get(n) for n in self._symbol.list_outputs()]
        elif isinstance(out_grads, _core.ndarray):
            out_grads = [out_grads]
        if out_grads is not None and len(out_grads) != len(outputs):
            raise ValueError(f"backward: there must be a gradient for each of the {len(outputs)} outputs; got "
                             f"{len(out_grads)}")
        pairs = [(y, None if out_grads is None else out_grads[i]) for i, y in enumerate(outputs)
                 if _core.is_recorded(y)]  # others do not depend on what wants a gradient
        if not pairs:
            return
        autograd.backward([y for y, _ in pairs], None if out_grads is None else [g for _, g in pairs],
                          retain_graph=True, train_mode=is_train)

    def _run(self, arrays):
        if self._monitor is None:
            return self._compiled.call(*arrays)
        internals = self._symbol.get_internals()
        if self._watching is None:
            from .symbol import Group
            self._watching = _core.compile(Group([internals, self._symbol]), self._inputs, (), ())
        values = self._watching.call(*arrays)
        inputs = set(self._inputs)
        for name, value in zip(internals.list_outputs(), values):
            if name not in inputs or self._monitor_inputs:
                self._monitor(name, value)
        return values[len(internals):]

    def set_monitor_callback(self, callback, monitor_all: bool = False):
        """Calls `callback(name, array)` for the outputs of all nodes in each `forward`; None ends it. monitor_all: for
        the inputs too."""
        self._monitor, self._monitor_inputs = callback, monitor_all

    # ---- arrays ----

    arg_arrays = property(lambda self: [self.arg_dict[n] for n in self._symbol.list_arguments()])
    grad_arrays = property(lambda self: [self.grad_dict.get(n) for n in self._symbol.list_arguments()])
    aux_arrays = property(lambda self: [self.aux_dict[n] for n in self._symbol.list_auxiliary_states()])

    @property
    def output_dict(self) -> dict:
        """The outputs of the last `forward` by name."""
        return dict(zip(self._symbol.list_outputs(), self.outputs))

    def copy_params_from(self, arg_params, aux_params=None, allow_extra_params: bool = False):
        """Copies arrays into the arguments and auxiliary states of their names. ValueError for names that there are
        not, unless they are allowed, and for other shapes."""
        for target, given, what in ((self.arg_dict, arg_params, "argument"),
                                    (self.aux_dict, aux_params or {}, "auxiliary state")):
            for name, value in given.items():
                if name not in target:
                    if allow_extra_params:
                        continue
                    raise ValueError(f"copy_params_from: there is no {what} {name!r}{did_you_mean(name, list(target))}")
                if value.shape != target[name].shape:
                    raise ValueError(f"copy_params_from: {name} must have shape {target[name].shape}; got {value.shape}")
                target[name][...] = value

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs):
        """An executor for other shapes of some arguments; arrays whose shape stays are the same ones.

        ValueError where the shape of an argument that was not given changes, unless partial_shaping is true, and
        where an array grows, unless allow_up_sizing is true."""
        shapes, _, states = self._symbol._infer_shapes((), self._symbol._given((), kwargs, "reshape"), True)
        made = []
        for names, arrays, found in ((self._symbol.list_arguments(), self.arg_dict, shapes),
                                     (self._symbol.list_auxiliary_states(), self.aux_dict, states)):
            part = {}
            for name, shape in zip(names, found):
                old = arrays[name]
                if shape is None or old.shape == shape:
                    part[name] = old
                    continue
                if name not in kwargs and not partial_shaping:
                    raise ValueError(f"reshape: the shape of {name} changes from {old.shape} to {shape}; say "
                                     "partial_shaping=True if that is meant")
                new = zeros(shape, dtype=old.dtype)
                if new.size > old.size and not allow_up_sizing:
                    raise ValueError(f"reshape: {name} grows from {old.shape} to {shape}; say allow_up_sizing=True if "
                                     "that is meant")
                part[name] = new
            made.append(part)
        gradients = {n: g if g.shape == made[0][n].shape else zeros(made[0][n].shape, dtype=g.dtype)
                     for n, g in self.grad_dict.items()}
        return Executor(self._symbol, self._ctx, made[0], gradients, dict(self._requests), made[1])

    def debug_str(self) -> str:
        """The nodes of the graph as text."""
        return self._symbol.debug_str()

    def __repr__(self):
        return f"<Executor of {self._symbol!r} with {len(self.arg_dict)} arguments>"


def _by_name(what: str, names: list, given, needed: bool) -> dict:
    """Arrays by name from a list or a dictionary; None: there are none."""
    if given is None:
        given = {}
    elif isinstance(given, _core.ndarray):
        given = [given]
    if isinstance(given, dict):
        arrays = {n: given[n] for n in names if given.get(n) is not None}
    else:
        if len(given) != len(names):
            raise ValueError(f"bind: {what} must hold {len(names)} arrays ({', '.join(names[:10])}); got {len(given)}")
        arrays = {n: a for n, a in zip(names, given) if a is not None}
    missing = [n for n in names if n not in arrays] if needed else []
    if missing:
        raise ValueError(f"bind: {what} lacks {', '.join(missing[:10])}")
    for name, array in arrays.items():
        if not isinstance(array, _core.ndarray):
            raise TypeError(f"bind: {what} must hold arrays; {name} is a {type(array).__name__}")
    return arrays


def _requests(names: list, given) -> dict:
    if isinstance(given, str):
        requests = dict.fromkeys(names, given)
    elif isinstance(given, dict):
        requests = {n: given.get(n, "null") for n in names}
    else:
        if len(given) != len(names):
            raise ValueError(f"bind: grad_req must hold {len(names)} words; got {len(given)}")
        requests = dict(zip(names, given))
    for name, request in requests.items():
        if request not in ("write", "add", "null"):
            raise ValueError(f"bind: grad_req of {name} must be 'write', 'add' or 'null'; got {request!r}")
    return requests
