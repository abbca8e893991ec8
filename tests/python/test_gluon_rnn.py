# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers against step-by-step formulas, their gradients' presence, states, layouts and names in files."""

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, init, np
from twibil.gluon import nn, rnn

X = onp.random.default_rng(4).standard_normal((5, 2, 3)).astype("float32")


def sigmoid(v):
    return 1 / (1 + onp.exp(-v))


def step(kind, i, h, h_state, c_state):
    n = h_state.shape[1]

    def part(v, k):
        return v[:, k * n : (k + 1) * n]

    if kind == "RNN":
        return onp.maximum(i + h, 0), None
    if kind == "GRU":
        r, z = sigmoid(part(i, 0) + part(h, 0)), sigmoid(part(i, 1) + part(h, 1))
        return (1 - z) * onp.tanh(part(i, 2) + r * part(h, 2)) + z * h_state, None
    g = i + h
    c = sigmoid(part(g, 1)) * c_state + sigmoid(part(g, 0)) * onp.tanh(part(g, 2))
    return sigmoid(part(g, 3)) * onp.tanh(c), c


def reference(kind, layer, x, side="l"):
    w, r, b, d = (
        layer.collect_params()[f"{side}0_{n}"].data().asnumpy()
        for n in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")
    )
    h = c = onp.zeros((x.shape[1], r.shape[1]))
    out = [None] * len(x)
    for t in range(len(x)) if side == "l" else reversed(range(len(x))):
        h, c = step(kind, x[t] @ w.T + b, h @ r.T + d, h, c)
        out[t] = h
    return onp.stack(out), h


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_formula(kind):
    layer = getattr(rnn, kind)(4, i2h_bias_initializer="ones")
    layer.initialize(init.Normal(0.5))
    layer(np.array(X))
    out, last = reference(kind, layer, X)
    onp.testing.assert_allclose(layer(np.array(X)).asnumpy(), out, rtol=1e-4, atol=1e-5)
    y, states = layer(np.array(X), layer.begin_state(2))
    onp.testing.assert_allclose(states[0][0].asnumpy(), last, rtol=1e-4, atol=1e-5)
    assert len(states) == (2 if kind == "LSTM" else 1)
    batch_first = getattr(rnn, kind)(4, layout="NTC", params=layer.params)
    onp.testing.assert_allclose(
        batch_first(np.array(X.swapaxes(0, 1))).asnumpy(), y.swapaxes(0, 1).asnumpy(), rtol=1e-5
    )


def test_two_directions_and_layers():
    layer = rnn.GRU(4, num_layers=2, bidirectional=True, dropout=0.5)
    layer.initialize(init.Normal(0.5))
    with autograd.record():
        y, (h,) = layer(np.array(X), layer.begin_state(2))
    y.backward()
    assert y.shape == (5, 2, 8) and h.shape == (4, 2, 4)
    assert all(float(np.abs(p.grad()).sum()) > 0 for p in layer.collect_params().values())
    single = rnn.GRU(4, bidirectional=True)
    single.initialize(init.Normal(0.5))
    y = single(np.array(X)).asnumpy()
    for k, side in enumerate("lr"):
        onp.testing.assert_allclose(
            y[:, :, k * 4 : k * 4 + 4], reference("GRU", single, X, side)[0], rtol=1e-4, atol=1e-5
        )


def test_names_in_files(tmp_path):
    path = str(tmp_path / "r.params")
    net = nn.Sequential()
    net.add(rnn.LSTM(4, input_size=3), rnn.GRU(2, bidirectional=True, input_size=4))
    net.initialize()
    net.save_parameters(path)
    names = list(mx.nd.load(path))
    assert names[0] == "0._unfused.0.i2h_weight" and "1._unfused.0.r_cell.h2h_bias" in names
    net.load_parameters(path)
    net.load_dict({k: p.data() for k, p in net.collect_params().items()})
    assert list(net.collect_params())[0] == "0.l0_i2h_weight"


def test_errors():
    with pytest.raises(ValueError, match="layout must be"):
        rnn.RNN(4, layout="NCT")
    layer = rnn.LSTM(4)
    layer.initialize()
    with pytest.raises(ValueError, match=r"2 states of shape \[1, 2, 4\]"):
        layer(np.array(X), np.zeros((1, 2, 4)))
    assert repr(rnn.GRU(4, 2, bidirectional=True)) == "GRU(None -> 4, TNC, num_layers=2, bidirectional)"
