# SPDX-License-Identifier: Apache-2.0
"""Graphs for prediction in blocks of channels: the same results as eager calls, with few conversions, and what the user
may say about the algorithms."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import random_networks
from random_networks import compiled, difference, names

import twibil as mx
from twibil import _core, autograd, gluon, npx
from twibil.sym import compile as compile_symbol

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
import networks  # noqa: E402

F = _core.operators()


def array(seed, *shape, scale=1.0):
    return mx.np.array((np.random.default_rng(seed).standard_normal(shape) * scale).astype("float32"))


def trace_of(function, x, without=()):
    trace = _core.Trace()
    with trace:
        out = function(trace.input("x", x))
    return trace.finish(out if isinstance(out, list) else [out], tuple(without), ())


def convolution(seed, channels, filters, kernel=(3, 3), bias=True, **more):
    w = array(seed, filters, channels, *kernel, scale=(2 / (channels * np.prod(kernel))) ** 0.5)
    b = array(seed + 1, filters) if bias else None
    pad = more.pop("pad", tuple(k // 2 for k in kernel))
    return lambda x: F["convolution"](x, w, b, kernel=kernel, pad=pad, num_filter=filters, no_bias=not bias, **more)


# ---- the choice of layouts ----


@pytest.mark.parametrize("part", range(6))
def test_random_networks_agree_with_eager_calls(part):
    problems = [p for seed in range(part, 120, 6) if (p := random_networks.check(seed))]
    assert not problems, "\n".join(problems)


def test_a_chain_is_converted_twice():
    one, two, three = convolution(1, 20, 40), convolution(2, 40, 24), convolution(3, 24, 33, stride=(2, 2))

    def forward(x):
        x = npx.relu(two(npx.relu(one(x))))
        x = npx.pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max")
        return three(x * 0.5 + 1).clip(0, 6)

    x = array(9, 2, 20, 18, 17)
    graph = trace_of(forward, x)
    assert difference(graph.call(x), [forward(x)]) < 1e-5
    kernels = names(graph, x)
    assert kernels.count("to_blocks") == 1 and kernels.count("from_blocks") == 1
    assert not any("relu" in k or "clamp" in k for k in kernels), "they went into the convolutions"


def test_a_value_that_is_wanted_both_ways_is_converted_once():
    one, two = convolution(1, 16, 32), convolution(2, 32, 16)

    def forward(x):
        y = one(x)
        return [y, two(y), two(y) + 1, mx.np.transpose(y, (0, 2, 3, 1)).sum(axis=1)]

    x = array(9, 2, 16, 9, 9)
    graph = trace_of(forward, x)
    assert difference(graph.call(x), forward(x)) < 1e-5
    kernels = names(graph, x)
    assert kernels.count("to_blocks") == 1 and kernels.count("from_blocks") == 2


def test_a_residual_block_is_its_convolutions():
    layers = [convolution(1, 32, 32, (1, 1), False), convolution(3, 32, 32, bias=False), convolution(5, 32, 32, (1, 1))]

    def forward(x):
        y = layers[2](npx.relu(layers[1](npx.relu(layers[0](x)))))
        return npx.relu(x + y)

    x = array(9, 2, 32, 8, 8)
    graph = trace_of(lambda x: forward(forward(x)), x)
    assert difference(graph.call(x), [forward(forward(x))]) < 1e-5
    assert sorted(set(names(graph, x))) == ["blocked_convolution", "from_blocks", "to_blocks"]


def test_parts_of_whole_blocks_are_computed_inside_their_concatenation():
    one, two, three = convolution(1, 16, 32), convolution(3, 16, 16), convolution(5, 48, 16)
    forward = lambda x: three(mx.np.concatenate([one(x), two(x)], axis=1))
    x = array(9, 3, 16, 10, 10)
    graph = trace_of(forward, x)
    assert difference(graph.call(x), [forward(x)]) < 1e-5
    (after,) = [line for line in graph.report([(x.shape, x.dtype)], False, [])["after"].splitlines() if "join" in line]
    assert "[3, 3, 10, 10, 16]" in after
    plain = trace_of(forward, x, without=("plan_memory",))
    assert difference(plain.call(x), [forward(x)]) < 1e-5


@pytest.mark.parametrize("channels", [(24, 40), (8, 8), (17, 16, 15), (40,), (16, 1, 16, 1)])
def test_odd_channels_are_concatenated_lane_by_lane(channels):
    parts = [convolution(10 + i, 16, c, (1, 1)) for i, c in enumerate(channels)]
    last = convolution(5, sum(channels), 16)
    forward = lambda x: last(npx.relu(mx.np.concatenate([p(x) for p in parts], axis=1)))
    x = array(9, 2, 16, 7, 9)
    graph = trace_of(forward, x)
    assert difference(graph.call(x), [forward(x)]) < 1e-5
    assert names(graph, x).count("to_blocks") == 1


@pytest.mark.parametrize("formula", [lambda x: 1 / x, lambda x: mx.np.log(mx.np.abs(x)), lambda x: mx.np.sqrt(x), lambda x: x / x])
def test_what_fills_the_last_block_stays_finite(formula):
    one, two = convolution(1, 16, 24), convolution(2, 24, 16)
    forward = lambda x: two(mx.np.clip(formula(one(x) + 100), -50, 50))
    x = array(9, 1, 16, 6, 6)
    y = trace_of(forward, x).call(x)
    assert np.isfinite(y[0].asnumpy()).all() and difference(y, [forward(x)]) < 1e-4


def test_an_average_and_the_1x1_after_it_change_places():
    one, two = convolution(1, 16, 64), convolution(2, 64, 16, (1, 1))
    for counts in (True, False):
        pool = lambda x: npx.pooling(x, kernel=(3, 3), pad=(1, 1), stride=(1, 1), pool_type="avg", count_include_pad=counts)
        forward = lambda x: npx.relu(two(pool(one(x))))
        x = array(9, 2, 16, 12, 11)
        graph = trace_of(forward, x)
        assert difference(graph.call(x), [forward(x)]) < 1e-5
        kernels = names(graph, x)
        assert kernels.index("blocked_pooling") > len(kernels) - 1 - kernels[::-1].index("blocked_convolution")
        kept = names(trace_of(forward, x, without=("commute_pooling",)), x)
        assert kept.index("blocked_pooling") < len(kept) - 1 - kept[::-1].index("blocked_convolution")
    most = lambda x: two(npx.pooling(one(x), kernel=(3, 3), pad=(1, 1), stride=(1, 1), pool_type="max"))
    assert difference(trace_of(most, x).call(x), [most(x)]) < 1e-5


def test_convolutions_of_one_array_become_one():
    first = convolution(1, 16, 32)
    branches = [convolution(3 + i, 32, c, (1, 1), bias=i != 1) for i, c in enumerate((48, 32, 16))]
    last = [convolution(20 + i, c, 16) for i, c in enumerate((48, 32, 16))]
    joined = convolution(30, 32, 16, (1, 1))  # computed in its part of the concatenation, so not merged

    def forward(x):
        y = npx.relu(first(x))
        return mx.np.concatenate([b(npx.relu(a(y))) for a, b in zip(branches, last)] + [npx.relu(joined(y))], axis=1)

    x = array(9, 3, 16, 9, 8)
    graph = trace_of(forward, x)
    assert difference(graph.call(x), [forward(x)]) < 1e-5
    kept = trace_of(forward, x, without=("merge_branches",))
    assert difference(kept.call(x), [forward(x)]) < 1e-5
    assert names(kept, x).count("blocked_convolution") - names(graph, x).count("blocked_convolution") == 2


@pytest.mark.parametrize("bias", [True, False])
def test_a_clamp_goes_into_the_dense_layer_before_it(bias):
    w, b = array(1, 12, 40), array(2, 12)
    dense = lambda x: F["fully_connected"](x, w, b if bias else None, num_hidden=12, no_bias=not bias)
    x = array(9, 3, 40)
    for clamp in (npx.relu, lambda x: x.clip(-0.5, 6)):
        graph = trace_of(lambda x: clamp(dense(x)), x)
        assert difference(graph.call(x), [clamp(dense(x))]) < 1e-5
        assert names(graph, x) == ["dense_clamped"]
    twice = trace_of(lambda x: [npx.relu(dense(x)), dense(x) * 2], x)
    assert difference(twice.call(x), [npx.relu(dense(x)), dense(x) * 2]) < 1e-5


def test_training_and_other_dtypes_stay_as_they_are():
    w = array(1, 16, 16, 3, 3)
    forward = lambda x: F["convolution"](x, w, kernel=(3, 3), num_filter=16, no_bias=True)
    x = array(9, 1, 16, 8, 8)
    w.attach_grad()
    graph = trace_of(forward, x)
    with autograd.record():
        graph.call(x)[0].backward()
    assert not any("block" in k[1] for k in graph.report(*graph.last_signature())["kernels"])
    half = x.astype("float16")
    w16 = w.astype("float16")
    graph = trace_of(lambda x: F["convolution"](x, w16, kernel=(3, 3), num_filter=16, no_bias=True), half)
    assert not any("block" in k for k in names(graph, half))


@pytest.mark.parametrize("shape", [(0, 16, 8, 8), (1, 16, 3, 3), (1, 16, 1, 5)])
def test_small_and_empty_pictures(shape):
    layer = convolution(1, 16, 24)
    x = array(3, *shape)
    assert difference(trace_of(layer, x).call(x), [layer(x)]) < 1e-5


# ---- the six networks ----


@pytest.mark.parametrize("name", networks.NAMES)
def test_networks_agree_with_plain_graphs(name):
    net = networks.build(name, {"inception-v3": 75, "alexnet": 67}.get(name, 64))
    rng = np.random.default_rng(3)
    shapes = net.shapes(2)
    arrays = {}
    for key, shape in shapes.items():
        value = rng.standard_normal(shape)
        if key.endswith("_weight"):
            value *= (2 / np.prod(shape[1:])) ** 0.5
        elif key.endswith(("_var", "_gamma")):
            value = rng.uniform(0.5, 1.5, shape)
        arrays[key] = mx.np.array(value.astype("float32"))
    fixed = [k for k in shapes if k != "data"]
    fast = compile_symbol(net.symbol, fixed=fixed)
    plain = compile_symbol(net.symbol, fixed=fixed, without=("choose_layouts", "commute_pooling"))
    for batch in (2, 1):
        arrays["data"] = arrays["data"][:batch].copy()
        got, want = fast(**arrays).asnumpy(), plain(**arrays).asnumpy()
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)
    report = fast._report()
    kernels = [k[1] for k in report["kernels"]]
    assert kernels.count("to_blocks") <= 1 and kernels.count("from_blocks") == 1
    assert "convolution" not in kernels
    assert report["arena_bytes"] <= 1.05 * report["arena_lower_bound_bytes"]


# ---- threads, batches, parameters ----


def test_the_same_bits_for_any_number_of_threads():
    code = """
import sys; sys.path.insert(0, sys.argv[1])
import random_networks, hashlib
total = hashlib.sha256()
for seed in (3, 8, 21, 34):
    net = random_networks.RandomNetwork(seed)
    x = net.x(2)
    graph = random_networks.compiled(net, x)
    if graph is not None:
        for y in graph.call(x): total.update(y.asnumpy().tobytes())
print(total.hexdigest())
"""
    here = os.path.dirname(__file__)
    found = {subprocess.run([sys.executable, "-c", code, here], env={**os.environ, "TWIBIL_NUM_THREADS": str(n)}, check=True,
                            capture_output=True, text=True).stdout for n in (1, 2, 3)}
    assert len(found) == 1


def test_laid_out_weights_serve_every_batch_size_and_follow_their_parameter():
    w = array(1, 64, 64, 3, 3, scale=0.05)
    forward = lambda x: F["convolution"](x, w, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)
    x = array(9, 1, 64, 56, 56)
    graph = trace_of(forward, x)
    graph.call(x)[0].wait_to_read()
    before = _core.memory_stats()["current_bytes"]
    for batch in (2, 3):
        more = array(9, batch, 64, 56, 56)
        y = graph.call(more)
        assert difference(y, [forward(more)]) < 1e-4
        del y, more
    mx.nd.waitall()
    assert _core.memory_stats()["current_bytes"] - before < w.size * 4, "the weights are there once"
    w *= 2
    assert difference(graph.call(x), [forward(x)]) < 1e-4


# ---- what the user may say ----


def _chosen(graph, x):
    signature = ([(x.shape, x.dtype)], False, [])
    return [a for a in graph.describe(signature)["algorithms"] if a]


def test_exact_takes_no_winograd(monkeypatch):
    layer = convolution(1, 64, 64)
    x = array(9, 1, 64, 56, 56)
    graph = trace_of(layer, x)
    assert any("winograd" in a for a in _chosen(graph, x))
    graph.rules(True, False)
    assert not any("winograd" in a for a in _chosen(graph, x))
    assert difference(graph.call(x), [layer(x)]) < 1e-5
    monkeypatch.setenv("TWIBIL_EXACT", "1")
    assert not any("winograd" in a for a in _chosen(trace_of(layer, x), x))


def test_options_of_the_front_ends():
    net = gluon.nn.Conv2D(16, 3, in_channels=16)
    net.initialize()
    net.hybridize(exact=True)
    net(array(1, 1, 16, 9, 9))
    data = mx.sym.Variable("x")
    y = npx.convolution(data, mx.sym.Variable("w"), kernel=(3, 3), num_filter=16, no_bias=True)
    f = compile_symbol(y, fixed=["w"], exact=True)
    f(x=array(1, 1, 64, 19, 19), w=array(2, 16, 64, 3, 3))
    assert "blocked_convolution" in str(f.explain())
    with pytest.raises(TypeError, match="exact must be True or False"):
        compile_symbol(y, exact="yes")
    with pytest.raises(ValueError, match="fixed names v, which is no variable"):
        compile_symbol(y, fixed=["v"])
    with pytest.raises(TypeError, match="autotune"):
        mx.jit(lambda x: x, autotune=[])


def test_explain_says_why():
    layer = convolution(1, 32, 32, stride=(2, 2))
    x = array(9, 1, 32, 20, 20)
    f = mx.jit(layer)
    f(x)
    said = str(f.explain())
    assert "choice of algorithms" in said and "winograd" in said
    assert "GFLOP/s, " in said


def test_autotune_remembers(tmp_path, monkeypatch):
    code = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np, twibil as mx
from twibil import _core
w = mx.np.array(np.random.default_rng(0).standard_normal((32, 32, 3, 3)).astype('float32'))
F = _core.operators()
f = mx.jit(lambda x: F['convolution'](x, w, kernel=(3, 3), pad=(1, 1), num_filter=32, no_bias=True), autotune=True)
x = mx.np.ones((1, 32, 28, 28))
assert abs(f(x).asnumpy() - F['convolution'](x, w, kernel=(3, 3), pad=(1, 1), num_filter=32, no_bias=True).asnumpy()).max() < 1e-2
"""
    def run():
        return subprocess.run([sys.executable, "-c", code, os.path.dirname(__file__)], check=True, capture_output=True, text=True,
                              env={**os.environ, "TWIBIL_HOME": str(tmp_path)}).stderr
    file = tmp_path / "convolutions.txt"
    assert run() == ""
    lines = file.read_text().splitlines()
    assert len(lines) >= 2 and all(" = " in line for line in lines[1:])
    assert run() == "" and file.read_text().splitlines() == lines, "nothing is measured twice"
    assert [p.name for p in tmp_path.iterdir()] == ["convolutions.txt"]
    for hostile in (b"\x00\xff" * 100, b"twibil measured convolutions 1\nx = nan\n", b"twibil measured convolutions 1\n = -1e9\n"):
        file.write_bytes(hostile)
        assert "is ignored" in run()
        assert file.read_bytes() == hostile, "it may be somebody else's"
