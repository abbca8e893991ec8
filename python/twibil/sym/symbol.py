# SPDX-License-Identifier: Apache-2.0
"""`Symbol`: outputs of a graph that is declared first and run later."""
from __future__ import annotations

import copyreg
import os
import warnings

from .. import _core
from ..base import did_you_mean
from ..registry import functions
from ..util import is_np_shape
from .names import current_attributes

_HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")  # stored as __name__


class Symbol(_core.SymbolBase):
    """One or several outputs of a symbolic graph. Calls of operators on symbols make new symbols; nothing is computed
    before `compile`, `bind` or `eval`."""

    __array_priority__ = 1000.0  # NumPy's arrays leave arithmetic to this class

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

    def __getattr__(self, name: str):
        found = None if name.startswith("_") else functions("sym").get(name)
        if found is None:
            raise AttributeError(f"a symbol has no attribute {name!r}{did_you_mean(name, dir(type(self)))}")
        return lambda *args, **kwargs: found(self, *args, **kwargs)

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

    # ---- gradients ----

    def grad(self, wrt, head_grads=None):
        """Gradients of the sum of the outputs with respect to the variables `wrt`: one symbol with an output for each.

        wrt: symbols, or names of variables. ValueError for a name that the symbol does not have."""
        wrt = [wrt] if isinstance(wrt, (str, Symbol)) else list(wrt)
        return self._gradient([self._variable(w) if isinstance(w, str) else w for w in wrt], head_grads)

    gradient = grad

    def _variable(self, name: str):
        if name not in self.list_inputs():
            raise ValueError(f"gradient: the symbol has no variable {name!r}{did_you_mean(name, self.list_inputs())}")
        return self.get_internals()[name]

    # ---- attributes ----

    def attr(self, key: str):
        """An attribute of this node as text, in the words of graph files; None where it has none."""
        found = self._attributes()
        return found.get(key, found.get(f"__{key}__") if key in _HIDDEN else None)

    def list_attr(self, recursive: bool = False) -> dict:
        """The attributes of this node. `recursive` is gone since MXNet 0.8; see `attr_dict`."""
        if recursive:
            raise DeprecationWarning("list_attr(recursive=True) is gone; use attr_dict()")
        return self._attributes()

    def attr_dict(self) -> dict:
        """The attributes of all nodes that have any: {node: {key: text}}."""
        return {name: attributes for name, attributes in self._all_attributes() if attributes}

    def _set_attr(self, **kwargs):
        """Attaches attributes, which must be text, to this node. ValueError for others."""
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ValueError(f"set_attr: {key} must be a string; got {type(value).__name__}")
            self._set_mark(f"__{key}__" if key in _HIDDEN else key, value)

    # ---- composition ----

    def __call__(self, *args, name=None, **kwargs):
        """A copy of the graph in which variables are replaced by symbols: by position in the order of
        `list_arguments()`, or by name. name: of the copy's node. TypeError for both ways at once, ValueError for a
        name that the symbol does not have."""
        if args and kwargs:
            raise TypeError("compose: symbols must be given by position or by name, not both")
        arguments = self.list_arguments()
        if len(args) > len(arguments):
            raise TypeError(f"compose: the symbol has {len(arguments)} arguments; got {len(args)}")
        given = dict(zip(arguments, args)) if args else kwargs
        for key, value in given.items():
            if key not in self.list_inputs():
                raise ValueError(f"compose: the symbol has no variable {key!r}{did_you_mean(key, self.list_inputs())}")
            if not isinstance(value, Symbol):
                raise TypeError(f"compose: {key} must be a symbol; got {type(value).__name__}")
        made = self._replace(given)
        if name is not None:
            made._rename(name)
        return made

    def __copy__(self):
        return self._replace({})

    def __deepcopy__(self, _):
        return self._replace({})

    def __reduce__(self):
        return load_json, (self.tojson(),)

    # ---- shapes and dtypes ----

    def infer_shape(self, *args, **kwargs):
        """Shapes of arguments, outputs and auxiliary states, from those of some arguments by position or by name.

        (None, None, None) with a warning where they do not suffice. ValueError where they contradict each other."""
        result = self._infer_shapes(args, kwargs, True)
        if any(s is None or -1 in s for part in result for s in part):
            unknown = [n for n, s in zip(self.list_arguments(), result[0]) if s is None or -1 in s]
            warnings.warn("infer_shape: the shapes of these arguments do not follow from the given ones: "
                          + (", ".join(unknown) or "(outputs only)"), stacklevel=2)
            return None, None, None
        return result

    def infer_shape_partial(self, *args, **kwargs):
        """Like `infer_shape`; what is not known is () (None with `set_np_shape`), sizes are 0 (-1 with it)."""
        unknown, size = (None, -1) if is_np_shape() else ((), 0)
        return tuple([unknown if s is None else tuple(size if d == -1 else d for d in s) for s in part]
                     for part in self._infer_shapes(args, kwargs, True))

    def infer_type(self, *args, **kwargs):
        """dtypes of arguments, outputs and auxiliary states. Where no dtype is given, float32 is assumed.

        Known shapes (of `Variable`s) are used; without them operators are assumed to keep the dtype."""
        return self._infer_types(args, kwargs)

    infer_type_partial = infer_type

    def _given(self, args, kwargs, what: str) -> dict:
        arguments = self.list_arguments()
        if args and kwargs:
            raise ValueError(f"{what}: give values by position or by name, not both")
        if len(args) > len(arguments):
            raise ValueError(f"{what}: the symbol has {len(arguments)} arguments; got {len(args)}")
        given = dict(zip(arguments, args)) if args else dict(kwargs)
        names = self.list_inputs()
        for key in given:
            if key not in names:
                raise ValueError(f"{what}: the symbol has no variable {key!r}{did_you_mean(key, names)}")
        return {k: v for k, v in given.items() if v is not None}

    def _infer_shapes(self, args, kwargs, partial: bool, dtypes=None):
        given = self._given(args, kwargs, "infer_shape")
        unknown = (-1,) if is_np_shape() else (-1, 0)
        known = {}
        for key, shape in given.items():
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            if shape or is_np_shape():
                known[key] = (tuple(-1 if d in unknown else d for d in shape), None)
        for key, dtype in (dtypes or {}).items():
            known[key] = (known.get(key, (None, None))[0], dtype)
        variables, outputs = self._infer_sizes(known, partial)
        shape_of = lambda pair: None if pair is None else tuple(pair[0])  # noqa: E731
        return ([shape_of(variables[n]) for n in self.list_arguments()], [shape_of(p) for p in outputs],
                [shape_of(variables[n]) for n in self.list_auxiliary_states()])

    def _infer_sizes(self, known: dict, partial: bool):
        """`_infer`, where some sizes of a shape may be -1. With two numbers in their place, sizes that come out equal do
        not depend on them, and the others are not known either."""
        for node in self._nodes()[0]:
            if node["kind"] == "variable" and -1 in node.get("shape", ()) and known.get(node["name"], (None,))[0] is None:
                known[node["name"]] = (node["shape"], known.get(node["name"], (None, None))[1])
        if not any(shape and -1 in shape for shape, _ in known.values()):
            return self._infer(known, False, partial)
        found = []
        for size in (720, 1440):  # numbers that most divide
            filled = {n: (s and tuple(size if d == -1 else d for d in s), t) for n, (s, t) in known.items()}
            try:
                found.append(self._infer(filled, False, partial))
            except (ValueError, IndexError, TypeError):
                return self._infer(known, False, partial)

        def both(a, b):
            return a and b and (tuple(d if d == e else -1 for d, e in zip(a[0], b[0])), a[1])
        (variables, outputs), (others, other_outputs) = found
        return {n: both(v, others[n]) for n, v in variables.items()}, [both(a, b) for a, b in zip(outputs, other_outputs)]

    def _infer_types(self, args, kwargs):
        from .dtypes import infer_types
        return infer_types(self, self._given(args, kwargs, "infer_type"))

    # ---- files ----

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph as text in MXNet's format, which MXNet 1.9 reads."""
        return self._tojson()

    def save(self, fname, remove_amp_cast: bool = True) -> None:
        """Writes the graph to a file in MXNet's format; the file is replaced completely or not at all."""
        self._save(os.fspath(fname))

    # ---- running ----

    def bind(self, ctx=None, args=None, args_grad=None, grad_req="write", aux_states=None, group2ctx=None,
             shared_exec=None):
        """An `Executor` on given arrays.

        args: arrays of all arguments, a list in the order of `list_arguments()` or a dictionary. args_grad: arrays that
        get gradients, a list or a dictionary. grad_req: 'write', 'add' or 'null', for all or as a list or dictionary.
        aux_states: arrays of the auxiliary states. ValueError where an array is missing."""
        from .executor import Executor
        return Executor._bound(self, ctx, args, args_grad, grad_req, aux_states)

    def simple_bind(self, ctx=None, grad_req="write", type_dict=None, stype_dict=None, group2ctx=None,
                    shared_arg_names=None, shared_exec=None, shared_buffer=None, **kwargs):
        """An `Executor` on new arrays of zeros. kwargs: shapes of arguments by name, from which the others follow.
        type_dict: dtypes by name. shared_exec: an executor whose arrays of the same name and shape are used."""
        from .executor import Executor
        return Executor._with_new_arrays(self, ctx, grad_req, type_dict, shared_exec, shared_buffer, kwargs)

    _bind, _simple_bind = bind, simple_bind

    def eval(self, ctx=None, **kwargs):
        """The outputs for arrays given by name, as a list."""
        return self.bind(ctx, kwargs, grad_req="null").forward()

    def optimize_for(self, backend=None, args=None, aux=None, ctx=None, **kwargs):
        """This symbol: the compiler needs no back end to be named."""
        return self

    def get_backend_symbol(self, backend=None):
        """This symbol: the compiler needs no back end to be named."""
        return self

    def debug_str(self) -> str:
        """The nodes of the graph, one after the other, with their attributes and inputs."""
        nodes, heads = self._nodes()
        lines = ["Symbol Outputs:"] + [f"\toutput[{i}]={nodes[n]['name']}({k})" for i, (n, k) in enumerate(heads)]
        for node in nodes:
            if node["op"] == "null":
                lines.append(f"Variable:{node['name']}")
                continue
            lines += ["-" * 20, f"Op:{node['op']}, Name={node['name']}", "Inputs:"]
            lines += [f"\targ[{i}]={nodes[e[0]]['name']}({e[1]})" for i, e in enumerate(node["inputs"]) if e]
            lines += ["Attrs:"] * bool(node["attrs"]) + [f"\t{k}={v}" for k, v in node["attrs"].items()]
        return "\n".join(lines) + "\n"

    def as_np_ndarray(self):
        """This symbol: there is one class for both front ends."""
        return self

    as_nd_ndarray = as_np_ndarray

    def astype(self, dtype):
        """The symbol cast to a dtype."""
        return functions("sym")["Cast"](self, dtype=dtype)

    def detach(self):
        """The symbol, through which no gradient flows back."""
        return functions("sym")["BlockGrad"](self)

    def __neg__(self):
        return functions("sym")["negative"](self)

    def __abs__(self):
        return functions("sym")["abs"](self)

    __hash__ = object.__hash__


def Variable(name, attr=None, shape=None, lr_mult=None, wd_mult=None, dtype=None, init=None, stype=None, profiler_scope=None,
             **kwargs):
    """A symbol that is given an array at each run.

    shape: sizes, where known; an unknown one is -1 (0 is one too, unless `set_np_shape` is on). init: an Initializer
    or its text. lr_mult, wd_mult: for optimizers. TypeError for a name that is no text; ValueError for other keywords
    than __attributes__."""
    if not isinstance(name, str):
        raise TypeError(f"Variable: name must be a string; got {type(name).__name__}")
    marks = {f"__{k}__" if k in _HIDDEN else k: v for k, v in current_attributes(attr).items()}
    for key, value in (("__lr_mult__", lr_mult), ("__wd_mult__", wd_mult), ("__storage_type__", stype)):
        if value is not None:
            marks[key] = str(value)
    if init is not None:
        marks["__init__"] = init if isinstance(init, str) else init.dumps()
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise ValueError(f"Variable: there is no argument {key!r}. Attributes of one's own are called __{key}__")
        marks[key] = str(value)
    if shape is not None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        shape = shape if is_np_shape() else tuple(-1 if d == 0 else d for d in shape) or None
    return _core.variable(name, shape, dtype, marks)


var = Variable


def Constant(value):
    """A number, or an array that stays as it is now, as a symbol."""
    return _core.constant(value)


def Group(symbols, create_fn=None):
    """One symbol with the outputs of all given ones."""
    symbols = list(symbols)
    if not symbols or not all(isinstance(s, Symbol) for s in symbols):
        raise TypeError("Group: a list of symbols is needed")
    return _core.group(symbols)


def load(fname):
    """The symbol in a file of MXNet's format, of MXNet 0.8 to 2.0 or of this package. Errors name the file and the
    place in it: ValueError for a damaged one, KeyError for an operator that is not known."""
    return _core.read_symbol(os.fspath(fname))


def load_json(json_str):
    """The symbol in a text of MXNet's format; see `load`."""
    return _core.parse_symbol(json_str)


fromjson = load_json

_core.set_symbol_class(Symbol)
copyreg.pickle(Symbol, Symbol.__reduce__)
# Python's operators: the registered name, the method, and what MXNet calls such a node.
_ARITHMETIC = {"add": ("__add__", "_Plus"), "subtract": ("__sub__", "_Minus"), "multiply": ("__mul__", "_Mul"),
               "true_divide": ("__truediv__", "_Div"), "mod": ("__mod__", "_Mod"), "power": ("__pow__", "_Power"),
               "floor_divide": ("__floordiv__", "floor_divide"), "matmul": ("__matmul__", "matmul")}
_COMPARE = {"__lt__": "_lesser", "__le__": "_lesser_equal", "__eq__": "_equal", "__ne__": "_not_equal",
            "__gt__": "_greater", "__ge__": "_greater_equal"}


def _add_operators():
    graph = functions("sym")

    def forward(f):
        return lambda a, b: f(a, b) if isinstance(b, _OPERANDS) else NotImplemented

    def backward(f):
        return lambda a, b: f(b, a) if isinstance(b, _OPERANDS) else NotImplemented

    for method, name in _ARITHMETIC.values():
        setattr(Symbol, method, forward(graph[name]))
        setattr(Symbol, "__r" + method[2:], backward(graph[name]))
    for method, name in _COMPARE.items():
        setattr(Symbol, method, forward(graph[name]))


def _operands():
    import numpy
    return (Symbol, int, float, bool, _core.ndarray, numpy.generic, numpy.ndarray)


_OPERANDS = _operands()
_add_operators()
