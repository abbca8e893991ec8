# SPDX-License-Identifier: Apache-2.0
"""What compiled graphs compute once from parameters: batch normalisation inside convolutions and dense layers, and that
it is computed again after a parameter was written or replaced."""
import numpy as np
import pytest

import twibil as mx
from twibil import _core, autograd

F = _core.operators()


def _array(rng, *shape, positive=False, dtype="float32"):
    values = rng.uniform(0.5, 1.5, shape) if positive else rng.standard_normal(shape)
    return mx.np.array(values.astype(dtype))


def _trace(function, *arrays, without=()):
    trace = _core.Trace()
    with trace:
        out = function(*[trace.input(f"x{i}", a) for i, a in enumerate(arrays)])
    return trace.finish([out], without, ())


def _report(graph, *arrays):
    return graph.report([(a.shape, a.dtype) for a in arrays], False, [])


def _names(graph, *arrays):
    return [k[1] for k in _report(graph, *arrays)["kernels"]]


class Layer:
    def __init__(self, seed, kind, bias=True, fix_gamma=False, dtype="float32"):
        rng = np.random.default_rng(seed)
        self.kind, self.fix_gamma = kind, fix_gamma
        self.channels = 6
        shapes = {"convolution": (6, 3, 3, 3), "grouped": (6, 1, 3, 3), "dense": (6, 75), "last": (6, 5)}
        self.weight = _array(rng, *shapes[kind], dtype=dtype)
        self.bias = _array(rng, 6, dtype=dtype) if bias else None
        self.numbers = [_array(rng, 6), _array(rng, 6), _array(rng, 6), _array(rng, 6, positive=True)]
        self.x = _array(rng, 2, 3, 5, 5, dtype=dtype)

    def __call__(self, x):
        if self.kind in ("dense", "last"):
            flatten = self.kind == "dense"
            y = F["fully_connected"](x, self.weight, self.bias, num_hidden=6, no_bias=self.bias is None, flatten=flatten)
            axis = 1 if flatten else -1
        else:
            groups = 3 if self.kind == "grouped" else 1
            y = F["convolution"](x, self.weight, self.bias, kernel=(3, 3), pad=(1, 1), num_filter=6, num_group=groups,
                                 no_bias=self.bias is None)
            axis = 1
        return F["batch_norm"](y, *self.numbers, fix_gamma=self.fix_gamma, axis=axis)


@pytest.mark.parametrize("kind", ["convolution", "grouped", "dense", "last"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("fix_gamma", [True, False])
def test_batch_norm_goes_into_the_layer_before(kind, bias, fix_gamma):
    layer = Layer(1, kind, bias, fix_gamma)
    graph = _trace(layer, layer.x)
    want = layer(layer.x).asnumpy()
    np.testing.assert_allclose(graph.call(layer.x)[0].asnumpy(), want, rtol=2e-5, atol=2e-5)
    assert len(_names(graph, layer.x)) == 1, "one kernel is left"
    plain = _trace(layer, layer.x, without=("fold_batch_norm",))
    assert plain.call(layer.x)[0].asnumpy().tobytes() == want.tobytes()


def test_the_new_weight_follows_its_parameters():
    layer = Layer(2, "convolution")
    graph = _trace(layer, layer.x)
    graph.call(layer.x)

    def check():
        np.testing.assert_allclose(graph.call(layer.x)[0].asnumpy(), layer(layer.x).asnumpy(), rtol=2e-5, atol=2e-5)

    for change in (lambda: layer.weight.__imul__(2), lambda: layer.numbers[3].__setitem__(slice(None), 0.25),
                   lambda: layer.numbers[1].__setitem__(2, -7.0)):
        change()
        check()
        check()
    layer.weight[:] = _array(np.random.default_rng(5), *layer.weight.shape)
    check()
    position = next(i for i, c in enumerate(graph.captured()) if c.shape == layer.weight.shape)
    layer.weight = _array(np.random.default_rng(6), *layer.weight.shape)  # another array in its place
    graph.replace_captured(position, layer.weight)
    check()


def test_training_keeps_its_batch_norm():
    layer = Layer(3, "convolution")
    graph = _trace(layer, layer.x)
    for p in [layer.weight] + layer.numbers[:2]:
        p.attach_grad()
    with autograd.record():
        y = graph.call(layer.x)[0]
    with autograd.record():
        want = layer(layer.x)
    assert y.asnumpy().tobytes() == want.asnumpy().tobytes()


def test_halves_keep_their_batch_norm():
    layer = Layer(4, "convolution", dtype="float16")
    graph = _trace(layer, layer.x)
    assert graph.call(layer.x)[0].asnumpy().tobytes() == layer(layer.x).asnumpy().tobytes()


def test_what_follows_from_parameters_is_computed_once():
    rng = np.random.default_rng(0)
    weight, x = _array(rng, 40, 30), _array(rng, 5, 30)

    def net(v):
        half = F["full_like"](v, fill_value=0.5, dtype="float32")[:1]  # only its shape depends on v
        return F["matmul"](v, F["transpose"](F["cumsum"](weight * half, axis=1)))

    def want():
        return x.asnumpy() @ np.cumsum(weight.asnumpy() * 0.5, axis=1).T

    graph = _trace(net, x)
    np.testing.assert_allclose(graph.call(x)[0].asnumpy(), want(), rtol=1e-5, atol=1e-5)
    assert _names(graph, x) == ["matmul"]
    assert _names(_trace(net, x, without=("split_prologue",)), x) == ["multiply", "cumsum", "matmul"]
    weight[3, 4] = 0.0
    np.testing.assert_allclose(graph.call(x)[0].asnumpy(), want(), rtol=1e-5, atol=1e-5)


def test_many_threads_use_one_prologue():
    import threading
    layer = Layer(7, "dense")
    graph = _trace(layer, layer.x)
    want = layer(layer.x).asnumpy()
    errors = []

    def run():
        for _ in range(50):
            got = graph.call(layer.x)[0].asnumpy()
            if not np.allclose(got, want, rtol=2e-5, atol=2e-5):
                errors.append(got)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
