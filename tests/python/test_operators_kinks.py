# SPDX-License-Identifier: Apache-2.0
"""Gradients where a function has a kink, a tie or a limit: places that finite differences cannot judge."""
from __future__ import annotations

import math

import numpy as np
import pytest
import registry as reg


def gradients(name, *inputs, attrs="", dtype="float64"):
    arrays = [None if x is None else reg.array(np.asarray(x, dtype)) for x in inputs]
    given = [a for a in arrays if a is not None]
    for a in given:
        a.attach_grad()
    before = reg._core.set_recording(True)
    try:
        y = reg._core.call_operator(name, arrays, attrs)[0]
    finally:
        reg._core.set_recording(before)
    reg._core.backward([y])
    reg.count("kinks", sum(a.size for a in given))
    return [None if a is None else a.grad.asnumpy() for a in arrays]


INF, NAN = math.inf, math.nan

# operator, attributes, inputs, gradients
CASES = [
    ("relu", "", [[-1, 0, 2]], [[0, 0, 1]]),
    ("absolute", "", [[-3, 0, 2]], [[-1, 0, 1]]),
    ("sign", "", [[-3, 0, 2]], [[0, 0, 0]]),
    ("floor", "", [[-1.5, 0, 2]], [[0, 0, 0]]),
    ("sigmoid", "", [[-800, 0, 800]], [[0, 0.25, 0]]),
    ("log_sigmoid", "", [[-800, 0, 800]], [[1, 0.5, 0]]),
    ("softplus", "", [[-800, 0, 800]], [[0, 0.5, 1]]),
    ("softsign", "", [[-1, 0, 3]], [[0.25, 1, 0.0625]]),
    ("tanh", "", [[-400, 0, 400]], [[0, 1, 0]]),
    ("mish", "", [[-800, 0, 800]], [[0, 0.6, 1]]),
    ("silu", "", [[-800, 0, 800]], [[0, 0.5, 1]]),
    ("gelu", "", [[-80, 0, 80]], [[0, 0.5, 1]]),
    ("leaky", "slope=0.25", [[-2, 0, 2]], [[0.25, 0.25, 1]]),
    ("elu", "slope=0.5", [[-800, 0, 800]], [[0, 0.5, 1]]),
    ("hard_sigmoid", "", [[-3, -2.5, 0, 2.5, 3]], [[0, 0, 0.2, 0, 0]]),
    ("smooth_l1", "", [[-3, -1, 0, 0.5, 1, 3]], [[-1, -1, 0, 0.5, 1, 1]]),
    ("maximum", "", [[1, 2, 3], [1, 3, 2]], [[0.5, 0, 1], [0.5, 1, 0]]),
    ("minimum", "", [[1, 2, 3], [1, 3, 2]], [[0.5, 1, 0], [0.5, 0, 1]]),
    ("fmax", "", [[1, NAN, 3], [1, 3, NAN]], [[0.5, 0, 1], [0.5, 1, 0]]),
    ("fmin", "", [[1, NAN, 3], [1, 3, NAN]], [[0.5, 0, 1], [0.5, 1, 0]]),
    ("clip", "", [[-2, -1, 0, 2, 3], -1.0, 2.0], [[0, 1, 1, 1, 0], 1, 1]),
    ("clip", "", [[-2, 0, 1], 0], [[0, 1, 1], 1]),
    ("clip", "", [[-2, 0, 1], None, 0], [[1, 1, 0], None, 1]),
    ("clip", "", [[-2, 0, 5], [1, 1, 1], [0, 2, 3]], [[0, 0, 0], [0, 1, 0], [1, 0, 1]]),
    ("power", "", [[0, 0, 0, -2], [2, 1, 0, 3]], [[0, 1, 0, 12], [0, 0, 0, 0]]),
    ("float_power", "", [[0, 2], [2, 3]], [[0, 12], [0, 8 * math.log(2)]]),
    ("hypot", "", [[0, 3], [0, 4]], [[0, 0.6], [0, 0.8]]),
    ("arctan2", "", [[0, 1], [0, 0]], [[0, 0], [0, -1]]),
    ("logaddexp", "", [[0, 800], [0, -800]], [[0.5, 1], [0.5, 0]]),
    ("copysign", "", [[-2, 0, 3], [1, 1, -1]], [[-1, 0, -1], [0, 0, 0]]),
    ("heaviside", "", [[-1, 0, 1], [5, 5, 5]], [[0, 0, 0], [0, 1, 0]]),
    ("sqrt", "", [[0, 4]], [[INF, 0.25]]),
    ("cbrt", "", [[-8, 8]], [[1 / 12, 1 / 12]]),
    ("expm1", "", [[-20, 0]], [[math.exp(-20), 1]]),
    ("nan_to_num", "", [[NAN, INF, -INF, 1]], [[0, 0, 0, 1]]),
    ("square", "", [[-1, 0]], [[-2, 0]]),
]


@pytest.mark.parametrize("name, attrs, inputs, want", CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_gradient(name, attrs, inputs, want):
    got = gradients(name, *inputs, attrs=attrs)
    for g, w in zip(got, want):
        if w is None:
            continue
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)


def test_where_stops_what_is_not_taken():
    x = reg.array(np.array([0.0, 4.0]))
    x.attach_grad()
    before = reg._core.set_recording(True)
    try:
        root = reg._core.call_operator("sqrt", [x])[0]
        y = reg._core.call_operator("where", [reg.array(np.array([False, True])), root, 0.0])[0]
    finally:
        reg._core.set_recording(before)
    reg._core.backward([y])
    assert x.grad.asnumpy()[1] == 0.25


SPECIAL = [
    ("maximum", [[NAN, 1], [1, NAN]], [NAN, NAN]),
    ("fmax", [[NAN, 1, NAN], [1, NAN, NAN]], [1, 1, NAN]),
    ("relu", [[NAN, -INF, INF]], [NAN, 0, INF]),
    ("sign", [[NAN, -0.0, -INF]], [NAN, 0, -1]),
    ("logaddexp", [[-INF, INF, 1], [-INF, INF, -INF]], [-INF, INF, 1]),
    ("heaviside", [[NAN, 0, -1], [0.5, 0.5, 0.5]], [NAN, 0.5, 0]),
    ("isnan", [[NAN, INF, 0]], [True, False, False]),
    ("isinf", [[NAN, INF, -INF]], [False, True, True]),
    ("isfinite", [[NAN, INF, 0]], [False, False, True]),
    ("isposinf", [[NAN, INF, -INF]], [False, True, False]),
    ("isneginf", [[NAN, INF, -INF]], [False, False, True]),
    ("signbit", [[-0.0, 0.0, -INF]], [True, False, True]),
    ("equal", [[NAN, INF, 0.0], [NAN, INF, -0.0]], [False, True, True]),
    ("not_equal", [[NAN, INF], [NAN, INF]], [True, False]),
    ("logical_not", [[NAN, 0, -0.0]], [False, True, True]),
    ("floor_divide", [[1, -1, 0], [0, 0, 0]], [INF, -INF, NAN]),
    ("mod", [[-1, 1, -0.5], [3, -3, 3]], [2, -2, 2.5]),
    ("fmod", [[-1, 1], [3, -3]], [-1, 1]),
    ("rint", [[0.5, 1.5, -0.5]], [0, 2, -0.0]),
    ("round_away", [[0.5, 1.5, -0.5]], [1, 2, -1]),
    ("log", [[0, -1, INF]], [-INF, NAN, INF]),
    ("arccosh", [[0.5, 1]], [NAN, 0]),
    ("erfinv", [[-1, 1, 2, 0]], [-INF, INF, NAN, 0]),
    ("gamma", [[1, 5, 0.5, 35]], [1, 24, math.sqrt(math.pi), math.gamma(35)]),
    ("softsign", [[-3, 0]], [-0.75, 0]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, inputs, want", SPECIAL, ids=lambda v: v if isinstance(v, str) else "")
def test_special_values(name, inputs, want, dtype):
    got = reg._core.call_operator(name, [reg.array(np.asarray(x, dtype)) for x in inputs])[0].asnumpy()
    reg.count("special values", len(want))
    np.testing.assert_allclose(got.astype(float), np.asarray(want, float), rtol=1e-6 if dtype == "float32" else 1e-13)


def test_gamma_at_the_edge_of_float64():
    got = reg._core.call_operator("gamma", [reg.array(np.array([171.0, 172.0]))])[0].asnumpy()
    np.testing.assert_allclose(got, [math.gamma(171), INF], rtol=1e-13)


def test_nan_to_num_takes_the_limits_of_the_dtype():
    for dtype, largest in [("float16", 65504), ("bfloat16", 3.3895313892515355e38), ("float32", np.finfo("float32").max), ("float64", np.finfo("float64").max)]:
        x = reg.array(np.array([NAN, INF, -INF, 2], "float64" if dtype == "float64" else "float32")).astype(dtype)
        got = reg._core.call_operator("nan_to_num", [x])[0].asnumpy().astype(float)
        np.testing.assert_array_equal(got, [0, largest, -largest, 2])


def test_round_of_integers():
    x = reg.array(np.array([14, 15, -26, 105], "int32"))
    np.testing.assert_array_equal(reg._core.call_operator("round", [x], "decimals=-1")[0].asnumpy(), np.round(np.array([14, 15, -26, 105]), -1))


def test_clip_of_integers_by_floats_is_float():
    x = reg.array(np.array([0, 1, 5], "int32"))
    got = reg._core.call_operator("clip", [x, 0.5, 2.5])[0]
    assert str(got.dtype) == "float32"
    np.testing.assert_array_equal(got.asnumpy(), [0.5, 1, 2.5])


def test_topk_sends_its_gradient_to_the_places_it_took():
    x = reg.array(np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]]))
    x.attach_grad()
    before = reg._core.set_recording(True)
    try:
        y = reg._core.call_operator("topk", [x], "k=2, ret_typ=value")[0]
    finally:
        reg._core.set_recording(before)
    reg._core.backward([y])
    np.testing.assert_array_equal(x.grad.asnumpy(), [[0, 1, 1], [1, 0, 1]])
