# SPDX-License-Identifier: Apache-2.0
"""`SymbolBlock`, `export` and `imports`: networks as graphs, and graphs as blocks."""
import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, np
from twibil.gluon import nn

pytestmark = pytest.mark.skipif(not hasattr(mx.sym.Symbol, "save"), reason="symbols have no files")


def rand(*shape, seed=0):
    return np.array(onp.random.RandomState(seed).randn(*shape).astype("float32"))


def convnet():
    mx.random.seed(0)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.Dropout(0.5), nn.MaxPool2D(2),
            nn.Flatten(), nn.Dense(8, activation="tanh"), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    return net


def as_block(net):
    return gluon.SymbolBlock(net(mx.sym.Variable("data")), mx.sym.Variable("data"), params=net.collect_params())


def test_symbol_of_a_network_as_a_block():
    net, x = convnet(), rand(2, 3, 8, 8)
    wanted = net(x)
    block = as_block(net)
    onp.testing.assert_allclose(block(x).asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)
    assert set(block.collect_params()) == set(net.collect_params())
    assert block.collect_params()["0.weight"] is net[0].weight
    assert block.collect_params()["1.running_mean"].grad_req == "null"
    outer = nn.HybridSequential()
    outer.add(block, nn.Dense(2, in_units=3))
    outer[1].initialize()
    wanted = outer(x)
    outer.hybridize()
    outer(x)
    onp.testing.assert_allclose(outer(x).asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)


def test_training_a_symbol_block():
    x, y = rand(4, 3, 8, 8), np.array([0, 1, 2, 1])
    runs = []
    for make in (lambda n: n, as_block):
        net = convnet()
        net(x)
        net = make(net)
        loss, trainer = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.Trainer(net.collect_params(), "sgd",
                                                                            {"learning_rate": 0.1})
        mx.random.seed(5)
        for _ in range(3):
            with autograd.record():
                error = loss(net(x), y)
            error.backward()
            trainer.step(4)
        runs.append([error.asnumpy()] + [p.data().asnumpy() for _, p in sorted(net.collect_params().items())])
    for a, b in zip(*runs):
        onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_internals_as_features():
    net, x = convnet(), rand(2, 3, 8, 8)
    net(x)
    symbol = net(mx.sym.Variable("data"))
    internals = symbol.get_internals()
    names = [n for n in internals.list_outputs() if n.endswith("output")]
    block = gluon.SymbolBlock([internals[names[0]], symbol], ["data"], params=net.collect_params())
    first, last = block(x)
    onp.testing.assert_allclose(first.asnumpy(), net[0](x).asnumpy(), rtol=1e-5, atol=1e-5)
    onp.testing.assert_allclose(last.asnumpy(), net(x).asnumpy(), rtol=1e-5, atol=1e-5)


def test_parameters_wait_for_shapes():
    data = mx.sym.Variable("data")
    out = nn.HybridSequential()
    out.add(nn.Dense(4), nn.BatchNorm())
    block = gluon.SymbolBlock(out(data), data)
    assert block.collect_params()["0.weight"].shape in (None, (4, 0), (4, -1))
    block.initialize()
    assert block(rand(2, 5)).shape == (2, 4)
    assert block.collect_params()["0.weight"].shape == (4, 5)
    block.cast("float64")
    assert str(block(rand(2, 5).astype("float64")).dtype) == "float64"


def test_mistakes():
    net = convnet()
    symbol = net(mx.sym.Variable("data"))
    with pytest.raises(ValueError, match="no variable 'date'"):
        gluon.SymbolBlock(symbol, ["date"])
    with pytest.raises(TypeError, match="variables or their names"):
        gluon.SymbolBlock(symbol, [symbol[0] + 1, 3])
    with pytest.raises(TypeError, match="takes 1 inputs"):
        gluon.SymbolBlock(symbol, ["data"])(1, 2)


def test_export_and_import(tmp_path):
    net, x = convnet(), rand(2, 3, 8, 8)
    net.hybridize()
    net(x)
    wanted = net(x)
    files = net.export(str(tmp_path / "net"), epoch=3)
    assert files == (str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0003.params"))
    names = set(mx.nd.load(files[1]))
    assert "arg:0.weight" in names and "aux:1.running_mean" in names
    block = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    onp.testing.assert_allclose(block(x).asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)
    onp.testing.assert_allclose(block(rand(5, 3, 8, 8)).asnumpy(), net(rand(5, 3, 8, 8)).asnumpy(), rtol=1e-4, atol=1e-5)
    assert any("ropout" in name for name in mx.sym.load(files[0]).get_internals().list_outputs())
    again = block.export(str(tmp_path / "again"))
    other = gluon.SymbolBlock.imports(again[0], "data", again[1])
    onp.testing.assert_allclose(other(x).asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(OSError):
        gluon.SymbolBlock.imports(str(tmp_path / "none.json"), "data")


def test_export_of_several_inputs(tmp_path):
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4)

        def forward(self, x, state):
            return self.fc(x) + state, x

    net, x, s = Net(), rand(2, 3), rand(2, 4)
    net.initialize()
    net.hybridize()
    wanted = net(x, s)
    files = net.export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(files[0], ["data0", "data1"], files[1])
    for a, b in zip(block(x, s), wanted):
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
