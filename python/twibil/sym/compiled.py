# SPDX-License-Identifier: Apache-2.0
"""`compile`: a symbol as a function on arrays."""
from __future__ import annotations

import os

from .. import _core
from ..base import did_you_mean
from .symbol import Group, Symbol


def kept_share(recompute) -> float:
    """What `recompute` means: the share of the values for gradients that may be kept. None asks MXNet's variable
    MXNET_BACKWARD_DO_MIRROR, and means 1 without it. An error if it is neither a truth value nor from 0 to 1."""
    if recompute is None:
        return 0.5 if os.environ.get("MXNET_BACKWARD_DO_MIRROR", "0") not in ("", "0") else 1.0
    if isinstance(recompute, bool):
        return 0.0 if recompute else 1.0
    if not isinstance(recompute, (int, float)):
        raise TypeError(f"recompute must be True, False or a share from 0 to 1; got {type(recompute).__name__}")
    if not 0 <= recompute <= 1:
        raise ValueError(f"recompute must be True, False or a share from 0 to 1; got {recompute}")
    return float(recompute)


def kernel_rules(who, exact, autotune) -> tuple:
    """(exact, autotune) as truth values; TypeError for anything else."""
    for name, value in (("exact", exact), ("autotune", autotune)):
        if not isinstance(value, (bool, int)) and value is not None:
            raise TypeError(f"{who}: {name} must be True or False; got {type(value).__name__}")
    return bool(exact), bool(autotune)


class CompiledFunction(_core.CompiledFunctionBase):
    """A symbol as a function, called by the names of its variables or by position; see `compile`. Takes arrays, or what
    can become one. Inside `autograd.record()` the result is on the tape."""

    def __init__(self, symbol, names, single, without, donate, recompute=None, fixed=(), exact=False, autotune=False):
        self.symbol, self.names, self._single = symbol, names, single
        self._compiled = _core.compile(symbol, names, without, donate)
        self._compiled.keep(kept_share(recompute))
        self._compiled.rules(*kernel_rules("compile", exact, autotune))
        self._compiled.fix(tuple(fixed))
        self._bind(self._compiled, len(names), single)
        self._last = None

    @classmethod
    def of_trace(cls, compiled, arrays):
        """The graph of a trace whose arguments are `arrays`; arrays of the outside need not be given."""
        self = cls.__new__(cls)
        self.symbol = compiled.symbol()
        self.names, self._compiled = compiled.names()[:len(arrays)], compiled
        self._single = len(self.symbol) == 1
        self._last = [(a.shape, a.dtype) for a in arrays]
        self._bind(compiled, len(self.names), self._single)
        return self

    def _call_with(self, *args, **kwargs):
        """A call with anything but arrays in their order."""
        out = self._compiled.call(*self._arguments(args, kwargs))
        return out[0] if self._single else out

    def _arguments(self, args, kwargs):
        if len(args) > len(self.names):
            raise TypeError(f"the compiled function takes {len(self.names)} arrays ({', '.join(self.names)}); got "
                            f"{len(args)}")
        given = dict(zip(self.names, args))
        for key, value in kwargs.items():
            if key not in self.names:
                raise TypeError(f"the compiled function has no argument {key!r}{did_you_mean(key, self.names)}")
            if key in given:
                raise TypeError(f"the compiled function got argument {key!r} twice")
            given[key] = value
        missing = [n for n in self.names if n not in given]
        if missing:
            raise TypeError(f"the compiled function needs {', '.join(missing)}")
        arrays = []
        for name in self.names:
            value = given[name]
            dtype = getattr(value, "dtype", None)
            arrays.append(value if isinstance(value, _core.ndarray) else _core.array(value, dtype=dtype))
        return arrays

    def _report(self):
        last = self._compiled.last_signature() or (self._last and (self._last, False, []))
        if last is None:
            raise RuntimeError("the function was not called yet, so its shapes are not known; call it first")
        return self._compiled.report(*last)

    def explain(self, html=None, measure=False, shapes=None, training=None, gradients=None):
        """What the compiler did, as an `Explanation`: print it, or look at its page. For the shapes of the last call, or
        `shapes`, a dict of shapes (or arrays) by name from which the others must follow.

        html: path of a page to write: graphs before and after the passes, times, buffers. measure: True to time each
        kernel on made-up arrays, or a list of arrays in the order of `names`. training: in which mode; None for that of
        the last call. gradients: names of the arguments whose gradients are computed too; None for those of the last call.

        Raises ValueError where shapes are not known, do not fit, or depend on the values of arrays."""
        from ..explain import explain
        from ..explain.signatures import signature_of
        return explain(self._compiled, signature_of(self, shapes, training, gradients), title=self._title(), html=html,
                       measure=measure)

    def _title(self):
        shown = ", ".join(self.names[:6]) + (f" and {len(self.names) - 6} more" if len(self.names) > 6 else "")
        return f"compiled function of {shown}" if shown else "compiled function"

    def __repr__(self):
        outputs = self.symbol.list_outputs()
        known = self._compiled.compilations
        return (f"<CompiledFunction ({', '.join(self.names)}) -> {', '.join(outputs[:8])}"
                f"{' ...' if len(outputs) > 8 else ''}; compiled for {known} signature{'s' if known != 1 else ''}>")

    def _repr_html_(self):
        from ..explain import notebook_html
        return notebook_html(self)

    @property
    def planned_bytes(self) -> int:
        """Bytes of inputs, outputs and intermediate values of the last call's plan."""
        return self._report()["planned_bytes"]

    @property
    def lower_bound_bytes(self) -> int:
        """What no plan can go below: the largest sum of values that live at once."""
        return self._report()["lower_bound_bytes"]

    @property
    def num_kernels(self) -> int:
        """How many kernels one call runs."""
        return self._report()["num_kernels"]


def compile(symbol, without=(), donate=(), recompute=None, fixed=(), exact=False, autotune=False):
    """A function of the symbol's variables. symbol: a Symbol, or a list of them (then the result is a list).

    donate: names of variables whose arrays may be overwritten, so that the result needs no memory of its own.
    without: names of compiler passes to leave out ('everything' for every one); see `passes()`.
    recompute: how much of what gradients read may be kept until they run, as a share from 0 to 1; the rest is computed
    again from it, cheap values first. True: as little as possible. None: all, or half of it when MXNet's variable
    MXNET_BACKWARD_DO_MIRROR is 1.
    fixed: names of variables that seldom change from call to call, as parameters do: outside training, what follows from
    them alone is computed once, and convolutions lay their weights out for the fastest kernel.
    exact: True takes only algorithms that sum products as they stand, so no Winograd convolutions; so does TWIBIL_EXACT=1.
    autotune: True measures the algorithms of each convolution while compiling, and remembers the best on this machine."""
    single = isinstance(symbol, Symbol) and len(symbol) == 1
    if not isinstance(symbol, Symbol):
        if not isinstance(symbol, (list, tuple)) or not all(isinstance(s, Symbol) for s in symbol):
            raise TypeError(f"compile: a Symbol or a list of them is needed; got {type(symbol).__name__}")
        symbol = Group(symbol)
    return CompiledFunction(symbol, symbol.list_inputs(), single, tuple(without), tuple(donate), recompute, fixed,
                            exact, autotune)
