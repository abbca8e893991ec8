# SPDX-License-Identifier: Apache-2.0
"""`Symbol`: outputs of a graph that is declared first and run later."""
from __future__ import annotations

from .. import _core
from .names import current_attributes, next_name


class Symbol(_core.SymbolBase):
    """One or several outputs of a symbolic graph. Calls of operators on symbols make new symbols; nothing is computed
    before `compile`, `bind` or `eval`."""

    def __repr__(self):
        name = self._name()
        return f"<Symbol {name}>" if name is not None else f"<Symbol group [{', '.join(self.list_outputs())}]>"

    def __len__(self):
        return self._length()

    def __iter__(self):
        return (self._output(i) for i in range(len(self)))

    def __bool__(self):
        raise TypeError("a symbol has no value, so it is neither true nor false; compile it first, or use cond()")

    def __getitem__(self, index):
        if isinstance(index, str):
            names = self.list_outputs()
            found = [i for i, n in enumerate(names) if n == index]
            if len(found) != 1:
                raise ValueError(f"the symbol has {'several outputs' if found else 'no output'} named {index!r}; "
                                 f"they are {', '.join(names[:20])}")
            return self._output(found[0])
        if isinstance(index, slice):
            return Group([self._output(i) for i in range(*index.indices(len(self)))])
        return self._output(index)

    name = property(lambda self: self._name(), doc="Name of the node; None for several nodes.")

    def list_outputs(self):
        """Names of the outputs."""
        return self._output_names()

    def list_arguments(self):
        """Names of the variables that are given at each run."""
        return self._argument_names(False)

    def list_auxiliary_states(self):
        """Names of the variables that operators update, as running statistics."""
        return self._argument_names(True)

    def list_inputs(self):
        """Names of all variables."""
        return self._argument_names(None)

    def get_internals(self):
        """One symbol with the outputs of all nodes, to cut a graph at: `net.get_internals()['fc1_output']`."""
        return self._internals()

    def get_children(self):
        """The inputs of this symbol's nodes; None for variables."""
        return self._children()

    def grad(self, wrt, head_grads=None):
        """Gradients of the sum of the outputs with respect to the variables `wrt`: one symbol with an output for each."""
        return self._gradient([Variable(w) if isinstance(w, str) else w for w in wrt], head_grads)

    gradient = grad


def Variable(name, attr=None, shape=None, lr_mult=None, wd_mult=None, dtype=None, init=None, stype=None, profiler_scope=None,
             **kwargs):
    """A symbol that is given an array at each run. shape: sizes, -1 where unknown."""
    if not isinstance(name, str):
        raise TypeError(f"Variable: name must be a string; got {type(name).__name__}")
    marks = current_attributes(attr)
    for key, value in (("__lr_mult__", lr_mult), ("__wd_mult__", wd_mult)):
        if value is not None:
            marks[key] = str(value)
    if init is not None:
        marks["__init__"] = init if isinstance(init, str) else init.dumps()
    marks.update({k: str(v) for k, v in kwargs.items()})
    return _core.variable(name, None if shape is None else tuple(shape), dtype, marks)


var = Variable


def Constant(value):
    """A number, or an array that stays as it is now, as a symbol."""
    return _core.constant(value)


def Group(symbols):
    """One symbol with the outputs of all given ones."""
    return _core.group(list(symbols))


_core.set_symbol_class(Symbol)
_SYNTAX = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "true_divide": "__truediv__",
           "floor_divide": "__floordiv__", "mod": "__mod__", "power": "__pow__", "matmul": "__matmul__"}
_COMPARE = {"less": "__lt__", "less_equal": "__le__", "equal": "__eq__", "not_equal": "__ne__", "greater": "__gt__",
            "greater_equal": "__ge__"}


def _add_operators():
    functions = _core.operators()

    def forward(f):
        return lambda a, b: f(a, b) if isinstance(b, _OPERANDS) else NotImplemented

    def backward(f):
        return lambda a, b: f(b, a) if isinstance(b, _OPERANDS) else NotImplemented

    for name, method in _SYNTAX.items():
        setattr(Symbol, method, forward(functions[name]))
        setattr(Symbol, "__r" + method[2:], backward(functions[name]))
    for name, method in _COMPARE.items():
        setattr(Symbol, method, forward(functions[name]))
    Symbol.__hash__ = object.__hash__
    Symbol.__neg__ = lambda a: functions["negative"](a)
    Symbol.__abs__ = lambda a: functions["absolute"](a)


def _operands():
    import numpy
    return (Symbol, int, float, bool, _core.ndarray, numpy.generic, numpy.ndarray)


_OPERANDS = _operands()
_add_operators()
_ = next_name
