# SPDX-License-Identifier: Apache-2.0
"""Convolution and transposed convolution layers in one to three dimensions."""
from __future__ import annotations

from ... import npx
from ...base import describe, integer_types
from ..block import HybridBlock
from .activations import Activation


def window(value, dims: int, name: str) -> tuple:
    """A number or a sequence of `dims` integers as a tuple; ValueError otherwise."""
    if isinstance(value, integer_types):
        return (value,) * dims
    values = tuple(int(v) for v in value) if isinstance(value, (tuple, list)) else ()
    if len(values) != dims:
        raise ValueError(f"{name} must be an integer or {dims} of them; got {describe(value)}")
    return values


def check_layout(layout: str, dims: int, kind: str) -> str:
    """The layout, if it is channels first or last for `dims` spatial axes; ValueError otherwise."""
    space = "DHW"[3 - dims:]
    if layout not in ("NC" + space, "N" + space + "C"):
        raise ValueError(f"{kind}: layout must be 'NC{space}' or 'N{space}C'; got {layout!r}")
    return layout


class _Conv(HybridBlock):
    """What all convolutions share. `dims` and `transposed` are set by the classes below."""

    dims = 0
    transposed = False

    def __init__(self, channels, kernel_size, strides=1, padding=0, dilation=1, groups=1, layout=None, in_channels=0,
                 activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", adj=None, **kwargs):
        super().__init__(**kwargs)
        kind = type(self).__name__
        if not isinstance(channels, integer_types) or channels <= 0 or channels % groups or in_channels % groups:
            raise ValueError(f"{kind}: channels must be positive multiples of groups={groups}; got "
                             f"channels={channels}, in_channels={in_channels}")
        sizes = {name: window(value, self.dims, f"{kind}: {label}") for name, label, value in
                 (("kernel", "kernel_size", kernel_size), ("stride", "strides", strides), ("pad", "padding", padding),
                  ("dilate", "dilation", dilation))}
        layout = check_layout(layout or "NC" + "DHW"[3 - self.dims:], self.dims, kind)
        self._channels, self._in_channels = channels, in_channels
        self._attrs = {**sizes, "num_filter": channels, "num_group": groups, "no_bias": not use_bias, "layout": layout}
        if adj is not None:
            self._attrs["adj"] = window(adj, self.dims, f"{kind}: output_padding")
        self.weight = self.params.get("weight", shape=self._weight_shape(in_channels), init=weight_initializer,
                                      allow_deferred_init=True)
        self.bias = self.params.get("bias", shape=(channels,), init=bias_initializer,
                                    allow_deferred_init=True) if use_bias else None
        self.act = Activation(activation) if activation is not None else None

    def _weight_shape(self, in_channels: int) -> tuple:
        a = self._attrs
        first, second = ((in_channels, self._channels // a["num_group"]) if self.transposed
                         else (self._channels, in_channels // a["num_group"]))
        return (first, second, *a["kernel"]) if a["layout"][1] == "C" else (first, *a["kernel"], second)

    def infer_shape(self, x, *_):
        channels = x.shape[self._attrs["layout"].index("C")]
        if channels % self._attrs["num_group"]:
            raise ValueError(f"{type(self).__name__}: {channels} input channels do not divide into "
                             f"{self._attrs['num_group']} groups")
        self._in_channels = channels
        self.weight.shape = self._weight_shape(channels)

    def forward(self, x):
        op = npx.deconvolution if self.transposed else npx.convolution
        bias = self.bias
        y = op(x, self.weight.on(x), None if bias is None else bias.on(x), **self._attrs)
        return y if self.act is None else self.act(y)

    def __repr__(self):
        a, shape = self._attrs, self.weight.shape
        n = shape[0 if self.transposed else 1 if a["layout"][1] == "C" else -1] * (1 if self.transposed
                                                                                  else a["num_group"])
        text = f"{type(self).__name__}({n if n > 0 else None} -> {self._channels}, kernel_size={a['kernel']}, "
        text += f"stride={a['stride']}"
        if any(a["pad"]):
            text += f", padding={a['pad']}"
        if any(d != 1 for d in a["dilate"]):
            text += f", dilation={a['dilate']}"
        if any(a.get("adj", ())):
            text += f", output_padding={a['adj']}"
        if a["num_group"] != 1:
            text += f", groups={a['num_group']}"
        if self.bias is None:
            text += ", bias=False"
        return text + (f", {self.act})" if self.act else ")")


def _layer(name: str, dims: int, transposed: bool):
    """One of the six classes: positional arguments in MXNet's order, which differs for transposed ones."""
    space = "DHW"[3 - dims:]
    if transposed:
        def __init__(self, channels, kernel_size, strides=1, padding=0, output_padding=0, dilation=1, groups=1,
                     layout="NC" + space, activation=None, use_bias=True, weight_initializer=None,
                     bias_initializer="zeros", in_channels=0, **kwargs):
            _Conv.__init__(self, channels, kernel_size, strides, padding, dilation, groups, layout, in_channels,
                           activation, use_bias, weight_initializer, bias_initializer, adj=output_padding, **kwargs)
        what = "Transposed convolution: size (n - 1) * stride - 2 * pad + dilate * (kernel - 1) + output_padding + 1"
    else:
        def __init__(self, channels, kernel_size, strides=1, padding=0, dilation=1, groups=1, layout="NC" + space,
                     activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0,
                     **kwargs):
            _Conv.__init__(self, channels, kernel_size, strides, padding, dilation, groups, layout, in_channels,
                           activation, use_bias, weight_initializer, bias_initializer, **kwargs)
        what = "Convolution: size floor((n + 2 * pad - dilate * (kernel - 1) - 1) / stride) + 1"
    doc = (f"{what} along each of {dims} axes.\n\n    Input NC{space} (or channels last by `layout`); in_channels 0 is "
           "taken from the input.\n    ValueError for sizes that do not fit.")
    return type(name, (_Conv,), {"dims": dims, "transposed": transposed, "__init__": __init__, "__doc__": doc,
                                 "__module__": __name__, "__qualname__": name})


Conv1D, Conv2D, Conv3D = (_layer(f"Conv{d}D", d, False) for d in (1, 2, 3))
Conv1DTranspose, Conv2DTranspose, Conv3DTranspose = (_layer(f"Conv{d}DTranspose", d, True) for d in (1, 2, 3))
