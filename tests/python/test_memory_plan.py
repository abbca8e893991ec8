# SPDX-License-Identifier: Apache-2.0
"""The memory plan as users see it: the figures of the paradigm text, of the six networks, and what the caller's arrays
may expect of it."""
import gc
import pathlib
import sys

import numpy as onp
import pytest

import twibil as mx
from twibil import _core, autograd

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
import networks  # noqa: E402


def toy():
    a, b = mx.sym.Variable("A"), mx.sym.Variable("B")
    return b * a + mx.sym.Constant(1)


def ones(n=10):
    return mx.np.ones(n, dtype="float64")


def test_toy_program_needs_240_bytes_or_160_with_a_donated_input():
    kept, donated, eager = mx.sym.compile(toy()), mx.sym.compile(toy(), donate=["B"]), mx.sym.compile(toy(), ["everything"])
    b = ones() * 2
    for f in (kept, eager):
        assert f(A=ones(), B=b).asnumpy().tolist() == [3.0] * 10 and b.asnumpy().tolist() == [2.0] * 10
    assert donated(A=ones(), B=b).asnumpy().tolist() == [3.0] * 10
    assert (kept.planned_bytes, donated.planned_bytes) == (240, 160)
    assert eager.planned_bytes >= 320
    assert b.asnumpy().tolist() == [3.0] * 10  # the result stands there now


@pytest.mark.parametrize("layers", [5, 40])
def test_forward_part_of_layers_needs_two_buffers(layers):
    x = mx.sym.Variable("x")
    for i in range(layers):
        x = mx.npx.relu(mx.npx.fully_connected(x, mx.sym.Variable(f"w{i}"), num_hidden=64, no_bias=True))
    f = mx.sym.compile(x)
    f(mx.np.ones((4, 64)), *[mx.np.ones((64, 64))] * layers)
    report = f._compiled.report([((4, 64), "float32")] + [((64, 64), "float32")] * layers, False, [])
    assert report["arena_bytes"] == 2 * 4 * 64 * 4


def plan(name, batch, training):
    net = networks.build(name)
    graph = _core.compile(net.symbol, list(net.shapes(1)), (), ())
    return graph.report([(s, "float32") for s in net.shapes(batch).values()], training, net.wants() if training else [])


@pytest.mark.parametrize("name", networks.NAMES)
def test_networks_reach_the_lower_bound(name):
    for batch in (1, 8):
        r = plan(name, batch, False)
        assert r["arena_bytes"] == r["arena_lower_bound_bytes"] > 0
    r = plan(name, 8, True)
    assert r["arena_bytes"] <= 1.05 * r["arena_lower_bound_bytes"]


def test_joined_branches_are_computed_in_place():
    """What the literature reaches for these graphs when concatenations cost no bytes of their own."""
    assert plan("inception-bn", 1, False)["arena_bytes"] <= 3.99e6
    assert plan("inception-v3", 1, False)["arena_bytes"] <= 8.30e6


def test_results_of_a_join_in_place():
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    a, b = mx.npx.relu(x @ w), mx.np.tanh(x @ w)
    f = mx.sym.compile(mx.np.concatenate([a, b, a], axis=1) * 2)
    v, m = onp.random.rand(1, 3, 4).astype("float32"), onp.random.rand(4, 4).astype("float32")
    want = onp.concatenate([onp.maximum(v @ m, 0), onp.tanh(v @ m), onp.maximum(v @ m, 0)], 1) * 2
    assert onp.allclose(f(mx.np.array(v), mx.np.array(m)).asnumpy(), want, rtol=1e-5)


class TestOutputsThatGradientsRead:
    def graph(self):
        return mx.sym.compile(mx.np.exp(mx.sym.Variable("x") * 2))

    def recorded(self):
        x = mx.np.array([0.5, 1.0])
        x.attach_grad()
        with autograd.record():
            y = self.graph()(x)
        return x, y

    def test_are_not_copied(self):
        report = self.graph()._compiled.report([((2,), "float32")], True, [True])
        assert [k[1] for k in report["kernels"]].count("copy") == 0

    def test_give_the_gradient_twice_when_the_graph_is_retained(self):
        x, y = self.recorded()
        want = 2 * onp.exp([1.0, 2.0])
        for _ in range(2):
            y.backward(retain_graph=True)
            assert onp.allclose(x.grad.asnumpy(), want, rtol=1e-5)

    def test_give_the_gradient_when_the_output_is_gone(self):
        x = mx.np.array([0.5, 1.0])
        x.attach_grad()
        f = self.graph()
        with autograd.record():
            total = f(x).sum()
        total.backward()
        assert onp.allclose(x.grad.asnumpy(), 2 * onp.exp([1.0, 2.0]), rtol=1e-5)

    def test_must_not_be_overwritten_before_it(self):
        x, y = self.recorded()
        y[:] = 0
        with pytest.raises(RuntimeError, match="output 0, which was overwritten"):
            y.backward()

    def test_do_not_keep_their_graph_alive(self):
        """The tape holds the storage, the array holds the tape: no circle."""
        gc.collect()
        before = _core.memory_stats()["current_bytes"]
        for _ in range(50):
            x = mx.np.ones(100000)
            x.attach_grad()
            with autograd.record():
                y = self.graph()(x)
        del x, y
        mx.nd.waitall()
        gc.collect()
        assert _core.memory_stats()["current_bytes"] <= before + 400000


def test_calls_of_compiled_functions_take_every_spelling():
    f = mx.sym.compile(mx.sym.Variable("A") - mx.sym.Variable("B"))
    a, b = mx.np.array([3.0, 4.0]), mx.np.array([1.0, 1.0])
    for y in (f(a, b), f(a, B=b), f(B=b, A=a), f([3.0, 4.0], b), f(onp.array([3.0, 4.0], "float32"), 1.0)):
        assert y.asnumpy().tolist() == [2.0, 3.0]
    for args, kwargs, message in (((a,), {}, "needs B"), ((a, b, a), {}, "takes 2 arrays"), ((a, b), {"C": a}, "'C'"),
                                  ((a, b), {"A": a}, "twice")):
        with pytest.raises(TypeError, match=message):
            f(*args, **kwargs)
    x = mx.sym.Variable("A")
    both = mx.sym.compile([x, x * 2])
    assert [y.asnumpy().tolist() for y in both(b)] == [[1.0, 1.0], [2.0, 2.0]]
