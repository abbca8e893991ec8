# SPDX-License-Identifier: Apache-2.0
"""Layers without windows: dense, dropout, embedding, flatten, functions as layers."""
from __future__ import annotations

import math

from ... import autograd, np, npx
from ...base import describe, did_you_mean, integer_types
from ...registry import functions
from ...sym import Symbol
from ...trace import for_files
from ..block import Block, HybridBlock
from .activations import Activation


class Dense(HybridBlock):
    """act(x W^T + b). Input (batch, ...) is flattened to (batch, in_units) unless `flatten` is False, when the last
    axis is transformed; output (batch, units) or (..., units). weight: (units, in_units); in_units 0 is taken from the
    input.

    ValueError where the input does not fit the weight."""

    def __init__(self, units, activation=None, use_bias=True, flatten=True, dtype="float32", weight_initializer=None,
                 bias_initializer="zeros", in_units=0, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(units, integer_types) or units <= 0:
            raise ValueError(f"Dense: units must be a positive integer; got {describe(units)}")
        self._units, self._flatten = units, flatten
        self.weight = self.params.get("weight", shape=(units, in_units), init=weight_initializer, dtype=dtype,
                                      allow_deferred_init=True)
        self.bias = self.params.get("bias", shape=(units,), init=bias_initializer, dtype=dtype,
                                    allow_deferred_init=True) if use_bias else None
        self.act = Activation(activation) if activation is not None else None

    def infer_shape(self, x, *_):
        self.weight.shape = (self._units, math.prod(x.shape[1:]) if self._flatten else x.shape[-1])

    def forward(self, x):
        bias = self.bias
        y = npx.fully_connected(x, self.weight.on(x), None if bias is None else bias.on(x), num_hidden=self._units,
                                no_bias=bias is None, flatten=self._flatten)
        return y if self.act is None else self.act(y)

    def __repr__(self):
        units, in_units = self.weight.shape
        return f"Dense({in_units if in_units > 0 else None} -> {units}, {self.act or 'linear'})"


class Dropout(HybridBlock):
    """In training sets elements to zero with probability `rate` and divides the rest by 1 - rate; else the identity.

    axes: axes along which one decision is shared."""

    def __init__(self, rate, axes=(), **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(f"Dropout: rate must be from 0 to 1; got {rate}")
        self._rate, self._axes = rate, tuple(axes)

    def forward(self, x):
        if self._rate == 0 or not (autograd.is_training() or isinstance(x, Symbol) or for_files.on):
            return x
        return npx.dropout(x, p=self._rate, axes=self._axes)

    def __repr__(self):
        return f"Dropout(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """Rows of a table by index: integers of any shape to (*shape, output_dim). IndexError outside [0, input_dim)."""

    def __init__(self, input_dim, output_dim, dtype="float32", weight_initializer=None, sparse_grad=False, **kwargs):
        super().__init__(**kwargs)
        if sparse_grad:
            raise NotImplementedError("Embedding: only dense gradients exist; got sparse_grad=True")
        self._input_dim, self._output_dim, self._dtype = input_dim, output_dim, dtype
        self.weight = self.params.get("weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
                                      allow_deferred_init=True)

    def forward(self, x):
        return npx.embedding(x, self.weight.on(x), input_dim=self._input_dim, output_dim=self._output_dim)

    def __repr__(self):
        return f"Embedding({self._input_dim} -> {self._output_dim}, {self._dtype})"


_flatten = functions("npx")["batch_flatten"]


class Flatten(HybridBlock):
    """(batch, ...) to (batch, rest)."""

    def forward(self, x):
        return _flatten(x)

    def __repr__(self):
        return "Flatten"


class Identity(HybridBlock):
    """The input itself."""

    def forward(self, x):
        return x


def _function(spec, kind: str):
    """A callable from a callable or an operator name, and its name."""
    if isinstance(spec, str):
        for space in (np, npx):
            if hasattr(space, spec):
                return getattr(space, spec), spec
        raise ValueError(f"{kind}: {spec!r} is no operator of np or npx.{did_you_mean(spec, [*dir(np), *dir(npx)])}")
    if callable(spec):
        return spec, getattr(spec, "__name__", type(spec).__name__)
    raise TypeError(f"{kind}: a function or an operator's name is needed; got {describe(spec)}")


class Lambda(Block):
    """A function, or an operator of np or npx by name, as a block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix=prefix)
        self._func_impl, self._func_name = _function(function, "Lambda")

    def forward(self, *args):
        return self._func_impl(*args)

    def __repr__(self):
        return f"{type(self).__name__}({self._func_name})"


class HybridLambda(HybridBlock):
    """As `Lambda`, hybrid. A function is called as f(F, x, ...) with the operator namespace F, as in MXNet."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix=prefix)
        self._func_impl, self._func_name = _function(function, "HybridLambda")
        self._takes_namespace = not isinstance(function, str)

    def forward(self, x, *args):
        if self._takes_namespace:
            from ... import nd
            return self._func_impl(nd, x, *args)
        return self._func_impl(x, *args)

    __repr__ = Lambda.__repr__
