# SPDX-License-Identifier: Apache-2.0
"""Initializers: distributions, orthogonality, names, JSON, choice by name."""

import math

import numpy as onp
import pytest

import twibil as mx
from twibil import init, initializer, np
from twibil.gluon import nn


def filled(spec, shape, name="weight"):
    mx.random.seed(3)
    x = np.zeros(shape)
    initializer.create(spec)(initializer.InitDesc(name), x)
    return x.asnumpy()


def test_constants():
    assert (filled("zeros", (2, 3)) == 0).all() and (filled("ones", (2, 3)) == 1).all()
    assert (filled(init.Constant(2.5), (2, 3)) == 2.5).all()
    onp.testing.assert_array_equal(filled(init.Constant([1.0, 2.0, 3.0]), (2, 3)), [[1, 2, 3]] * 2)
    assert filled(init.LSTMBias(2.0), (8,), "weight").tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


def test_distributions():
    u = filled(init.Uniform(0.5), (100, 100))
    assert -0.5 <= u.min() < -0.49 and 0.49 < u.max() <= 0.5 and abs(u.mean()) < 0.01
    n = filled(init.Normal(0.2), (100, 100))
    assert abs(n.std() - 0.2) < 0.01 and abs(n.mean()) < 0.01
    for factor, fan in (("avg", 250), ("in", 200), ("out", 300)):
        x = filled(init.Xavier(factor_type=factor, magnitude=3), (300, 200))
        limit = math.sqrt(3 / fan)
        assert 0.98 * limit < abs(x).max() <= limit
    g = filled(init.Xavier(rnd_type="gaussian", magnitude=2), (64, 32, 3, 3))
    assert abs(g.std() / math.sqrt(2 / (96 * 9 / 2)) - 1) < 0.03
    m = filled(init.MSRAPrelu(slope=0), (100, 100))
    assert abs(m.std() / math.sqrt(2 / 100) - 1) < 0.03


def test_orthogonal():
    for shape in ((4, 10), (10, 4)):
        x = filled(init.Orthogonal(scale=2.0), shape)
        product = x @ x.T if shape[0] < shape[1] else x.T @ x
        onp.testing.assert_allclose(product, 4 * onp.eye(4), atol=1e-4)


def test_bilinear():
    x = filled(init.Bilinear(), (1, 1, 4, 4))[0, 0]
    onp.testing.assert_allclose(x[1], onp.array([0.25, 0.75, 0.75, 0.25]) * 0.75)


def test_names_decide():
    for name, value in (("a.bias", 0), ("a.gamma", 1), ("a.beta", 0), ("a.running_mean", 0), ("a.running_var", 1)):
        assert (filled(init.Xavier(), (5,), name) == value).all()
    with pytest.raises(ValueError, match="tells no kind of parameter"):
        filled(init.Xavier(), (5,), "thing")
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        filled(init.Xavier(), (5,))


def test_json_and_registry():
    x = init.Xavier(rnd_type="gaussian", magnitude=2)
    assert initializer.create(x.dumps()) == x
    assert repr(init.Normal(0.1)) == "Normal(sigma=0.1)"
    with pytest.raises(ValueError, match="Did you mean 'xavier'"):
        initializer.create("xavior")

    @initializer.register
    class Sevens(init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 7

    assert (filled("sevens", (2, 2)) == 7).all()


def test_mixed_and_load():
    net = nn.Sequential()
    net.add(nn.Dense(2, in_units=2, use_bias=False), nn.Dense(2, in_units=2, use_bias=False))
    net.initialize(init.Mixed(["0.*", ".*"], [init.One(), init.Zero()]))
    assert float(net[0].weight.data().sum()) == 4 and float(net[1].weight.data().sum()) == 0
    given = np.full((2, 2), 3.0)
    net.initialize(init.Load({"arg:0.weight": given}, default_init=init.One()), force_reinit=True)
    assert float(net[0].weight.data().sum()) == 12 and float(net[1].weight.data().sum()) == 4
    with pytest.raises(ValueError, match="no value for '1.weight'"):
        net.initialize(init.Load({"0.weight": given}), force_reinit=True)


def test_seed_decides():
    values = []
    for _ in range(2):
        mx.random.seed(8)
        net = nn.Dense(4, in_units=4)
        net.initialize(init.Xavier())
        values.append(net.weight.data().asnumpy())
    onp.testing.assert_array_equal(values[0], values[1])


def test_verbose(capsys):
    net = nn.Dense(2, in_units=2)
    net.initialize(init.One(), verbose=True)
    assert "initialized weight by One" in capsys.readouterr().out
