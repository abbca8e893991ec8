# SPDX-License-Identifier: Apache-2.0
"""`foreach`, `while_loop` and `cond`: one function, three ways (eagerly, traced, as a symbol), one result, one gradient."""
import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, np, npx
from twibil.gluon import nn

ops = mx._core.operators()


def rand(*shape, seed=0):
    return np.array(onp.random.RandomState(seed).randn(*shape).astype("float32"))


def run(function, arrays, symbolic=False):
    """Results and gradients of `function`, which takes arrays and returns a list of them."""
    arrays = [a.copy() for a in arrays]
    for a in arrays:
        a.attach_grad()
    if symbolic:
        names = [f"x{i}" for i in range(len(arrays))]
        compiled = mx.sym.compile(function(*[mx.sym.Variable(n) for n in names]))
        with autograd.record():
            out = compiled(**dict(zip(names, arrays)))
            loss = sum((y * y).sum() for y in out)
    else:
        with autograd.record():
            out = function(*arrays)
            loss = sum((y * y).sum() for y in out)
    loss.backward()
    return [y.asnumpy() for y in out] + [a.grad.asnumpy() for a in arrays]


def check_three_ways(function, *arrays):
    wanted = run(function, arrays)
    for got in (run(mx.jit(function), arrays), run(function, arrays, symbolic=True)):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted):
            assert a.shape == b.shape and a.dtype == b.dtype
            onp.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 5, 80])
def test_foreach(steps):
    def rnn(xs, h, w):
        out, state = npx.foreach(lambda x, s: (s * 2, ops["tanh"](ops["matmul"](x, w) + s)), xs, h)
        return [out, state]
    check_three_ways(rnn, rand(steps, 2, 4), rand(2, 4, seed=1), rand(4, 4, seed=2) * 0.3)


@pytest.mark.parametrize("steps", [3, 70])
def test_foreach_over_lists(steps):
    def walk(a, b, s, t):
        outs, states = mx.nd.contrib.foreach(lambda d, v: ([d[0] * v[0], [d[1] + v[1]]], [v[0] + d[1], v[1] * d[0]]),
                                             [a, b], [s, t])
        return [outs[0], outs[1][0], *states]
    check_three_ways(walk, rand(steps, 2) * 0.3, rand(steps, 2, seed=1), rand(2, seed=2), rand(2, seed=3))


def test_while_loop():
    def grow(i, v, w):
        out, ends = npx.while_loop(lambda i, v: (ops["sum"](v) < 100) * (i < 6), lambda i, v: (v * w, [i + 1, v * 2 + w]),
                                   [i, v], max_iterations=8)
        return [out, *ends]
    i, v, w = np.array([0.0]), np.array([1.0, 2.0]), np.array([0.5, 0.25])
    check_three_ways(grow, i, v, w)
    out = grow(i, v, w)[0]
    assert out.shape == (8, 2) and not out[6:].asnumpy().any() and out[4].asnumpy().all()
    assert npx.while_loop(lambda v: v > 3, lambda v: (v, v + 1), np.array([1.0]), max_iterations=4)[0] == []
    traced = mx.jit(lambda v: npx.while_loop(lambda v: v > 3, lambda v: (v, v + 1), v, max_iterations=4))
    out, end = traced(np.array([1.0]))
    assert out.shape == (4, 1) and not out.asnumpy().any() and end.item() == 1


def test_while_loop_without_outputs():
    def count(v):
        out, end = mx.nd.contrib.while_loop(lambda v: ops["sum"](v) < 10, lambda v: (None, v + 1), v, max_iterations=100)
        assert out == []
        return [end * 1]
    check_three_ways(count, np.array([1.0, 2.5]))


@pytest.mark.parametrize("sign", [1, -1])
def test_cond(sign):
    def choose(x, w):
        return npx.cond(ops["sum"](x) > 0, lambda: [x * w, w], lambda: [x * x + 0 * w, w * 2])
    check_three_ways(choose, rand(3) * 0.1 + sign, rand(3, seed=1))


def test_cond_of_mxnet_2():
    def choose(x):
        return [npx.cond(lambda v: ops["sum"](v) > 0, lambda v: v * 2, lambda v: v * 3, [x])]
    check_three_ways(choose, rand(3))
    x = rand(3)
    assert npx.cond(True, lambda: x, lambda: None) is x


def test_nested():
    def sums(xs, w):
        def step(x, s):
            grown = npx.cond(ops["sum"](x) > 0, lambda: s + x * w, lambda: s - x)
            out, end = npx.while_loop(lambda v: ops["sum"](v) < 5, lambda v: (v, v + 1), grown, max_iterations=4)
            return out, end
        out, end = npx.foreach(step, xs, w)
        return [end]
    check_three_ways(sums, rand(70, 3) * 0.1, rand(3, seed=1))


def test_inside_a_hybridized_block():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = nn.Dense(4, in_units=8, activation="tanh")

        def forward(self, xs, h):
            out, h = npx.foreach(lambda x, s: (s, self.cell(np.concatenate([x, s], axis=1))), xs, h)
            _, h = npx.while_loop(lambda h: (h * h).sum() < 30, lambda h: (None, h * 1.5), h, max_iterations=10)
            return out, npx.cond(h.sum() > 0, lambda: h, lambda: -h)

    results = []
    for steps in (4, 70):
        for active in (False, True):
            mx.random.seed(0)
            net = Net()
            net.initialize()
            net.hybridize(active)
            with autograd.record():
                out, h = net(rand(steps, 2, 4), np.zeros((2, 4)))
                loss = (out * out).sum() + h.sum()
            loss.backward()
            results.append([out.asnumpy(), h.asnumpy(), net.cell.weight.grad().asnumpy()])
        for a, b in zip(*results[-2:]):
            onp.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_random_numbers_in_loops_have_gradients():
    """The gradient meets the numbers of the run, whatever was drawn since."""
    from twibil import npx as ops

    def loop(x):
        return npx.while_loop(lambda i, h: i < 3, lambda i, h: (h, [i + 1, ops.dropout(h * x, 0.5)]),
                              [np.zeros(()), np.ones_like(x)], max_iterations=5)[1][1]

    def branch(x):
        return npx.cond(x.sum() > 0, lambda: ops.dropout(x, 0.5) * x, lambda: x)

    for function, power in ((loop, 3), (branch, 2)):
        compiled = mx.jit(function)
        x = np.abs(rand(40)) + 1
        x.attach_grad()
        with autograd.record():
            y = compiled(x)
        np.random.normal(size=10)  # moves the process' stream on
        y.backward()
        kept = y.asnumpy() != 0
        assert 0 < kept.sum() < 40
        onp.testing.assert_allclose(x.grad.asnumpy(), power * (y / x).asnumpy(), rtol=1e-5)
        with autograd.record():
            z = compiled(x)
        assert (z.asnumpy() != y.asnumpy()).any()
        mx.random.seed(7)
        with autograd.record():
            first = compiled(x)
        mx.random.seed(7)
        with autograd.record():
            second = compiled(x)
        assert (first.asnumpy() == second.asnumpy()).all()


def test_loops_without_random_numbers_take_none():
    def function(x):
        x = npx.while_loop(lambda h: (h * h).sum() < 30, lambda h: (None, h * 1.5), x, max_iterations=10)[1]
        return np.random.normal(size=4) + x

    x = rand(4)
    mx.random.seed(3)
    want = function(x)
    mx.random.seed(3)
    assert (mx.jit(function)(x).asnumpy() == want.asnumpy()).all()


def test_symbols_keep_parameters_of_the_body():
    body = gluon.nn.Dense(3, in_units=3)
    out, _ = mx.sym.contrib.foreach(lambda x, s: (body(x) + s, s), mx.sym.Variable("xs"), mx.sym.Variable("s"))
    assert {"xs", "s", "weight", "bias"} == set(out.list_inputs())
    body.initialize()
    xs, s = rand(5, 2, 3), rand(2, 3, seed=1)
    got = mx.sym.compile(out)(xs=xs, s=s, weight=body.weight.data(), bias=body.bias.data())
    onp.testing.assert_allclose(got.asnumpy(), np.stack([body(x) + s for x in xs]).asnumpy(), rtol=1e-5)


def test_mistakes():
    x = rand(3, 2)
    for call, kind, message in [
            (lambda: npx.foreach(lambda d, s: (d, s), [x, rand(4)], x), ValueError, "equally long"),
            (lambda: npx.foreach(lambda d, s: (d, s), 3, x), TypeError, "foreach: data must be arrays"),
            (lambda: npx.foreach(lambda d, s: (d, s), x.sum(), x), ValueError, "a first axis"),
            (lambda: npx.while_loop(lambda v: v, lambda v: (v, v), x), ValueError, "max_iterations must be given"),
            (lambda: npx.while_loop(lambda: 1, lambda: 1, [], 3), ValueError, "at least one array"),
            (lambda: npx.while_loop(lambda v: v > 0, lambda v: (v, v), x, 3), ValueError, "must be one number"),
            (lambda: npx.while_loop(lambda v: 1, lambda v: (v, [v, v]), x, 3), ValueError, "as many states"),
            (lambda: npx.cond(x, lambda: x, lambda: x), ValueError, "must be one number"),
            (lambda: mx.jit(lambda x: npx.cond(x, lambda: x, lambda: x))(x), ValueError, "must be one number"),
            (lambda: mx.jit(lambda x: npx.cond(x.sum(), lambda: x, lambda: x[0]))(x), ValueError, "one shape and dtype"),
            (lambda: mx.jit(lambda x: npx.cond(x.sum(), lambda: [x, x], lambda: x))(x), ValueError, "as many arrays"),
            (lambda: mx.jit(lambda x: npx.while_loop(lambda v: v.sum() < 3, lambda v: (v, v[:1]), x, 3))(x), ValueError,
             "must keep its shape"),
            (lambda: mx.jit(lambda x: npx.while_loop(lambda v: v.sum() < 3, lambda v: (v, x.__iadd__(1)), x, 3))(x),
             RuntimeError, "return the new one")]:
        with pytest.raises(kind, match=message):
            call()
        assert not mx._core.is_tracing()
