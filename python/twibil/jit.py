# SPDX-License-Identifier: Apache-2.0
"""`jit`: a function on arrays that is traced and compiled at its first call with each kind of arguments."""
from __future__ import annotations

import functools
import inspect
import threading
from typing import Any, Callable

import numpy as onp

from . import _core
from .sym.compiled import kernel_rules, kept_share
from .trace import Program, trace, unhashable


class JitFunction:
    """What `jit` returns. Called like the function it was made from."""

    def __init__(self, function: Callable, donate=(), without=(), recompute=None, exact=False, autotune=False):
        if not callable(function):
            raise TypeError(f"jit: a function is needed; got {type(function).__name__}")
        functools.update_wrapper(self, function)
        self._function = function
        self._donate, self._without = _names(donate, "donate"), _names(without, "without")
        self._keep = kept_share(recompute)
        self._rules = kernel_rules("jit", exact, autotune)
        self._cache: dict[Any, Program] = {}
        self._lock = threading.RLock()
        self._last: Program | None = None
        try:
            self._parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            self._parameters = []
        known = [p.name for p in self._parameters]
        for name in self._donate:
            if name not in known:
                raise ValueError(f"jit: donate names {name!r}, which is no argument of {self.__name__}; they are "
                                 f"{', '.join(known)}")

    def __call__(self, *args, **kwargs):
        if _core.is_tracing():  # the outer trace takes the operations
            return self._function(*args, **kwargs)
        arrays, key = _core.signature((args, kwargs) if kwargs else args)
        if arrays is None:  # symbols
            return self._function(*args, **kwargs)
        try:
            program = self._cache[key]
        except KeyError:
            program = self._traced(key, args, kwargs, arrays)
        except TypeError:
            raise unhashable(args, kwargs, f"jit of {self.__name__}") from None
        self._last = program
        return program.run(*arrays)[0] if program.single else program(arrays)

    def _traced(self, key, args, kwargs, arrays) -> Program:
        with self._lock:
            if key not in self._cache:
                self._cache[key] = self._trace(args, kwargs, arrays)
            return self._cache[key]

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _trace(self, args, kwargs, arrays):
        return trace(self._function, args, kwargs, arrays, self._array_names(args, kwargs, arrays), self._without,
                     self._donate, keep=self._keep, rules=self._rules)

    def _array_names(self, args, kwargs, arrays) -> list:
        """Each array is called after its argument; those inside a nested argument by it and a number."""
        names, places = [], [p.name for p in self._parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        for i, value in enumerate(args):
            names += _numbered(places[i] if i < len(places) else f"argument{i}", value)
        for key, value in kwargs.items():
            names += _numbered(key, value)
        return names if len(names) == len(arrays) else [f"argument{i}" for i in range(len(arrays))]

    @property
    def cache_size(self) -> int:
        """For how many kinds of arguments the function was traced."""
        return len(self._cache)

    def clear(self) -> None:
        """Forgets all traces; they are made again when needed."""
        with self._lock:
            self._cache.clear()
            self._last = None

    def lower(self, *args, **kwargs):
        """The compiled function for these arguments, without running it: a `CompiledFunction` with `explain()`,
        `planned_bytes`, `num_kernels` and the graph as `symbol`."""
        arrays, key = _core.signature((args, kwargs) if kwargs else args)
        with self._lock:
            program = self._cache.get(key)
            if program is None:
                program = self._cache[key] = self._trace(args, kwargs, arrays)
        return compiled_function(program, arrays)


    def explain(self, html=None, measure=False):
        """What the compiler made of the last call, as an `Explanation`: print it, or look at its page.
        `lower(...).explain()` does so for other arguments.

        html: path of a page to write. measure: True to time each kernel on made-up arrays. RuntimeError before the first
        call."""
        if self._last is None:
            raise RuntimeError(f"explain of {self.__name__}: the function was not called yet; call it, or use "
                               "lower(arguments...).explain()")
        from .explain.traces import explain_program
        return explain_program(self._last, [], f"jit of {self.__name__}", html, measure)

    def __repr__(self):
        kinds = len(self._cache)
        return f"<jit of {self.__name__}; traced for {kinds} kind{'s' if kinds != 1 else ''} of arguments>"

    def _repr_html_(self):
        from .explain import notebook_html
        return notebook_html(self)


def compiled_function(program: Program, arrays: list):
    """A trace as what `sym.compile` returns."""
    from .sym.compiled import CompiledFunction
    return CompiledFunction.of_trace(program.compiled, arrays)


def _numbered(name: str, value) -> list:
    if isinstance(value, (_core.ndarray, onp.ndarray)):
        return [name]
    return [f"{name}{i}" for i in range(_count(value))]


def _count(value) -> int:
    if isinstance(value, (_core.ndarray, onp.ndarray)):
        return 1
    if isinstance(value, tuple) or type(value) is list:
        return sum(map(_count, value))
    return sum(map(_count, value.values())) if isinstance(value, dict) else 0


def _names(value, what: str) -> tuple:
    names = (value,) if isinstance(value, str) else tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"jit: {what} must hold names; got {type(name).__name__}")
    return names


def jit(function: Callable | None = None, *, donate=(), without=(), recompute=None, exact=False,
        autotune=False):
    """Compiles `function`, as `@jit`, `@jit(donate=...)` or `jit(function)`.

    At the first call for each kind of arguments (structure, shapes and dtypes of arrays, values of everything else,
    training mode) the function runs once on traced arrays, which have a shape and a dtype but no elements; the operators
    that it calls become a graph, which is compiled, and which later calls run without entering Python. Arguments and
    results may be arrays and nested tuples, lists and dicts of them; what else it returns is kept from the trace.
    Arrays that it takes from outside are read anew at each call, and writes in place reach the same arrays as without
    `jit`. Gradients flow under `autograd.record()`.

    donate: names of arguments whose memory the result may take; the caller must not use them afterwards.
    without: compiler passes to leave out.
    recompute: the share of values for gradients that may be kept until they run; exact, autotune: which algorithms may
    be chosen, and how. See `sym.compile`.

    Raises RuntimeError where the function looks at elements (`if x.sum() > 0`, `float(x)`, `x.asnumpy()`) or calls an
    operator whose result's shape depends on them; TypeError for arguments that are not arrays and not hashable."""
    if function is None:
        return functools.partial(jit, donate=donate, without=without, recompute=recompute, exact=exact,
                                 autotune=autotune)
    return JitFunction(function, donate, without, recompute, exact, autotune)
