# SPDX-License-Identifier: Apache-2.0
"""Blocks: registration, names, printing, hooks, saving and loading, deferred shapes, errors that name the block."""

import copy
import pickle

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, init, np, npx
from twibil.gluon import nn


def rand(*shape, seed=0):
    return np.array(onp.random.default_rng(seed).standard_normal(shape).astype("float32"))


class MLP(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = nn.Dense(8, activation="relu")
        self.out = nn.Dense(3)

    def forward(self, x):
        return self.out(self.hidden(x))


def test_structural_names():
    net = MLP()
    net.initialize()
    assert list(net.collect_params()) == ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]
    assert list(net.collect_params(".*bias")) == ["hidden.bias", "out.bias"]
    assert isinstance(net.collect_params(), gluon.parameter.ParameterDict)
    seq = nn.Sequential()
    seq.add(net, nn.Dense(2))
    assert list(seq.collect_params())[0] == "0.hidden.weight"
    assert list(seq.collect_params())[-1] == "1.bias"


def test_repr_is_mxnets():
    seq = nn.Sequential()
    seq.add(nn.Dense(256, activation="relu"), nn.Conv2D(6, kernel_size=5, padding=2, groups=2), nn.Flatten(), MLP())
    assert (
        repr(seq)
        == """Sequential(
  (0): Dense(None -> 256, Activation(relu))
  (1): Conv2D(None -> 6, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2), groups=2)
  (2): Flatten
  (3): MLP(
    (hidden): Dense(None -> 8, Activation(relu))
    (out): Dense(None -> 3, linear)
  )
)"""
    )
    assert repr(nn.Dropout(0.5)) == "Dropout(p = 0.5, axes=())"
    assert repr(nn.MaxPool2D(3, strides=2)) == (
        "MaxPool2D(size=(3, 3), stride=(2, 2), padding=(0, 0), ceil_mode=False, "
        "global_pool=False, pool_type=max, layout=NCHW)"
    )


def test_sequential_is_a_list():
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.Dense(3), nn.Dense(2))
    assert len(net) == 3 and net[1] is list(net)[1] and net[-1]._units == 2
    part = net[1:]
    assert type(part) is nn.HybridSequential and len(part) == 2 and part[0] is net[1]
    with pytest.raises(IndexError, match="index 5 is out of range for 3 layers"):
        net[5]
    with pytest.raises(TypeError, match="MLP is not"):
        net.add(MLP())
    with pytest.raises(TypeError, match="must be a Block"):
        net.add(3)


def test_deferred_shapes_follow_the_input():
    net = MLP()
    net.initialize()
    with pytest.raises(gluon.DeferredInitializationError, match=r"hidden.weight.*first\s+forward"):
        net.hidden.weight.data()
    assert net(rand(2, 5)).shape == (2, 3)
    assert net.hidden.weight.shape == (8, 5) and net.hidden.weight.data().shape == (8, 5)


def test_uninitialized_says_what_to_do():
    net = MLP()
    with pytest.raises(RuntimeError, match=r"weight.*has not been initialized.*net.initialize\(\)"):
        net(rand(2, 5))


def test_incomplete_shape_without_infer_shape():
    class Odd(nn.Block):
        def __init__(self):
            super().__init__()
            self.w = gluon.Parameter("w_weight", shape=(0, 3), allow_deferred_init=True)

        def forward(self, x):
            return x

    net = Odd()
    net.initialize()
    with pytest.raises(ValueError, match="write infer_shape"):
        net(rand(2, 2))


def test_error_names_the_block():
    net = nn.Sequential()
    net.add(nn.Dense(4), nn.Dense(3, in_units=7))
    net.initialize()
    with pytest.raises(Exception) as info:
        net(rand(2, 5)).wait_to_read()
    if hasattr(info.value, "__notes__"):
        assert any("'1'" in note and "Dense(7 -> 3, linear)" in note for note in info.value.__notes__)


def test_register_and_replace_attributes():
    net = MLP()
    net.out = nn.Dense(5)
    net.initialize()
    assert net(rand(1, 2)).shape == (1, 5)
    with pytest.raises(TypeError, match="a Dense cannot become a int"):
        net.out = 3
    net.out = None
    assert list(net.collect_params()) == ["hidden.weight", "hidden.bias"]

    class Early(nn.Block):
        def __init__(self):
            self.layer = nn.Dense(2)

    with pytest.raises(TypeError, match=r"call super\(\).__init__\(\)"):
        Early()


def test_hooks():
    net, seen = MLP(), []
    net.initialize()
    before = net.register_forward_pre_hook(lambda block, args: seen.append(("pre", args[0].shape)))
    after = net.hidden.register_forward_hook(lambda block, args, out: seen.append(("post", out.shape)))
    net(rand(2, 5))
    assert seen == [("pre", (2, 5)), ("post", (2, 8))]
    before.detach(), after.detach(), after.detach()
    net(rand(2, 5))
    assert len(seen) == 2


def test_apply_cast_setattr():
    net, kinds = MLP(), []
    net.apply(lambda b: kinds.append(type(b).__name__))
    assert kinds == ["Activation", "Dense", "Dense", "MLP"]
    net.initialize()
    net(rand(1, 4))
    net.setattr("grad_req", "null")
    with pytest.raises(RuntimeError, match="grad_req is 'null'"):
        net.out.weight.grad()
    net.setattr("grad_req", "write")
    net.cast("float64")
    assert str(net(rand(1, 4).astype("float64")).dtype) == "float64"
    with pytest.raises(AttributeError, match="Did you mean 'grad_req'"):
        net.setattr("grad_rek", "null")


def test_hybrid_forward_of_mxnet_1():
    class Scaled(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.scale = self.params.get("scale", shape=(1, 4), init="ones")

        def hybrid_forward(self, F, x, scale):
            return F.relu(x) * scale + F.np.ones_like(x)

    net = Scaled(prefix="scaled_")
    net.initialize()
    net.hybridize(static_alloc=True)
    x = rand(2, 4)
    onp.testing.assert_allclose(net(x).asnumpy(), onp.maximum(x.asnumpy(), 0) + 1, rtol=1e-6)
    with pytest.raises(TypeError, match="Did you mean 'static_alloc'"):
        net.hybridize(static_allok=True)


def test_params_get_without_attribute_is_collected():
    class Custom(nn.Block):
        def __init__(self):
            super().__init__()
            self.scale = self.params.get("scale", shape=(3,), init="ones")
            self.params.get_constant("shift", np.array([1.0, 2.0, 3.0]))

        def forward(self, x):
            return x * self.scale.data() + self.params.get("shift").data()

    net = Custom()
    net.initialize()
    assert sorted(net.collect_params()) == ["scale", "shift"]
    onp.testing.assert_allclose(net(np.zeros((1, 3))).asnumpy(), [[1, 2, 3]])
    assert net.params.get("shift").grad_req == "null"


def test_shared_parameters():
    first = nn.Dense(4, in_units=4)
    second = nn.Dense(4, in_units=4, params=first.params)
    net = nn.Sequential()
    net.add(first, second)
    net.initialize()
    assert net[0].weight is net[1].weight and list(net.collect_params()) == ["0.weight", "0.bias"]
    x = rand(2, 4)
    with autograd.record():
        y = net(x).sum()
    y.backward()
    w, b = first.weight.data().asnumpy(), first.bias.data().asnumpy()
    hidden = x.asnumpy() @ w.T + b
    expect = onp.ones((4, 1)) * hidden.sum(0) + onp.outer(w.sum(0), x.asnumpy().sum(0))
    onp.testing.assert_allclose(first.weight.grad().asnumpy(), expect, rtol=1e-4, atol=1e-5)
    third = nn.Dense(4, in_units=4).share_parameters(first.collect_params())
    assert third.weight is first.weight and third.collect_params()["weight"] is first.weight


def test_save_and_load(tmp_path):
    def build():
        net = nn.Sequential()
        net.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), MLP())
        return net

    net, x, path = build(), rand(2, 3, 6, 6), str(tmp_path / "net.params")
    net.initialize(init.Xavier())
    expect = net(x).asnumpy()
    net.save_parameters(path)
    other = build()
    other.load_parameters(path)
    onp.testing.assert_array_equal(other(x).asnumpy(), expect)
    assert set(mx.nd.load(path)) == set(net.collect_params())


def test_load_errors_change_nothing(tmp_path):
    path = str(tmp_path / "a.params")
    small = nn.Dense(3, in_units=2)
    small.initialize()
    small.save_parameters(path)
    other = nn.Dense(3, in_units=5)
    other.initialize()
    before = other.weight.data().asnumpy()
    with pytest.raises(ValueError, match=r"'weight' has shape \[3, 2\]; the network needs \[3, 5\]"):
        other.load_parameters(path)
    onp.testing.assert_array_equal(other.weight.data().asnumpy(), before)
    net = nn.Sequential()
    net.add(nn.Dense(3, in_units=2))
    with pytest.raises(ValueError, match=r"no values for parameters '0.weight', '0.bias'.*allow_missing"):
        net.load_parameters(path)
    with pytest.raises(ValueError, match="belong to no parameter.*ignore_extra"):
        net.load_parameters(path, allow_missing=True)
    with pytest.raises(OSError):
        net.load_parameters(str(tmp_path / "absent.params"))
    double = nn.Dense(3, in_units=2, dtype="float64")
    with pytest.raises(TypeError, match="cast_dtype=True"):
        double.load_parameters(path)
    mixed = nn.Dense(3, in_units=2)
    mixed.initialize()
    mixed.bias.cast("float64")
    before = mixed.weight.data().asnumpy()
    with pytest.raises(TypeError, match="'bias' has dtype float32; the network needs float64"):
        mixed.load_parameters(path)
    onp.testing.assert_array_equal(mixed.weight.data().asnumpy(), before)
    double.load_parameters(path, cast_dtype=True)
    assert str(double.weight.data().dtype) == "float64"


def test_load_shared(tmp_path):
    path = str(tmp_path / "s.params")

    def build():
        first = nn.Dense(4, in_units=4)
        net = nn.Sequential()
        net.add(first, nn.Dense(4, in_units=4, params=first.params))
        return net

    net = build()
    net.initialize()
    net.save_parameters(path, deduplicate=True)
    assert len(mx.nd.load(path)) == 2
    other = build()
    other.load_parameters(path)
    onp.testing.assert_array_equal(other[1].weight.data().asnumpy(), net[0].weight.data().asnumpy())


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_copies_are_independent_and_train(way):
    first = nn.Dense(4, in_units=4)
    net = nn.Sequential()
    net.add(first, nn.Dense(4, activation="relu", in_units=4, params=first.params), nn.BatchNorm(in_channels=4))
    net.initialize()
    x = rand(3, 4)
    expect = net(x).asnumpy()
    twin = copy.deepcopy(net) if way == "deepcopy" else pickle.loads(pickle.dumps(net))
    onp.testing.assert_array_equal(twin(x).asnumpy(), expect)
    assert twin[0].weight is twin[1].weight and twin[0].weight is not net[0].weight
    trainer = gluon.Trainer(twin.collect_params(), "sgd", {"learning_rate": 0.5})
    with autograd.record():
        loss = (twin(x) ** 2 * x).sum()
    loss.backward()
    trainer.step(1)
    assert (twin[0].weight.data().asnumpy() != net[0].weight.data().asnumpy()).any()
    onp.testing.assert_array_equal(net(x).asnumpy(), expect)


def test_summary(capsys):
    net = MLP()
    net.initialize()
    net.summary(rand(2, 5))
    text = capsys.readouterr().out
    assert "Dense-2" in text and "(2, 8)" in text and "Total params: 75" in text


def test_lambda_blocks():
    x = rand(2, 3)
    onp.testing.assert_allclose(nn.Lambda("tanh")(x).asnumpy(), onp.tanh(x.asnumpy()), rtol=1e-5)
    onp.testing.assert_allclose(nn.HybridLambda("relu")(x).asnumpy(), onp.maximum(x.asnumpy(), 0))
    onp.testing.assert_allclose(
        nn.HybridLambda(lambda F, v: F.relu(v) * 2)(x).asnumpy(), 2 * onp.maximum(x.asnumpy(), 0)
    )
    with pytest.raises(ValueError, match="Did you mean"):
        nn.Lambda("tahn")


def test_concatenate():
    net = nn.HybridConcatenate(axis=1)
    net.add(nn.Identity(), nn.HybridLambda(lambda F, v: v * 2))
    x = rand(2, 3)
    onp.testing.assert_allclose(net(x).asnumpy(), onp.concatenate([x.asnumpy(), 2 * x.asnumpy()], 1))


def test_later_features_say_so():
    with pytest.raises(RuntimeError, match=r"Call hybridize\(\), then run the block"):
        nn.HybridSequential().export("x")
    with pytest.raises(NotImplementedError, match="recurrent"):
        gluon.rnn.LSTMCell
    assert npx.relu is not None


def test_layers_given_to_sequential_are_refused():
    for kind in (gluon.nn.Sequential, gluon.nn.HybridSequential):
        with pytest.raises(TypeError, match=r"prefix must be a string; got Dense. Use add\(\) for layers"):
            kind(gluon.nn.Dense(2))


def test_nd_completes_its_names():
    from twibil import nd
    assert {"softmax", "dot", "FullyConnected", "array"} <= set(dir(nd))
    assert all(hasattr(nd, name) for name in dir(nd))
