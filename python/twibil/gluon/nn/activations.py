# SPDX-License-Identifier: Apache-2.0
"""Activation layers, elementwise on arrays of any shape."""
from __future__ import annotations

from ... import initializer, npx
from ..block import HybridBlock


class Activation(HybridBlock):
    """relu, sigmoid, tanh, softrelu, softsign, log_sigmoid, mish, gelu or silu, by name (ValueError for others)."""

    def __init__(self, activation, **kwargs):
        super().__init__(**kwargs)
        self._act_type = activation
        self._function = npx.activation_function(activation)

    def forward(self, x):
        return self._function(x)

    def __repr__(self):
        return f"Activation({self._act_type})"


class LeakyReLU(HybridBlock):
    """x where positive, else alpha * x."""

    def __init__(self, alpha, **kwargs):
        super().__init__(**kwargs)
        if alpha < 0:
            raise ValueError(f"LeakyReLU: alpha must not be negative; got {alpha}")
        self._alpha = alpha

    def forward(self, x):
        return npx.leaky_relu(x, act_type="leaky", slope=self._alpha)

    def __repr__(self):
        return f"LeakyReLU({self._alpha})"


class PReLU(HybridBlock):
    """Leaky rectifier with learnt slopes: one, or one for each of `in_channels` channels (axis 1)."""

    def __init__(self, alpha_initializer=None, in_channels=1, **kwargs):
        super().__init__(**kwargs)
        self.alpha = self.params.get("alpha", shape=(in_channels,),
                                     init=alpha_initializer or initializer.Constant(0.25))

    def forward(self, x):
        return npx.leaky_relu(x, self.alpha.on(x), act_type="prelu")

    def __repr__(self):
        return "PReLU()"


class ELU(HybridBlock):
    """x where positive, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self._alpha = alpha

    def forward(self, x):
        return npx.leaky_relu(x, act_type="elu", slope=self._alpha)

    def __repr__(self):
        return f"ELU(alpha={self._alpha})"


class SELU(HybridBlock):
    """1.0507 * (x where positive, else 1.6733 * (exp(x) - 1))."""

    def forward(self, x):
        return npx.leaky_relu(x, act_type="selu")

    def __repr__(self):
        return "SELU()"


class GELU(HybridBlock):
    """x * Phi(x). approximation: 'erf' is exact, 'tanh' the usual approximation."""

    def __init__(self, approximation="erf", **kwargs):
        super().__init__(**kwargs)
        if approximation not in ("erf", "tanh"):
            raise ValueError(f"GELU: approximation must be 'erf' or 'tanh'; got {approximation!r}")
        self._approximation = approximation

    def forward(self, x):
        if self._approximation == "tanh":
            return 0.5 * x * (1 + npx.activation_function("tanh")(0.7978845608028654 * (x + 0.044715 * x * x * x)))
        return npx.leaky_relu(x, act_type="gelu")

    def __repr__(self):
        return "GELU()"


class Swish(HybridBlock):
    """x * sigmoid(beta * x)."""

    def __init__(self, beta=1.0, **kwargs):
        super().__init__(**kwargs)
        self._beta = beta

    def forward(self, x):
        return x * npx.sigmoid(x if self._beta == 1 else self._beta * x)

    def __repr__(self):
        return f"Swish(beta={self._beta})"


class SiLU(Swish):
    """x * sigmoid(x)."""

    def __init__(self, **kwargs):
        super().__init__(beta=1.0, **kwargs)

    def __repr__(self):
        return "SiLU()"
