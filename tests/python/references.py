# SPDX-License-Identifier: Apache-2.0
"""What operators that NumPy lacks should compute, in float64: slow, plain, and independent of the library."""
from __future__ import annotations

import math

import numpy as np


def each(function):
    """A function of one Python float, over arrays."""
    return lambda x: np.vectorize(function, otypes=[np.float64])(x) if np.size(x) else np.zeros(np.shape(x))


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _erfinv(y):
    """Bisection, then Newton: erf is monotone."""
    if not -1 < y < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    low, high = -6.0, 6.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    x = (low + high) / 2
    for _ in range(3):
        x -= (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def _digamma(x):
    total = 0.0
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0 and x == math.floor(x):
        return math.nan
    if x < 0:
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    while x < 20:
        total -= 1 / x
        x += 1
    s = 1 / (x * x)
    return total + math.log(x) - 0.5 / x - s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s / 132))))


def _gamma(x):
    try:
        return math.gamma(x)
    except (ValueError, OverflowError):
        return math.copysign(math.inf, x) if x == 0 else math.nan if x < 0 else math.inf


def _lgamma(x):
    try:
        return math.lgamma(x)
    except ValueError:
        return math.inf


erf = each(math.erf)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def mish(x):
    return x * np.tanh(softplus(x))


def selu(x):
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))


def smooth_l1(x, scalar=1.0):
    s = scalar * scalar
    return np.where(np.abs(x) < 1 / s, 0.5 * s * x * x, np.abs(x) - 0.5 / s)


def prelu(x, gamma):
    return np.where(x > 0, x, gamma * x)


def leaky_relu(x, gamma=None, act_type="leaky", slope=0.25, lower_bound=0.125, upper_bound=0.334):
    if act_type == "prelu":
        return prelu(x, gamma.reshape(gamma.shape + (1,) * max(0, x.ndim - 2)))
    if act_type == "rrelu":
        slope = (lower_bound + upper_bound) / 2
    return {"elu": lambda: np.where(x > 0, x, slope * np.expm1(x)), "selu": lambda: selu(x), "gelu": lambda: gelu(x)}.get(
        act_type, lambda: np.where(x > 0, x, slope * x))()


def activation(x, act_type):
    return {"relu": lambda: np.maximum(x, 0), "sigmoid": lambda: sigmoid(x), "tanh": lambda: np.tanh(x), "softrelu": lambda: softplus(x),
            "softsign": lambda: x / (1 + np.abs(x)), "log_sigmoid": lambda: -softplus(-x), "mish": lambda: mish(x)}[act_type]()


def round_away(x):
    return np.trunc(x + np.copysign(0.5, x))


def share_of_larger(x, y, dy):
    return np.where((x > y) | np.isnan(y), dy, np.where(x == y, dy / 2, 0))


# By the operator's registered name. Arguments: the arrays, then the sample's attributes by keyword.
REFERENCES = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "log_sigmoid": lambda x: -softplus(-x),
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hard_sigmoid": lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1),
    "erf": erf,
    "erfinv": each(_erfinv),
    "gamma": each(_gamma),
    "gammaln": each(_lgamma),
    "digamma": each(_digamma),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "gelu_erf": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu": lambda x, approximation="erf": gelu(x) if approximation == "erf" else gelu_tanh(x),
    "silu": lambda x: x * sigmoid(x),
    "mish": mish,
    "selu": selu,
    "elu": lambda x, slope=0.25: np.where(x > 0, x, slope * np.expm1(x)),
    "leaky": lambda x, slope=0.25: np.where(x > 0, x, slope * x),
    "prelu": prelu,
    "leaky_relu": leaky_relu,
    "activation": activation,
    "smooth_l1": smooth_l1,
    "round_away": round_away,
    "round_scaled": lambda x, up=1.0, down=1.0: np.rint(x * up / down) / up * down,
    "ldexp": lambda x, y: x * np.exp2(y),
    "clip": lambda x, a_min=None, a_max=None: x if a_min is None and a_max is None else np.clip(x, a_min, a_max),
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "share_of_larger": share_of_larger,
    "pass_between": lambda x, low, high, dy: np.where((x >= low) & (x <= high), dy, 0),
    "replace_nonfinite": lambda x, nan=0, posinf=0, neginf=0: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    "where": lambda c, x, y: np.where(c != 0, x, y),
    "copysign": lambda x, y: np.copysign(x, y),
}
