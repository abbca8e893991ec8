# SPDX-License-Identifier: Apache-2.0
"""Optimizers against formulas in float64; rates, multipliers, schedulers, the Trainer and its files."""

import math
import warnings

import numpy as onp
import pytest

from twibil import autograd, gluon, init, lr_scheduler, np, optimizer
from twibil.gluon import nn

WD, CLIP, SCALE = 0.1, 0.8, 0.5


class Reference:
    """Each optimizer's formula on g = clip(scale * grad) + wd * w, float64."""

    def __init__(self, kind, **k):
        self.kind, self.k, self.s, self.t = kind, k, {}, 0

    def step(self, w, grad, lr):
        g = onp.clip(SCALE * grad, -CLIP, CLIP) + WD * w
        self.t += 1
        return getattr(self, self.kind)(w, g, lr)

    def get(self, name, w):
        return self.s.get(name, onp.zeros_like(w))

    def sgd(self, w, g, lr):
        m = self.s["m"] = self.k.get("momentum", 0) * self.get("m", w) - lr * g
        return w + m

    def nag(self, w, g, lr):
        m = self.s["m"] = self.k["momentum"] * self.get("m", w) - lr * g
        return w + self.k["momentum"] * m - lr * g

    def adam(self, w, g, lr):
        m = self.s["m"] = 0.9 * self.get("m", w) + 0.1 * g
        v = self.s["v"] = 0.999 * self.get("v", w) + 0.001 * g * g
        rate = lr * math.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        return w - rate * m / (onp.sqrt(v) + 1e-8)

    def adagrad(self, w, g, lr):
        h = self.s["h"] = self.get("h", w) + g * g
        return w - lr * g / onp.sqrt(h + 1e-7)

    def rmsprop(self, w, g, lr):
        n = self.s["n"] = 0.9 * self.get("n", w) + 0.1 * g * g
        return w - lr * g / onp.sqrt(n + 1e-8)

    def rmsprop_centered(self, w, g, lr):
        n = self.s["n"] = 0.9 * self.get("n", w) + 0.1 * g * g
        a = self.s["a"] = 0.9 * self.get("a", w) + 0.1 * g
        d = self.s["d"] = 0.9 * self.get("d", w) - lr * g / onp.sqrt(n - a * a + 1e-8)
        return w + d

    def adadelta(self, w, g, lr):
        a = self.s["a"] = 0.9 * self.get("a", w) + 0.1 * g * g
        d = onp.sqrt(self.get("b", w) + 1e-5) / onp.sqrt(a + 1e-5) * g
        self.s["b"] = 0.9 * self.get("b", w) + 0.1 * d * d
        return w - lr * d


@pytest.mark.parametrize(
    "name,reference,arguments",
    [
        ("sgd", "sgd", {}),
        ("sgd", "sgd", {"momentum": 0.9}),
        ("nag", "nag", {"momentum": 0.9}),
        ("adam", "adam", {}),
        ("adagrad", "adagrad", {}),
        ("rmsprop", "rmsprop", {}),
        ("rmsprop", "rmsprop_centered", {"centered": True}),
        ("adadelta", "adadelta", {}),
    ],
)
def test_formula(name, reference, arguments):
    rng = onp.random.default_rng(1)
    w = rng.standard_normal((3, 4))
    weight = np.array(w.astype("float32"))
    o = optimizer.create(name, learning_rate=0.05, wd=WD, clip_gradient=CLIP, rescale_grad=SCALE, **arguments)
    updater, expect = optimizer.get_updater(o), Reference(reference, **arguments)
    for _ in range(5):
        grad = 2 * rng.standard_normal((3, 4))
        updater(0, np.array(grad.astype("float32")), weight)
        w = expect.step(w, grad, 0.05)
        onp.testing.assert_allclose(weight.asnumpy(), w, rtol=3e-5, atol=3e-6)


def test_many_weights_in_one_call_equal_single_calls():
    rng = onp.random.default_rng(2)
    start = [rng.standard_normal(s).astype("float32") for s in ((3,), (2, 2), (5,))]
    grads = [np.array(rng.standard_normal(w.shape).astype("float32")) for w in start]
    single, together = ([np.array(w) for w in start] for _ in range(2))
    one, many = (optimizer.get_updater(optimizer.create("adam", learning_rate=0.1)) for _ in range(2))
    for _ in range(3):
        for i, (w, g) in enumerate(zip(single, grads)):
            one(i, g, w)
        many([0, 1, 2], grads, together)
    for a, b in zip(single, together):
        onp.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_multi_precision_keeps_small_updates():
    weight, grad = np.ones((4,), dtype="float16"), np.full((4,), 1e-4, dtype="float16")
    updater = optimizer.get_updater(optimizer.create("sgd", learning_rate=1.0, multi_precision=True))
    for _ in range(20):
        updater(0, grad, weight)
    onp.testing.assert_allclose(weight.asnumpy(), 0.998, atol=1e-3)
    with pytest.warns(UserWarning, match="multi_precision=True"):
        optimizer.get_updater(optimizer.create("sgd"))(0, grad, weight)


def test_names_and_arguments():
    assert type(optimizer.create("SGD")) is optimizer.SGD
    with pytest.raises(ValueError, match="Did you mean 'adam'"):
        optimizer.create("adamm")
    with pytest.raises(TypeError, match="Did you mean 'learning_rate'"):
        optimizer.create("sgd", learningrate=0.1)


def test_custom_optimizer():
    @optimizer.register
    class SignDescent(optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            self._update_count(index)
            weight[...] = weight - self._get_lr(index) * np.sign(grad)

    net = nn.Dense(1, use_bias=False, in_units=2)
    net.initialize(init.One())
    trainer = gluon.Trainer(net.collect_params(), "signdescent", {"learning_rate": 0.5})
    with autograd.record():
        y = net(np.array([[2.0, -3.0]]))
    y.backward()
    trainer.step(1)
    onp.testing.assert_allclose(net.weight.data().asnumpy(), [[0.5, 1.5]])


def test_schedulers():
    factor = lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    assert [factor(i) for i in (1, 2, 3, 4, 5)] == [1, 1, 0.5, 0.5, 0.25]
    multi = lr_scheduler.MultiFactorScheduler(step=[2, 4], factor=0.1, base_lr=1.0)
    onp.testing.assert_allclose([multi(i) for i in (2, 3, 5)], [1, 0.1, 0.01])
    cosine = lr_scheduler.CosineScheduler(max_update=20, base_lr=0.3, final_lr=0.01, warmup_steps=5)
    onp.testing.assert_allclose([cosine(0), cosine(5), cosine(20), cosine(30)], [0, 0.3, 0.01, 0.01])
    onp.testing.assert_allclose(cosine(4), 0.24)
    poly = lr_scheduler.PolyScheduler(max_update=10, base_lr=1.0, pwr=2)
    onp.testing.assert_allclose([poly(0), poly(5), poly(10)], [1, 0.25, 0])
    with pytest.raises(ValueError, match="rising integers"):
        lr_scheduler.MultiFactorScheduler(step=[3, 2])
    with pytest.raises(ValueError, match="above base_lr"):
        lr_scheduler.PolyScheduler(10, base_lr=0.1, warmup_begin_lr=0.5)


def one_layer(**arguments):
    net = nn.Dense(1, use_bias=False, in_units=2)
    net.initialize(init.One())
    return net, gluon.Trainer(net.collect_params(), "sgd", arguments)


def backward(net, factor=1.0):
    with autograd.record():
        y = net(np.array([[1.0, 2.0]]) * factor)
    y.backward()


def test_trainer_step_divides_by_batch_size():
    net, trainer = one_layer(learning_rate=0.1)
    backward(net)
    trainer.step(2)
    onp.testing.assert_allclose(net.weight.data().asnumpy(), [[0.95, 0.9]], rtol=1e-6)
    trainer.set_learning_rate(0.2)
    assert trainer.learning_rate == 0.2
    with pytest.raises(ValueError, match="batch_size must be positive"):
        trainer.step(0)


def test_trainer_multipliers_and_scheduler():
    net, trainer = one_layer(learning_rate=0.1, wd=1.0)
    net.weight.lr_mult, net.weight.wd_mult = 2.0, 0.0
    backward(net)
    trainer.step(1)
    onp.testing.assert_allclose(net.weight.data().asnumpy(), [[0.8, 0.6]], rtol=1e-6)
    scheduler = lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.4)
    net, trainer = one_layer(lr_scheduler=scheduler)
    rates = []
    for _ in range(3):
        backward(net, 0.0)
        trainer.step(1)
        rates.append(trainer.learning_rate)
    assert rates == [0.4, 0.2, 0.1]
    with pytest.raises(ValueError, match="lr_scheduler"):
        trainer.set_learning_rate(1.0)


def test_trainer_takes_scheduler_default_rates():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        o = optimizer.create("adam", lr_scheduler=lr_scheduler.FactorScheduler(1, 1.0, base_lr=0.3))
    assert o.learning_rate == 0.3


def test_trainer_errors():
    with pytest.raises(ValueError, match="no parameters"):
        gluon.Trainer({}, "sgd")
    with pytest.raises(TypeError, match="Parameters only"):
        gluon.Trainer([np.ones(3)], "sgd")
    with pytest.raises(TypeError, match="a dict or a list"):
        gluon.Trainer(3, "sgd")
    net, _ = one_layer()
    with pytest.raises(NotImplementedError, match="dist_sync"):
        gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync")
    with pytest.raises(ValueError, match="must be empty"):
        gluon.Trainer(net.collect_params(), optimizer.SGD(), {"learning_rate": 1.0})


@pytest.mark.parametrize("name,arguments", [("adam", {}), ("sgd", {"momentum": 0.9}), ("adadelta", {})])
def test_states_continue_with_the_same_bits(tmp_path, name, arguments):
    def build():
        net = nn.Dense(3, in_units=4)
        net.initialize(init.One())
        return net, gluon.Trainer(net.collect_params(), name, {**arguments, "wd": 0.01})

    def run(net, trainer, steps):
        for i in steps:
            x = np.array(onp.random.default_rng(i).standard_normal((2, 4)).astype("float32"))
            with autograd.record():
                y = (net(x) ** 2).sum()
            y.backward()
            trainer.step(2)

    net, trainer = build()
    run(net, trainer, range(6))
    first, t = build()
    run(first, t, range(3))
    first.save_parameters(str(tmp_path / "p")), t.save_states(str(tmp_path / "s"))
    second, t = build()
    second.load_parameters(str(tmp_path / "p")), t.load_states(str(tmp_path / "s"))
    run(second, t, range(3, 6))
    onp.testing.assert_array_equal(second.weight.data().asnumpy(), net.weight.data().asnumpy())
    other = gluon.Trainer(second.collect_params(), "rmsprop")
    with pytest.raises(ValueError, match="optimizer must be"):
        other.load_states(str(tmp_path / "s"))
    with pytest.raises(ValueError, match="not a file of optimizer states"):
        t.load_states(str(tmp_path / "p"))


def test_null_gradients_are_left_alone():
    net, trainer = one_layer(learning_rate=1.0)
    net.weight.grad_req = "null"
    trainer.step(1)
    onp.testing.assert_array_equal(net.weight.data().asnumpy(), [[1, 1]])


def test_stale_gradients():
    used, idle = nn.Dense(1, in_units=2, use_bias=False), nn.Dense(1, in_units=2, use_bias=False)
    for layer in (used, idle):
        layer.initialize(init.One())
    params = [used.weight, idle.weight]

    def run(trainer, layers, **kwargs):
        with autograd.record():
            y = sum(layer(np.array([[1.0, 2.0]])) for layer in layers)
        y.backward()
        trainer.step(1, **kwargs)

    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1})
    run(trainer, [used, idle])
    before = idle.weight.data().asnumpy()
    run(trainer, [used], ignore_stale_grad=True)
    onp.testing.assert_array_equal(idle.weight.data().asnumpy(), before)
    onp.testing.assert_allclose(used.weight.data().asnumpy(), [[0.8, 0.6]], rtol=1e-5)
    with pytest.warns(UserWarning, match="was not computed since the last step"):
        run(trainer, [used])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(trainer, [used, idle])
        run(trainer, [used])
