# SPDX-License-Identifier: Apache-2.0
"""`SymbolBlock`: a symbol with parameters as a block, to predict with a saved network or to train it further."""
from __future__ import annotations

from .. import _core
from ..base import describe
from ..serialization import load_params
from ..sym import Group, Symbol, Variable
from ..sym.compiled import kernel_rules
from ..trace import Program, symbols_in
from . import generation
from .hybrid_block import HybridBlock
from .parameter import Parameter, known


class SymbolBlock(HybridBlock):
    """Computes `outputs` (a symbol or a list) of `inputs` (variables or their names). All other variables are parameters,
    made by the names they have; `params` (as from `collect_params()`, or arrays by name) gives those that exist already.

    ValueError where an input is no variable of the outputs. The block always runs as a compiled graph."""

    def __init__(self, outputs, inputs, params=None, prefix=None):
        super().__init__(prefix=prefix)
        symbol = outputs if isinstance(outputs, Symbol) else Group(symbols_in(outputs, []))
        names = [i if isinstance(i, str) else _name(i) for i in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        everything = symbol.list_inputs()
        for name in names:
            if name not in everything:
                raise ValueError(f"SymbolBlock: the outputs have no variable {name!r}; they have "
                                 f"{', '.join(everything[:20])}")
        self._symbol, self._input_names = symbol, names
        self._single = isinstance(outputs, Symbol) and len(outputs) == 1
        auxiliary = set(symbol.list_auxiliary_states())
        self._parameter_names = [n for n in everything if n not in names]
        for name in self._parameter_names:
            self._reg_params[name] = self._params[name] = _parameter(name, name in auxiliary, params)
        self._make()

    def _make(self):
        compiled = _core.compile(self._symbol, self._input_names + self._parameter_names, (), ())
        compiled.fix(tuple(self._parameter_names))
        self._program = Program(compiled, ())
        generation.changed()

    @staticmethod
    def imports(symbol_file, input_names, param_file=None, ctx=None, device=None, allow_missing=False, ignore_extra=False):
        """Reads what `HybridBlock.export` (of this package or MXNet) wrote. input_names: a name or a list.

        Without `param_file` parameters wait for `initialize` or `load_parameters`. OSError and ValueError for files that
        are not there or not whole; ValueError where the files do not belong together."""
        from .. import sym
        symbol = sym.load(symbol_file)
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        block = SymbolBlock(symbol, [Variable(n) for n in names])
        if param_file is not None:
            block.load_parameters(param_file, ctx if device is None else device, allow_missing, ignore_extra,
                                  cast_dtype=True, dtype_source="saved")
        return block

    def __getstate__(self):
        raise TypeError("SymbolBlock: a graph cannot be pickled; use export() and SymbolBlock.imports()")

    def _collect_params_with_prefix(self, prefix="", in_files=False):
        dot = prefix + "." if prefix else ""
        self._path = prefix or self._path
        return {dot + name: p for name, p in self._reg_params.items()}

    def __call__(self, *args, **kwargs):
        if len(args) != len(self._input_names):
            raise TypeError(f"SymbolBlock: takes {len(self._input_names)} inputs ({', '.join(self._input_names)}); got "
                            f"{len(args)}")
        return super().__call__(*args, **kwargs)

    def forward(self, *args):
        if any(isinstance(x, Symbol) for x in args):
            out = self._symbol._replace(dict(zip(self._input_names, args)))
            return out if self._single else [out[i] for i in range(len(out))]
        arrays = [x if isinstance(x, _core.ndarray) else _core.array(x, dtype=getattr(x, "dtype", None)) for x in args]
        out = self._program.compiled.call(*arrays, *(self._reg_params[n].data() for n in self._parameter_names))
        return out[0] if self._single else out

    def infer_shape(self, *args) -> None:
        self._infer(args, lambda p, shape, dtype: setattr(p, "shape", shape))

    def _infer(self, args, use):
        given = {name: (x.shape, x.dtype) for name, x in zip(self._input_names, args)}
        given.update((n, (p.shape, p.dtype)) for n, p in self._reg_params.items() if known(p.shape))
        found, _ = self._symbol._infer(given, False, True)
        for name, p in self._reg_params.items():
            if found.get(name) is not None:
                use(p, *found[name])

    def cast(self, dtype) -> None:
        """Changes the dtype of the parameters; statistics (auxiliary states) keep theirs."""
        auxiliary = set(self._symbol.list_auxiliary_states())
        for name, p in self._reg_params.items():
            if name not in auxiliary:
                p.cast(dtype)

    def hybridize(self, active=True, **kwargs) -> None:
        """The block is a graph already; `exact` and `autotune` say which algorithms it takes (see `sym.compile`)."""
        self._program.compiled.rules(*kernel_rules("hybridize", kwargs.get("exact"), kwargs.get("autotune")))

    def export(self, path, epoch=0, remove_amp_cast=True):
        from .export import write
        return write(path, epoch, self._symbol, {n: p.data() for n, p in self._reg_params.items()})

    def __repr__(self):
        return f"SymbolBlock({', '.join(self._input_names)} -> {', '.join(self._symbol.list_outputs())})"


def _name(symbol) -> str:
    if not isinstance(symbol, Symbol) or symbol.name is None:
        raise TypeError(f"SymbolBlock: inputs must be variables or their names; got {describe(symbol)}")
    return symbol.name


def _parameter(name: str, auxiliary: bool, params):
    given = params.get(name) if params is not None and name in params else None
    if isinstance(given, Parameter):
        return given
    made = Parameter(name, grad_req="null" if auxiliary else "write", allow_deferred_init=True,
                     differentiable=not auxiliary)
    if given is not None:
        made.dtype = given.dtype
        made._load(given)
    return made
