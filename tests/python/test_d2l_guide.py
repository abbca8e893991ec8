# SPDX-License-Identifier: Apache-2.0
"""What further chapters of *Dive into Deep Learning* (MXNet edition) call: the builders' guide, batch normalisation, residual
blocks, convolutions and recurrent networks from scratch, printing in the chapter on anchor boxes."""
import os

import numpy as onp
import pytest

import twibil as mx

os.environ.setdefault("MPLBACKEND", "Agg")
for needed in ("d2l", "matplotlib", "pandas", "requests", "IPython", "matplotlib_inline"):
    pytest.importorskip(needed)
mx.install_as_mxnet()
from d2l import mxnet as d2l  # noqa: E402
from mxnet import autograd, gluon, init, np, npx  # noqa: E402
from mxnet.gluon import nn  # noqa: E402
from mxnet.numpy.random import multinomial  # noqa: E402

npx.set_np()


def test_parameters_are_shared_by_params():
    shared = nn.Dense(8, activation="relu")
    net = nn.Sequential()
    net.add(nn.Dense(8, activation="relu"), shared, nn.Dense(8, activation="relu", params=shared.params), nn.Dense(10))
    net.initialize()
    net(np.random.uniform(size=(2, 20)))
    net[1].weight.data()[0, 0] = 100
    assert (net[1].weight.data()[0] == net[2].weight.data()[0]).all() and float(net[2].weight.data()[0, 0]) == 100
    assert "weight" in str(net[1].params) and net[3].weight.grad().shape == (10, 8)


def test_initializers_of_ones_own():
    seen = []

    class Far(init.Initializer):
        def _init_weight(self, name, data):
            seen.append(data.shape)
            data[:] = np.random.uniform(-10, 10, data.shape)
            data *= np.abs(data) >= 5

    net = nn.Sequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(1))
    net.initialize()
    net(np.ones((2, 4)))
    net.initialize(Far(), force_reinit=True)
    values = onp.abs(net[0].weight.data().asnumpy())
    assert seen == [(8, 4), (1, 8)] and ((values == 0) | (values >= 5)).all() and (values > 0).any()
    net[0].weight.data()[:] += 1
    net[0].weight.data()[0, 0] = 42
    assert float(net[0].weight.data()[0, 0]) == 42
    net[0].weight.initialize(init=init.Xavier(), force_reinit=True)
    net[1].initialize(init=init.Constant(42), force_reinit=True)
    assert net[1].weight.data().tolist() == [[42] * 8] and abs(float(net[0].weight.data()[0, 0])) < 2


def test_layers_with_parameters_of_their_own(tmp_path):
    class Product(nn.Block):
        def __init__(self, units, in_units, **kwargs):
            super().__init__(**kwargs)
            self.weight = self.params.get("weight", shape=(in_units, units))
            self.bias = self.params.get("bias", shape=(units,))

        def forward(self, x):
            return npx.relu(np.dot(x, self.weight.data(ctx=x.ctx)) + self.bias.data(ctx=x.ctx))

    net = nn.Sequential()
    net.add(Product(8, in_units=6), Product(1, in_units=8))
    net.initialize()
    y = net(d2l.rand(2, 6))
    assert y.shape == (2, 1) and len(net.collect_params()) == 4
    net.save_parameters(str(tmp_path / "net.params"))
    x, z = np.arange(4), np.zeros(4)
    npx.save(str(tmp_path / "files"), [x, z])
    assert [a.tolist() for a in npx.load(str(tmp_path / "files"))] == [x.tolist(), z.tolist()]
    npx.save(str(tmp_path / "dict"), {"x": x, "z": z})
    assert set(npx.load(str(tmp_path / "dict"))) == {"x", "z"}


def test_batch_normalisation_from_scratch():
    class Norm(nn.Block):
        def __init__(self, shape):
            super().__init__()
            self.gamma = self.params.get("gamma", shape=shape, init=init.One())
            self.beta = self.params.get("beta", shape=shape, init=init.Zero())
            self.mean, self.var = np.zeros(shape), np.ones(shape)

        def forward(self, X):
            if self.mean.ctx != X.ctx:
                self.mean, self.var = self.mean.copyto(X.ctx), self.var.copyto(X.ctx)
            if not autograd.is_training():
                return self.gamma.data() * (X - self.mean) / np.sqrt(self.var + 1e-12) + self.beta.data()
            mean = X.mean(axis=(0, 2, 3), keepdims=True)
            var = ((X - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
            self.mean, self.var = 0.9 * self.mean + 0.1 * mean, 0.9 * self.var + 0.1 * var
            return self.gamma.data() * (X - mean) / np.sqrt(var + 1e-12) + self.beta.data()

    X = np.random.normal(3, 2, (4, 2, 5, 5))
    own, layer = Norm((1, 2, 1, 1)), nn.BatchNorm(epsilon=1e-12, momentum=0.9)
    own.initialize(), layer.initialize()
    results = []
    for net in (own, layer):
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        with autograd.record():
            loss = (net(X) ** 3).mean()
        loss.backward()
        trainer.step(1)
        results.append([float(loss), *net.gamma.data().reshape(-1).tolist(), *net(X).reshape(-1).tolist()])
    onp.testing.assert_allclose(results[0], results[1], rtol=2e-4, atol=2e-4)


def test_residual_blocks():
    block = d2l.Residual(3)
    block.initialize()
    assert block(np.random.randn(4, 3, 6, 6)).shape == (4, 3, 6, 6)
    wide = d2l.Residual(6, use_1x1conv=True, strides=2)
    wide.initialize()
    assert wide(np.random.randn(4, 3, 6, 6)).shape == (4, 6, 3, 3)


def test_convolution_learns_an_edge():
    X = np.ones((1, 1, 6, 8))
    X[:, :, :, 2:6] = 0
    kernel = np.array([[1.0, -1.0]])
    Y = d2l.corr2d(X[0, 0], kernel).reshape(1, 1, 6, 7)
    conv = nn.Conv2D(1, kernel_size=(1, 2), use_bias=False)
    conv.initialize()
    for _ in range(20):
        with autograd.record():
            loss = (conv(X) - Y) ** 2
        loss.backward()
        conv.weight.data()[:] -= 3e-2 * conv.weight.grad()
    onp.testing.assert_allclose(conv.weight.data().reshape(-1).asnumpy(), [1, -1], atol=0.1)


@pytest.mark.parametrize("kind", ["scratch", "concise"])
def test_recurrent_network(kind):
    num_inputs, hidden, steps, batch = 5, 16, 4, 3
    rnn = d2l.RNNScratch(num_inputs, hidden) if kind == "scratch" else d2l.RNN(hidden)
    if kind == "concise":
        rnn.initialize()
    outputs, state = rnn(np.ones((steps, batch, num_inputs)))
    last = outputs[-1]
    state = state[0] if isinstance(state, (list, tuple)) else state
    assert len(outputs) == steps and last.shape == (batch, hidden)
    onp.testing.assert_allclose(state.reshape(batch, hidden).asnumpy(), last.asnumpy(), rtol=1e-6)


def test_counts_of_coins():
    counts = multinomial(100, [0.5, 0.5], size=10000)
    assert counts.shape == (10000, 2) and (counts.sum(axis=1) == 100).all()
    assert abs(float(counts.astype(np.float32)[:, 0].mean()) - 50) < 0.5
