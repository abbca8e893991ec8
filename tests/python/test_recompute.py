# SPDX-License-Identifier: Apache-2.0
"""Recomputation: less memory between the two parts of training, the same bits."""
import pathlib
import sys

import numpy as onp
import pytest
from random_graphs import RandomGraph

import twibil as mx
from twibil import _core, autograd

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
import networks  # noqa: E402


def chain(layers=12):
    """Layers with batch norm, dropout and a residual; statistics are updated."""
    def state(name, **kwargs):
        return mx.sym.Variable(name, **kwargs)
    x = state("x")
    for i in range(layers):
        y = mx.npx.fully_connected(x, state(f"w{i}"), num_hidden=16, no_bias=True)
        y = mx.npx.batch_norm(y, *[state(f"{part}{i}") for part in ("gamma", "beta", "mean", "var")], fix_gamma=False)
        x = x + mx.npx.dropout(mx.npx.relu(y), p=0.3)
    return x


def inputs(symbol):
    random = onp.random.RandomState(3)
    shapes = {"x": (8, 16), "w": (16, 16)}
    made = []
    for name in symbol.list_inputs():
        value = random.rand(*shapes.get(name.rstrip("0123456789"), (16,))).astype("float32")
        made.append(mx.np.array(value + (name[0] == "v")))
    return made


def train(symbol, recompute, watched=("x", "w", "gamma", "beta")):
    """Output, gradients and states after a step; the step's report."""
    f = mx.sym.compile(symbol, recompute=recompute)
    arrays = inputs(symbol)
    grads = [a for a, name in zip(arrays, f.names) if name.rstrip("0123456789") in watched]
    for a in grads:
        a.attach_grad()
    mx.random.seed(5)
    with autograd.record():
        y = f(*arrays)
    y.backward()
    report = f._compiled.report([(a.shape, "float32") for a in arrays], True, [a.grad is not None for a in arrays])
    return [v.asnumpy().tobytes() for v in [y, *[g.grad for g in grads], *arrays]], report


@pytest.mark.parametrize("recompute", [True, 0.1, 0.4, 0.7])
def test_gradients_masks_and_states_are_the_same_bits(recompute):
    symbol = chain()
    want, all_kept = train(symbol, False)
    got, report = train(symbol, recompute)
    assert got == want
    assert report["arena_bytes"] < all_kept["arena_bytes"]
    assert report["num_kernels"] > all_kept["num_kernels"]


@pytest.mark.parametrize("first", [1000, 1040])
def test_random_graphs(first):
    more = 0
    for graph in filter(lambda g: g.gradient, map(RandomGraph, range(first, first + 40))):
        want = graph.run(graph.body)
        kernels = []
        for keep in (1, 0.4, 0):
            compiled = graph.compiled()
            compiled.keep(keep)
            assert graph.run(lambda v, c=compiled: c.call(*v)) == want, (graph.seed, keep)
            last = compiled.last_signature()
            kernels.append(compiled.report(*last)["num_kernels"] if last else 0)
        more += kernels[-1] > kernels[0]
    assert more > 3


def test_off_by_default():
    assert train(chain(3), None)[1]["num_kernels"] == train(chain(3), False)[1]["num_kernels"]


def test_mxnet_variable(monkeypatch):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    assert train(chain(), None)[1]["arena_bytes"] < train(chain(), False)[1]["arena_bytes"]


def test_marked_nodes_are_computed_again():
    x = mx.sym.Variable("x")
    marked = mx.np.sin(mx.np.tanh(mx.np.exp(x, attr={"force_mirroring": "True"})))
    plain = mx.np.sin(mx.np.tanh(mx.np.exp(x)))
    kernels = []
    for symbol in (marked, plain):
        f = mx.sym.compile(symbol, without=("fuse_pointwise",))
        r = f._compiled.report([((64,), "float32")], True, [True])
        kernels.append([k[1] for k in r["kernels"]])
    assert kernels[0].count("exp") == 2 and kernels[1].count("exp") == 1


@pytest.mark.parametrize("wrong, error", [(2, ValueError), (-0.1, ValueError), ("yes", TypeError)])
def test_bad_shares_are_refused(wrong, error):
    with pytest.raises(error, match="recompute"):
        mx.sym.compile(chain(2), recompute=wrong)


def test_resnet_152_keeps_a_quarter():
    net = networks.build("resnet-152", 64)
    arena = []
    for keep in (1, 0.25):
        c = _core.compile(net.symbol, list(net.shapes(1)), (), ())
        c.keep(keep)
        r = c.report([(s, "float32") for s in net.shapes(4).values()], True, net.wants())
        arena.append(r["arena_bytes"])
        assert r["arena_bytes"] <= 1.05 * r["arena_lower_bound_bytes"]
    assert arena[1] <= arena[0] / 4


def test_jit_takes_the_option():
    @mx.jit(recompute=True)
    def f(x):
        for _ in range(12):
            x = mx.np.tanh(x * 1.5)
        return x

    grads = []
    for function in (f, f._function):
        x = mx.np.array([0.3, -2.0])
        x.attach_grad()
        with autograd.record():
            y = function(x)
        y.backward()
        grads.append(x.grad.asnumpy().tolist())
    assert onp.allclose(*grads, rtol=1e-6)


def test_hybridize_takes_the_option():
    def run(**options):
        mx.random.seed(1)
        net = mx.gluon.nn.HybridSequential()
        for _ in range(10):
            net.add(mx.gluon.nn.Dense(16, activation="tanh", in_units=16))
        net.initialize(mx.init.Xavier())
        net.hybridize(**options)
        x = mx.np.ones((4, 16))
        with autograd.record():
            y = net(x)
        y.backward()
        graph = next(iter(net._graph.programs.values())).compiled
        kernels = graph.report(*graph.last_signature())["num_kernels"]
        return [y.asnumpy().tobytes(), *(p.grad().asnumpy().tobytes() for p in net.collect_params().values())], kernels

    all_kept = run()
    for share in (True, 0.3):
        bits, kernels = run(recompute=share)
        assert bits == all_kept[0] and kernels > all_kept[1]
    with pytest.raises(ValueError, match="recompute"):
        mx.gluon.nn.Dense(2).hybridize(recompute=7)


def test_executors_follow_mxnets_variable(monkeypatch):
    def step():
        symbol = chain(6)
        shapes = {name: a.shape for name, a in zip(symbol.list_inputs(), inputs(symbol))}
        e = symbol.simple_bind(mx.cpu(), **shapes)
        for name, a in zip(symbol.list_inputs(), inputs(symbol)):
            {**e.arg_dict, **e.aux_dict}[name][:] = a
        mx.random.seed(2)
        y = e.forward(is_train=True)[0]
        e.backward(mx.np.ones(y.shape))
        kernels = e._compiled.report(*e._compiled.last_signature())["num_kernels"]
        return [y.asnumpy().tobytes(), *(e.grad_dict[n].asnumpy().tobytes() for n in ("x", "w0", "w5"))], kernels

    all_kept = step()
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    mirrored = step()
    assert mirrored[0] == all_kept[0] and mirrored[1] > all_kept[1]
