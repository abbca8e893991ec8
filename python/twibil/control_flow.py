# SPDX-License-Identifier: Apache-2.0
"""`foreach`, `while_loop` and `cond`: loops and branches that run eagerly, inside traces, and as parts of symbols, with
gradients in each way."""
from __future__ import annotations

from typing import Any, Callable

from . import _core
from .base import describe
from .sym.names import next_name
from .sym.symbol import Group, Symbol, Variable


__all__ = ["foreach", "while_loop", "cond"]
_LONGEST_UNROLLED = 64  # steps of a traced foreach that become nodes of their own, and can be fused


def _flatten(tree: Any, who: str, found: list) -> list:
    """Arrays and symbols of nested lists and tuples; TypeError for anything else."""
    if isinstance(tree, (_core.ndarray, Symbol)):
        found.append(tree)
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            _flatten(item, who, found)
    else:
        raise TypeError(f"{who} must be arrays, symbols or nested lists of them; got {describe(tree)}")
    return found


def _regroup(tree: Any, leaves) -> Any:
    """`tree` with its arrays or symbols replaced by the next of `leaves`."""
    if isinstance(tree, (list, tuple)):
        return [_regroup(item, leaves) for item in tree]
    return next(leaves)


def _as_list(x) -> list:
    return list(x) if isinstance(x, (list, tuple)) else [x]


class _Body:
    """A function of arrays or symbols as a graph: `graph`, and `free`, what it reads besides its arguments."""

    def __init__(self, function: Callable, like: list, symbolic: bool, who: str):
        """`function` takes a list and returns a list; like: what its arguments are like."""
        if symbolic:
            since = _core.next_sequence()
            inputs = [Variable(next_name(f"{who}_input")) for _ in like]
            outputs = function(inputs)
            self.graph, self.free = _core.subgraph(Group(outputs), inputs, since)
            return
        tracer = _core.Trace()
        with tracer:
            inputs = [tracer.input(f"{who}_input{i}", a) for i, a in enumerate(like)]
            outputs = function(inputs)
            if tracer.writes:
                raise RuntimeError(f"{who}: inside a graph a body cannot write arrays; return the new ones instead")
            self.graph = tracer.finish([_result(y, who) for y in outputs], (), ())
        if self.graph is None:
            raise ValueError(f"{who}: the function must return at least one array")
        self.free = self.graph.captured()


def _result(y, who: str):
    if not isinstance(y, _core.ndarray):
        raise TypeError(f"{who}: results must be arrays; got {describe(y)}")
    return y


def _symbolic(*leaves) -> bool:
    return any(isinstance(x, Symbol) for x in leaves)


def foreach(body, data, init_states, name=None):
    """Runs `body(row, states) -> (outputs, new_states)` for each row of `data` along its first axis.

    data: an array (T, ...) or a nested list of them, equally long; init_states: arrays in the form that `body` takes and
    returns, which keep their shapes. Returns (outputs, states): outputs of all steps stacked, (T, ...), and the last
    states. Arrays run step by step; inside a trace up to 64 steps become nodes of the graph, more become one loop;
    symbols become a loop node. ValueError for unequal lengths and for states that change their shape in a graph."""
    rows, states = _flatten(data, "foreach: data", []), _flatten(init_states, "foreach: states", [])
    if not rows:
        raise ValueError("foreach: data must hold at least one array")
    symbolic = _symbolic(*rows, *states)
    if not symbolic:
        if any(r.ndim == 0 for r in rows):
            raise ValueError("foreach: data must have a first axis to walk along; got an array without axes")
        if any(len(r) != len(rows[0]) for r in rows):
            raise ValueError(f"foreach: all data must be equally long; got {[len(r) for r in rows]}")
        if not _core.is_tracing() or len(rows[0]) <= _LONGEST_UNROLLED:
            return _foreach_steps(body, data, rows, init_states)
    form = {}

    def step(inputs):
        outputs, new = body(_regroup(data, iter(inputs[:len(rows)])), _regroup(init_states, iter(inputs[len(rows):])))
        form["outputs"] = outputs
        flat = _flatten(outputs, "foreach: outputs", [])
        ends = _flatten(new, "foreach: new states", [])
        _same_count(ends, states, "foreach")
        form["count"] = len(flat)
        return flat + ends

    like = None if symbolic else [r[0] for r in rows] + states
    made = _Body(step, like or rows + states, symbolic, "foreach")
    out = list(_core.loop(made.graph, None, [*rows, *states, *made.free], len(rows), len(states), 0,
                          name or next_name("foreach")))
    return _regroup(form["outputs"], iter(out)), _regroup(init_states, iter(out[form["count"]:]))


def _foreach_steps(body, data, rows, states):
    from . import np
    collected, form = [], None
    for i in range(len(rows[0])):
        outputs, states = body(_regroup(data, iter([r[i] for r in rows])), states)
        form = outputs
        collected.append(_flatten(outputs, "foreach: outputs", []))
    return _regroup(form, iter([np.stack(list(part)) for part in zip(*collected)])) if collected else [], states


def _same_count(new: list, old: list, who: str) -> None:
    if len(new) != len(old):
        raise ValueError(f"{who}: the body must return as many states as it is given, {len(old)}; got {len(new)}")


def while_loop(cond, func, loop_vars, max_iterations=None, name=None):
    """Runs `func(*loop_vars) -> (outputs, new_loop_vars)` while `cond(*loop_vars)`, one number, is true, at most
    `max_iterations` times.

    Returns (outputs, loop_vars): outputs of the steps stacked, with zeros up to max_iterations rows, and the last
    variables. `func` may return None or [] for outputs. ValueError without variables or max_iterations."""
    if max_iterations is None:
        raise ValueError("while_loop: max_iterations must be given")
    max_iterations = int(max_iterations)
    if max_iterations < 0:
        raise ValueError(f"while_loop: max_iterations must not be negative; got {max_iterations}")
    single = isinstance(loop_vars, (_core.ndarray, Symbol))
    variables = _flatten(loop_vars, "while_loop: loop_vars", [])
    if not variables:
        raise ValueError("while_loop: loop_vars must hold at least one array")
    form: dict = {}

    def step(inputs):
        outputs, new = func(*_regroup(_as_list(loop_vars), iter(inputs)))
        outputs = [] if outputs is None else outputs
        form["outputs"] = outputs
        flat = _flatten(outputs, "while_loop: outputs", [])
        ends = _flatten([] if new is None else _as_list(new), "while_loop: new loop_vars", [])
        _same_count(ends, variables, "while_loop")
        form["count"] = len(flat)
        return flat + ends

    def test(inputs):
        return [cond(*_regroup(_as_list(loop_vars), iter(inputs)))]

    symbolic = _symbolic(*variables)
    if not symbolic and not _core.is_tracing():
        return _while_steps(test, step, variables, loop_vars, single, max_iterations, form)
    made = _Body(step, variables, symbolic, "while_loop")
    condition = _Body(test, variables, symbolic, "while_loop")
    out = list(_core.loop(made.graph, condition.graph, [*variables, *made.free, *condition.free], 0, len(variables),
                          max_iterations, name or next_name("while_loop")))
    ends = _regroup(_as_list(loop_vars), iter(out[form["count"]:]))
    return _regroup(form["outputs"], iter(out)), ends[0] if single else ends


def _while_steps(test, step, variables, loop_vars, single, max_iterations, form):
    from . import np
    collected: list = []
    while len(collected) < max_iterations and _truth(test(variables)[0], "while_loop"):
        out = step(variables)
        collected.append(out[:form["count"]])
        variables = out[form["count"]:]
        if len(collected[-1]) != len(collected[0]):
            raise ValueError(f"while_loop: each step must give as many outputs; got {len(collected[0])}, then "
                             f"{len(collected[-1])}")
    outputs = []
    for part in zip(*collected):
        stacked = np.stack(list(part))
        if len(part) < max_iterations:
            rest = np.zeros((max_iterations - len(part), *part[0].shape), dtype=part[0].dtype)
            stacked = np.concatenate([stacked, rest])
        outputs.append(stacked)
    ends = _regroup(_as_list(loop_vars), iter(variables))
    return _regroup(form["outputs"], iter(outputs)) if collected else [], ends[0] if single else ends


def _truth(value, who: str) -> bool:
    if isinstance(value, _core.ndarray) and value.size != 1:
        raise ValueError(f"{who}: the condition must be one number; got shape {list(value.shape)}")
    return bool(value)


def cond(pred, then_func, else_func, inputs=None, name=None):
    """`then_func()` where `pred`, one number, is true, else `else_func()`; only one of them is computed.

    With `inputs` (an array or a list) all functions, `pred` too if it is one, are called with them, as in MXNet 2. In a
    graph both branches must give arrays of the same shapes and dtypes."""
    given = [] if inputs is None else _as_list(inputs)
    if callable(pred) and not isinstance(pred, (_core.ndarray, Symbol)):
        pred = pred(*given)
    symbolic = _symbolic(pred, *given)
    if not symbolic and not (_core.is_tracing() and isinstance(pred, _core.ndarray)):
        return then_func(*given) if _truth(pred, "cond") else else_func(*given)
    forms = []

    def branch(function):
        def run(_):
            out = function(*given)
            forms.append(out)
            return _flatten(out, "cond: results", [])
        return _Body(run, [], symbolic, "cond")

    yes, no = branch(then_func), branch(else_func)
    out = list(_core.branch(yes.graph, no.graph, [pred, *yes.free, *no.free], name or next_name("cond")))
    return _regroup(forms[0], iter(out))
