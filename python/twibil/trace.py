# SPDX-License-Identifier: Apache-2.0
"""Tracing: a Python function is called once with arrays that have shapes but no elements, and becomes a compiled graph.
`jit` and `HybridBlock.hybridize` are built on this."""
from __future__ import annotations

import threading
from typing import Any, Callable

import numpy as onp

from . import _core
from .base import describe


class _ForFiles(threading.local):
    """Whether the running trace is for a file, which other programs may train: then layers that do nothing in prediction
    stay in it."""

    on = False


for_files = _ForFiles()


def rebuild(tree: Any, leaves) -> Any:
    """`tree`, nested tuples, lists and dicts, with its arrays replaced by those of the iterator `leaves`, in order."""
    if isinstance(tree, (_core.ndarray, onp.ndarray)):
        return next(leaves)
    if isinstance(tree, tuple):
        items = [rebuild(item, leaves) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    if type(tree) is list:
        return [rebuild(item, leaves) for item in tree]
    if isinstance(tree, dict):
        made = {key: rebuild(item, leaves) for key, item in tree.items()}
        return made if type(tree) is dict else type(tree)(made)
    return tree


def arrays_in(tree: Any, found: list) -> list:
    """The arrays of nested tuples, lists and dicts, in the order of `rebuild`, appended to `found`."""
    if isinstance(tree, _core.ndarray):
        found.append(tree)
    elif isinstance(tree, tuple) or type(tree) is list:
        for item in tree:
            arrays_in(item, found)
    elif isinstance(tree, dict):
        for item in tree.values():
            arrays_in(item, found)
    return found


def symbols_in(tree: Any, found: list) -> list:
    """The symbols of nested tuples, lists and dicts, appended to `found`."""
    if isinstance(tree, _core.SymbolBase):
        found.append(tree)
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            symbols_in(item, found)
    elif isinstance(tree, dict):
        symbols_in(list(tree.values()), found)
    return found


def _skeleton(tree: Any) -> Any:
    """`tree` without its traced arrays, so that keeping it keeps no trace alive."""
    return rebuild(tree, iter(lambda: _HOLE, None))


_HOLE = _core.array([0.0])


def _nothing(*arrays) -> tuple:
    return ()


class Program:
    """One trace of a function: a compiled graph, and how its results are put together."""

    __slots__ = ("compiled", "captured", "run", "single", "_result", "_given", "parameters")

    def __init__(self, compiled, result, given=None):
        """given: for each array of `result` the argument that it is, an array of the outside, or None: computed."""
        self.compiled = compiled
        self.captured = compiled.captured() if compiled is not None else []
        self._result = result
        self._given = given if given and any(g is not None for g in given) else None
        self.parameters = ()
        self.run = compiled.call if compiled is not None else _nothing
        self.single = self._given is None and result is _HOLE

    def __call__(self, arrays: list) -> Any:
        out = self.run(*arrays)
        return out[0] if self.single else self._put_together(arrays, out)

    def _put_together(self, arrays, out):
        if self._given is None:
            return rebuild(self._result, iter(out))
        computed = iter(out)
        return rebuild(self._result, (next(computed) if g is None else arrays[g] if isinstance(g, int) else g
                                      for g in self._given))

    def watched(self, arrays: list, hooks: list) -> Any:
        """Runs operator by operator; each of `hooks` is (callback, whether it sees inputs too)."""
        def watch(name, operator, array, is_input):
            for callback, inputs_too in hooks:
                if inputs_too or not is_input:
                    callback(name, operator, array)
        return self._put_together(arrays, self.compiled.watch(watch, *arrays) if self.compiled is not None else [])


def trace(function: Callable, args: tuple, kwargs: dict, arrays: list, names: list, without=(), donate=(),
          data_dependent=None, keep=1.0, rules=(False, False), arguments_too=False, outside_too=False) -> Program:
    """Calls `function` with traced arrays in place of `arrays`, those among `args` and `kwargs`. What it computes
    becomes a graph whose arguments are called `names`; arrays that it uses from elsewhere are read at each run.

    keep: the share of values for gradients that may be kept until they run. rules: whether only exact algorithms are
    taken, and whether they are measured.
    data_dependent: the class of the error that says that a shape depends on elements, else RuntimeError.
    Results that are arguments or arrays of the outside come back as the same objects, unless arguments_too or outside_too
    make them (equal) results of the graph."""
    tracer = _core.Trace()
    try:
        program = _traced(tracer, function, args, kwargs, arrays, names, without, donate, arguments_too, outside_too)
    except RuntimeError as error:
        if tracer.data_dependent and data_dependent is not None:
            raise data_dependent(str(error)) from error
        raise
    if program.compiled is not None:
        program.compiled.keep(keep)
        program.compiled.rules(*rules)
    return program


def _traced(tracer, function, args, kwargs, arrays, names, without, donate, arguments_too, outside_too) -> Program:
    with tracer:
        inputs = [tracer.input(name, a) for name, a in zip(names, arrays)]
        leaves = iter(inputs)
        args, kwargs = rebuild(args, leaves), rebuild(kwargs, leaves)
        result = function(*args, **kwargs)
        outputs = arrays_in(result, [])
        shape = _skeleton(result)
        places = {} if arguments_too else {id(x): i for i, x in enumerate(inputs)}
        given = [places.get(id(y), None if outside_too or _core.is_traced(y) else y) for y in outputs]
        compiled = tracer.finish([y for y, g in zip(outputs, given) if g is None], tuple(without), tuple(donate))
    return Program(compiled, shape, given)


def unhashable(args: tuple, kwargs: dict, who: str) -> TypeError:
    """The error for arguments that cannot be remembered."""
    for value in [*args, *kwargs.values()]:
        try:
            hash(value)
        except TypeError:
            if not isinstance(value, (_core.ndarray, onp.ndarray, list, tuple, dict)):
                return TypeError(f"{who}: arguments that are not arrays must be hashable, as results are remembered by "
                                 f"them; got {describe(value)}")
    return TypeError(f"{who}: arguments that are not arrays must be hashable, as results are remembered by them")
