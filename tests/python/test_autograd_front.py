# SPDX-License-Identifier: Apache-2.0
"""Scopes, custom functions, gradients returned and stored, through `mx.autograd`."""

import numpy as onp
import pytest

from twibil import autograd, np, npx


def test_scopes():
    assert not autograd.is_recording() and not autograd.is_training()
    with autograd.record():
        assert autograd.is_recording() and autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording() and not autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording() and not autograd.is_training()
    with autograd.record(train_mode=False):
        assert autograd.is_recording() and not autograd.is_training()
    with autograd.train_mode():
        assert autograd.is_training() and not autograd.is_recording()
    with pytest.raises(KeyError), autograd.record():
        raise KeyError
    assert not autograd.is_recording()


class Sigmoid(autograd.Function):
    def forward(self, x):
        assert not autograd.is_recording()
        y = 1 / (1 + np.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


def test_function():
    x = np.array([0.5, -1.0])
    x.attach_grad()
    with autograd.record():
        y = (Sigmoid()(x) * 2).sum()
    y.backward()
    s = npx.sigmoid(x).asnumpy()
    onp.testing.assert_allclose(x.grad.asnumpy(), 2 * s * (1 - s), rtol=1e-5)
    f = Sigmoid()
    f(x)
    with pytest.raises(ValueError, match="each call needs its own object"):
        f(x)


def test_function_of_several_arrays():
    class Both(autograd.Function):
        def forward(self, a, b):
            self.save_for_backward(a, b)
            return a * b, a + b

        def backward(self, dp, ds):
            a, b = self.saved_tensors
            return dp * b + ds, dp * a + ds

    a, b = np.array([2.0]), np.array([3.0])
    a.attach_grad(), b.attach_grad()
    with autograd.record():
        p, s = Both()(a, b)
        y = p * 10 + s
    y.backward()
    assert float(a.grad) == 31 and float(b.grad) == 21


def test_function_errors():
    class Wrong(autograd.Function):
        def forward(self, a):
            return a * 1

        def backward(self, dy):
            return dy.sum()

    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = Wrong()(x)
    with pytest.raises(ValueError, match=r"must have its input's shape \[2\]; got \[\]"):
        y.backward()
    with pytest.raises(NotImplementedError, match="Function.forward must be written"):
        autograd.Function()(x)


def test_grad_and_backward():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = x * x * x
    g = autograd.grad(y, x, head_grads=np.array([1.0, 0.5, 2.0]), retain_graph=True)
    onp.testing.assert_allclose(g.asnumpy(), [3, 6, 54])
    assert len(autograd.grad([y], [x])) == 1
    with autograd.record():
        y = x * x * x
        (first,) = autograd.grad(y, [x], create_graph=True)
        z = first.sum()
    z.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), [6, 12, 18])
    a, b = np.array([1.0]), np.array([2.0])
    ga = np.zeros((1,))
    autograd.mark_variables([a], [ga])
    with autograd.record():
        u, v = a * b, a + b
    autograd.backward([u, v], [np.array([3.0]), np.array([1.0])])
    assert float(ga) == 7
    with pytest.raises(ValueError, match="one head gradient for each head|each head needs one"):
        autograd.backward([u, v], [np.array([1.0])])
    with pytest.raises(TypeError, match="heads must be an array"):
        autograd.backward(3)
    with pytest.raises(ValueError, match="as many gradients"):
        autograd.mark_variables([a], [])


def recorded():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    return x


def test_out_over_the_memory_of_an_input_is_noticed():
    for write in (lambda a: np.square(a[:], out=a), lambda a: np.multiply(a, a.detach(), out=a)):
        x = recorded()
        with autograd.record():
            a = x * 2
            write(a)
        with pytest.raises(RuntimeError, match="overwritten in place"):
            a.backward()


def test_out_into_a_view_of_a_recorded_array_is_refused():
    x, b = recorded(), np.ones((3,))
    with autograd.record():
        a = x * 2
        for call in (lambda: np.add(b, b, out=a[:2]), lambda: np.dot(np.ones((2, 3)), b, out=a[:2])):
            with pytest.raises(ValueError, match="view of a recorded array|out must have shape"):
                call()


def test_out_of_an_unrecorded_result_ends_the_history():
    x, b = recorded(), np.ones((3,))
    for call in (lambda a: np.add(b, b, out=a), lambda a: np.dot(np.ones((3, 3)), b, out=a)):
        with autograd.record():
            a = x * 2
            call(a)
            y = (a + x * 0).sum()
        y.backward()
        assert (x.grad.asnumpy() == 0).all()


def test_a_variable_cannot_be_written_while_recording():
    x = recorded()
    def add():
        y = x
        y += 1
    def put(): x[0] = 5
    for write in (add, put, lambda: np.exp(x, out=x)):
        with autograd.record():
            with pytest.raises(ValueError, match="while recording, a variable"):
                write()
            with autograd.pause():
                x[:] = np.array([1.0, 2.0, 3.0])
            y = (x * x).sum()
        y.backward()
        assert x.grad.asnumpy().tolist() == [2, 4, 6]
