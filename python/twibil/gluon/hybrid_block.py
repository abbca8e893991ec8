# SPDX-License-Identifier: Apache-2.0
"""`HybridBlock`: a block that can also run as a compiled graph; `SymbolBlock`: one made from a saved graph."""
from __future__ import annotations

from html import escape

from .. import _core
from ..base import did_you_mean
from ..sym import Group, Symbol, Variable
from ..sym.compiled import kernel_rules, kept_share
from ..trace import rebuild, symbols_in
from . import generation
from .block import Block, _note_block
from .graph_cache import EAGER, GraphCache

_HYBRIDIZE_OPTIONS = ("static_alloc", "static_shape", "inline_limit", "forward_bulk_size", "backward_bulk_size",
                      "partition_if_dynamic", "backend", "backend_opts", "clear", "flags", "recompute", "exact", "autotune")


class HybridBlock(Block):
    """A block whose computation can become a graph. Write `forward(self, x, ...)`, or MXNet 1's
    `hybrid_forward(self, F, x, ..., **params)`, where F is the operator namespace (`nd` for arrays, `sym` for symbols)
    and params are this block's arrays or symbols."""

    _active = False  # until hybridize()
    _keep = 1.0  # the share of values for gradients that the graph may keep
    _rules = (False, False)  # whether only exact algorithms are taken; whether they are measured
    _graph: GraphCache | None = None
    _op_hooks: tuple = ()

    def hybridize(self, active=True, **kwargs) -> None:
        """Makes calls run as compiled graphs, or eagerly again with `active=False`.

        At the first call for each kind of arguments (structure, shapes, dtypes, values of what is no array, recording and
        training mode) `forward` runs once on arrays without elements; the operators that it calls, children included,
        become a graph. Later calls run the graph: results, gradients, random numbers and running statistics are those
        of eager calls, attributes of the block are as they were at the trace. A block runs eagerly, and its children as
        graphs, while parameters wait for their shapes (the first call), while inner blocks have hooks, and, with a
        notice, where shapes depend on values. MXNet's options (static_alloc, static_shape, ...) are accepted; memory is
        always planned. recompute: True, or the share of what gradients read that may be kept until they run; the rest
        is computed again. exact, autotune: which algorithms predictions may take (see `sym.compile`). TypeError for
        others."""
        for name in kwargs:
            if name not in _HYBRIDIZE_OPTIONS:
                raise TypeError(f"hybridize: {name!r} is not an option.{did_you_mean(name, _HYBRIDIZE_OPTIONS)}")
        self._keep = kept_share(kwargs.get("recompute"))
        self._rules = kernel_rules("hybridize", kwargs.get("exact"), kwargs.get("autotune"))
        self._active = bool(active)
        self._graph = GraphCache(self) if active else None
        super().hybridize(active, **kwargs)

    def __getstate__(self):
        return {**self.__dict__, "_graph": None}

    def __call__(self, *args, **kwargs):
        """Runs hooks and the graph or `forward`. An error gets a note that names the block."""
        try:
            if self._active:
                return self._call_graph(args, kwargs)
            if self._pending or self._forward_pre_hooks or self._forward_hooks or self._op_hooks:
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            _note_block(error, self)
            raise

    def _call_graph(self, args, kwargs):
        if _core.is_tracing():
            return self._call_with_hooks(args, kwargs)
        graph = self._graph
        if graph is None:  # a copy, or unpickled
            graph = self._graph = GraphCache(self)
        if graph.generation != generation.current:
            graph.refresh()
        if graph.runs_eagerly:
            graph.remember(args, kwargs)
            return super()._call_with_hooks(args, kwargs)
        if self._forward_pre_hooks:
            for hook in tuple(self._forward_pre_hooks.values()):
                hook(self, args)
        arrays, key = _core.signature((args, kwargs) if kwargs else args)
        if arrays is None:
            return self._call_with_symbols(args, kwargs)
        try:
            program = graph.programs[key]
        except (KeyError, TypeError):
            program = graph.program(key, args, kwargs, arrays)
        if program is EAGER:
            out = self.forward(*args, **kwargs)
        elif self._op_hooks:
            out = program.watched(arrays, self._op_hooks)
        else:
            out = program.run(*arrays)[0] if program.single else program(arrays)
        if self._forward_hooks:
            for hook in tuple(self._forward_hooks.values()):
                hook(self, args, out)
        return out

    def _call_with_hooks(self, args, kwargs):
        if any(isinstance(x, Symbol) for x in args):
            return self._call_with_symbols(args, kwargs)
        if self._op_hooks and not self._active and not _core.is_tracing():
            return self._call_graph(args, kwargs)
        return super()._call_with_hooks(args, kwargs)

    def _call_with_symbols(self, args, kwargs):
        """Parameters need no arrays to become variables."""
        self._collect_params_with_prefix()
        return self.forward(*args, **kwargs)

    def forward(self, x, *args):
        """Calls `hybrid_forward` with the namespace and this block's parameters on the device of `x`."""
        first = x[0] if isinstance(x, (list, tuple)) else x
        from .. import nd, sym
        params = {name: p.on(first) for name, p in self._reg_params.items()}
        return self.hybrid_forward(sym if isinstance(first, Symbol) else nd, x, *args, **params)

    def hybrid_forward(self, F, x, *args, **kwargs):
        """Computes the output with the operators of `F`; derived classes write it, or `forward`."""
        raise NotImplementedError(f"{type(self).__name__}: forward or hybrid_forward must be written")

    def infer_shape(self, *args) -> None:
        """Sets the incomplete shapes of this block's own parameters from the inputs: the block is called with symbols,
        and the operators' rules are asked. Layers write a shorter way."""
        self._infer(args, lambda p, shape, dtype: setattr(p, "shape", shape))

    def infer_type(self, *args) -> None:
        """Sets the dtypes of this block's own parameters from those of the inputs."""
        def set_dtype(p, _, dtype):
            if p._data is None:
                p.dtype = dtype
        self._infer(args, set_dtype)

    def _infer(self, args, use) -> None:
        own = self._own_params()
        if type(self).forward is HybridBlock.forward and type(self).hybrid_forward is HybridBlock.hybrid_forward:
            return super().infer_shape(*args)
        arrays, _ = _core.signature(args)
        inputs = [Variable(f"data{i}", shape=a.shape, dtype=a.dtype) for i, a in enumerate(arrays)]
        try:
            out = self.forward(*rebuild(args, iter(inputs)))
        except Exception as error:
            pending = [p.name for p in own.values() if p._deferred is not None]
            raise ValueError(f"{type(self).__name__}: parameters {', '.join(pending)} have incomplete shapes, which could "
                             f"not be found by calling the block with symbols ({type(error).__name__}: {error}). Give "
                             "them, or write infer_shape(self, *inputs), which sets them from the inputs") from error
        found, _ = Group(symbols_in(out, []))._infer({}, False, True)
        for p in own.values():
            if found.get(p.name) is not None:
                use(p, *found[p.name])

    def register_op_hook(self, callback, monitor_all=False) -> None:
        """Calls `callback(output_name, operator, array)` for each operator's outputs at each call of this block, which then
        runs operator by operator; with `monitor_all` for inputs too, as `node_data0`."""
        if not callable(callback):
            raise TypeError(f"register_op_hook: a function is needed; got {type(callback).__name__}")
        self._op_hooks = (*self._op_hooks, (callback, bool(monitor_all)))

    def optimize_for(self, x, *args, backend=None, clear=False, partition_if_dynamic=True, static_alloc=False,
                     static_shape=False, inline_limit=2, forward_bulk_size=None, backward_bulk_size=None, **kwargs):
        """Hybridizes and compiles for the shapes of `x` and `args`. backend and its options are accepted; there is one
        compiler."""
        del backend, clear, partition_if_dynamic, static_alloc, static_shape, inline_limit
        del forward_bulk_size, backward_bulk_size, kwargs
        self.hybridize(True)
        self(x, *args)

    def explain(self, *args, html=None, measure=False):
        """What the compiler made of this block, as an `Explanation`: print it, or look at its page.

        args: example inputs, for which the block is traced if it was not (it need not be hybridized); without them the
        trace made last. html: path of a page to write. measure: True to time each kernel on made-up inputs and the
        parameters as they are. RuntimeError without inputs before the first call of a hybridized block."""
        from ..explain.traces import explain_block
        return explain_block(self, args, html, measure)

    def _repr_html_(self):
        """Notebooks show the graph of a hybridized block that has run."""
        from ..explain import notebook_html
        shown = notebook_html(self) if self._active else None
        return None if shown is None else f"<pre>{escape(repr(self))}</pre>{shown}"

    def export(self, path, epoch=0, remove_amp_cast=True):
        """Writes the graph to `path-symbol.json` and the parameters to `path-0000.params`, numbered by `epoch`, as MXNet
        does; returns both names. `SymbolBlock.imports` reads them. The inputs are called 'data', or 'data0', 'data1', ...

        RuntimeError before the first call: the graph is that for the last call's arguments, in prediction mode."""
        from .export import export
        return export(self, path, epoch)


from .symbol_block import SymbolBlock  # noqa: E402,F401
