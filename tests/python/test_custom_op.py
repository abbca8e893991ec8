# SPDX-License-Identifier: Apache-2.0
"""Operators written in Python: `autograd.Function` and MXNet's `CustomOp`, eagerly, in traces, blocks and symbols."""
import gc
import threading

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, np
from twibil.gluon import nn


def rand(*shape, seed=0):
    return np.array(onp.random.RandomState(seed).randn(*shape).astype("float32"))


class Softmax(mx.operator.CustomOp):
    """The softmax output layer of MXNet's tutorial, in NumPy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = onp.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label = in_data[1].asnumpy().ravel().astype(int)
        y = out_data[0].asnumpy().copy()
        y[onp.arange(len(label)), label] -= 1.0
        self.assign(in_grad[0], req[0], mx.nd.array(y))


@mx.operator.register("test_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


class Scale(mx.operator.CustomOp):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, is_train, req, in_data, out_data, aux):
        self.kept = in_data[0] * self.factor  # state from forward to backward
        self.assign(out_data[0], req[0], in_data[0] * self.factor if is_train else in_data[0])
        self.assign(out_data[1], req[1], in_data[0] + in_data[1])
        if aux:
            aux[0] += in_data[0].sum()

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor + out_grad[1])
        self.assign(in_grad[1], "add", out_grad[1])


@mx.operator.register("test_scale")
class ScaleProp(mx.operator.CustomOpProp):
    def __init__(self, factor="1", counted="False"):
        super().__init__()
        assert isinstance(factor, str)
        self.factor, self.counted = float(factor), counted == "True"

    def list_arguments(self):
        return ["a", "b"]

    def list_outputs(self):
        return ["scaled", "sum"]

    def list_auxiliary_states(self):
        return ["total"] if self.counted else []

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0], in_shape[0]], [(1,)] if self.counted else []

    def create_operator(self, ctx, shapes, dtypes):
        return Scale(self.factor)


def test_softmax_everywhere():
    x, label = rand(4, 3), np.array([0.0, 2, 1, 1])
    x.attach_grad()
    wanted = onp.exp(x.asnumpy()) / onp.exp(x.asnumpy()).sum(1, keepdims=True)
    slope = wanted - onp.eye(3)[[0, 2, 1, 1]]
    symbol = mx.sym.Custom(mx.sym.Variable("x"), mx.sym.Variable("y"), op_type="test_softmax", name="loss")
    compiled = mx.sym.compile(symbol)
    for call in (lambda a, b: mx.nd.Custom(a, b, op_type="test_softmax"),
                 lambda a, b: mx.npx.Custom(data=a, label=b, op_type="test_softmax"),
                 mx.jit(lambda a, b: mx.nd.Custom(a, b, op_type="test_softmax")), lambda a, b: compiled(a, b)):
        for _ in range(2):
            with autograd.record():
                y = call(x, label)
            y.backward()
            onp.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-5)
            onp.testing.assert_allclose(x.grad.asnumpy(), slope, rtol=1e-4, atol=1e-6)


def test_outputs_attributes_and_modes():
    a, b = rand(3), rand(3, seed=1)
    a.attach_grad()
    b.attach_grad()
    f = mx.jit(lambda a, b: mx.npx.Custom(a, b, op_type="test_scale", factor=3))
    results = []
    for call in (f.__wrapped__, f):
        for train in (True, False):
            with autograd.record(train_mode=train):
                scaled, total = call(a, b)
                loss = (scaled * 2 + total * total).sum()
            loss.backward()
            results.append([v.asnumpy() for v in (scaled, total, a.grad, b.grad)])
    for eager, traced in zip(results[:2], results[2:]):
        for u, v in zip(eager, traced):
            onp.testing.assert_array_equal(u, v)
    onp.testing.assert_allclose(results[0][0], 3 * a.asnumpy())
    onp.testing.assert_allclose(results[1][0], a.asnumpy())


def test_auxiliary_states_are_updated():
    for wrap in (lambda f: f, mx.jit):
        total = np.zeros((1,))
        f = wrap(lambda a, b: mx.npx.Custom(a, b, total, op_type="test_scale", counted=True))
        for _ in range(3):
            f(np.ones(4), np.ones(4))
        assert total.item() == 12


def test_in_hybridized_blocks_trained():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(3, in_units=4)

        def hybrid_forward(self, F, x, label):
            return F.Custom(self.fc(x), label, op_type="test_softmax")

    runs = []
    for active in (False, True):
        mx.random.seed(0)
        net = Net()
        net.initialize(force_reinit=True)
        net.hybridize(active)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for _ in range(5):
            with autograd.record():
                y = net(rand(6, 4), np.array([0.0, 1, 2, 0, 1, 2]))
            y.backward()
            trainer.step(6)
        runs.append([y.asnumpy(), net.fc.weight.data().asnumpy()])
    for a, b in zip(*runs):
        onp.testing.assert_allclose(a, b, rtol=1e-6)


def test_symbols_infer_shapes_and_make_variables():
    symbol = mx.sym.Custom(data=mx.sym.Variable("x"), op_type="test_softmax", name="out")
    assert symbol.list_arguments() == ["x", "out_label"]
    found, outputs = symbol._infer({"x": ((4, 3), "float32")}, False, False)
    assert found["out_label"][0] == (4,) and outputs[0][0] == (4, 3)
    f = mx.sym.compile(symbol)
    assert f(x=rand(4, 3), out_label=np.zeros(4)).shape == (4, 3)


class Double(autograd.Function):
    """2 x with a gradient that says it was here."""

    def forward(self, x, y):
        self.save_for_backward(x)
        return np.array(2 * x.asnumpy()), x + y

    def backward(self, dx, dy):
        x, = self.saved_tensors
        return dx * 10 + dy * x, dy * 100


def test_autograd_function_in_traces():
    x, y = rand(3), rand(3, seed=1)
    for v in (x, y):
        v.attach_grad()
    results = []
    f = mx.jit(lambda x, y: Double()(x * 1, y))
    for call in (f.__wrapped__, f, f):
        with autograd.record():
            a, b = call(x, y)
            loss = (a * 3 + b).sum()
        loss.backward()
        results.append([v.asnumpy() for v in (a, b, x.grad, y.grad)])
    for other in results[1:]:
        for u, v in zip(results[0], other):
            onp.testing.assert_allclose(u, v, rtol=1e-6)

    class Net(nn.HybridBlock):
        def forward(self, x):
            return Double()(x, x)[0] + x
    net = Net()
    net.hybridize()
    onp.testing.assert_allclose(net(x).asnumpy(), 3 * x.asnumpy(), rtol=1e-6)


def test_compiled_graphs_are_functions_under_record():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    f = mx.sym.compile(a * b + a)
    x, w = rand(3), rand(3, seed=1)
    x.attach_grad()
    w.attach_grad()
    with autograd.record():
        y = f(a=x * 2, b=w) * f(a=w, b=x)
    y.backward()
    got = x.grad.asnumpy(), w.grad.asnumpy()
    with autograd.record():
        y = (x * 2 * w + x * 2) * (w * x + w)
    y.backward()
    onp.testing.assert_allclose(got[0], x.grad.asnumpy(), rtol=1e-5)
    onp.testing.assert_allclose(got[1], w.grad.asnumpy(), rtol=1e-5)


def test_errors_of_callbacks_arrive():
    class Broken(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            raise KeyError("on purpose")

    @mx.operator.register("test_broken")
    class BrokenProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Broken()

    @mx.operator.register("test_wrong_shape")
    class WrongProp(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            return [(7,)], [(7,)], []

    x = rand(2)
    for call in (lambda x: mx.nd.Custom(x, op_type="test_broken"), mx.jit(lambda x: mx.nd.Custom(x, op_type="test_broken"))):
        with pytest.raises(KeyError, match="on purpose"):
            call(x)
    for call, kind, message in [
            (lambda: mx.nd.Custom(x, op_type="test_softmx"), ValueError, "Did you mean 'test_softmax'"),
            (lambda: mx.nd.Custom(x), TypeError, "op_type"),
            (lambda: mx.nd.Custom(x, op_type="test_softmax"), TypeError, "label must be given"),
            (lambda: mx.nd.Custom(x, x, x, op_type="test_softmax"), TypeError, "takes 2 arrays"),
            (lambda: mx.nd.Custom(x, lable=x, op_type="test_softmax"), TypeError, "'lable' is not known"),
            (lambda: mx.nd.Custom(x, op_type="test_wrong_shape"), ValueError, r"must have shape \[7\]"),
            (lambda: mx.operator.register(3), TypeError, "a name is needed"),
            (lambda: mx.operator.register("x")(3), TypeError, "derived from CustomOpProp"),
            (lambda: mx.operator.CustomOp().assign(x, "ad", x), ValueError, "req must be")]:
        with pytest.raises(kind, match=message):
            call()
    assert "test_softmax" in mx.operator.get_all_registered_operators()


def test_threads_and_lifetime():
    f = mx.jit(lambda a, b: mx.npx.Custom(a, b, op_type="test_scale", factor=2)[1] + Double()(a, b)[1])
    a, b = rand(5), rand(5, seed=1)
    wanted = 2 * (a.asnumpy() + b.asnumpy())
    wrong = []

    def work():
        for _ in range(20):
            if not onp.allclose(f(a, b).asnumpy(), wanted):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    del f
    gc.collect()
    assert not wrong
