# SPDX-License-Identifier: Apache-2.0
"""Calls that treat rows alike run together on a few rows at a time; results are those of one call after the other."""
import threading

import numpy as np
import pytest
from random_graphs import RandomGraph, describe

import twibil as mx
from twibil import autograd, npx


def rand(*shape, seed=0):
    return mx.np.array(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def softmax(x):
    e = mx.np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def norm(x, gamma, beta):
    d = x - x.mean(axis=-1, keepdims=True)
    return d / mx.np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5) * gamma + beta


BIG = 1100  # rows of 256 numbers: more than a block, and not a whole number of blocks


def check(function, *arrays, kernels=None, same=True):
    """Compares three ways; `same`: to the bit. Returns the names of the kernels."""
    compiled = mx.jit(function)
    got, want = compiled(*arrays), function(*arrays)
    plain = mx.jit(function, without=["fuse_rows"])(*arrays)
    as_list = lambda r: list(r) if isinstance(r, (list, tuple)) else [r]
    for g, w, p in zip(as_list(got), as_list(want), as_list(plain)):
        assert g.shape == w.shape and g.dtype == w.dtype
        if same:
            assert (g.asnumpy() == w.asnumpy()).all() and (p.asnumpy() == w.asnumpy()).all()
        else:
            np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=2e-6, atol=2e-6)
    explanation = compiled.explain()
    names = [explanation.after.nodes[s.node]["op"] for s in explanation.steps]
    if kernels is not None:
        assert names == kernels
    return names


def test_softmax_is_one_kernel():
    check(softmax, rand(BIG, 256), kernels=["rows max fused subtract exp sum true_divide"])


def test_layer_normalisation_reads_its_weights_whole():
    names = check(norm, rand(BIG, 256), rand(256, seed=1), rand(256, seed=2))
    assert len(names) == 1 and names[0].startswith("rows mean")


def test_small_arrays_are_left_alone():
    assert len(check(softmax, rand(20, 256))) == 4


@pytest.mark.parametrize("shape", [(3, 7, 50, 256), (1, 1, BIG, 256), (BIG, 2, 2, 64), (2, 300000)])
def test_several_leading_axes(shape):
    check(softmax, rand(*shape))


def test_rows_and_normal_operators_together():
    def body(x, mask, index):
        p = npx.masked_log_softmax(x * 0.5, mask)
        return -npx.pick(npx.log_softmax(p + x), index), p

    index = mx.np.array(np.random.default_rng(3).integers(0, 256, BIG))
    mask = mx.np.array(np.random.default_rng(4).random((1, 256)) > 0.2)
    assert len(check(lambda x, i: body(x, mask, i)[0], rand(BIG, 256), index)) == 1


def test_reductions_of_the_rows_leave_one_result_a_block():
    x, y = rand(BIG, 256), rand(BIG, 256, seed=1)
    names = check(lambda a, b: (a * b + 1).sum(axis=0), x, y, same=False)
    assert names == ["rows fused multiply add sum", "sum"]
    check(lambda a, b: (mx.np.abs(a - b) * 2).max(), x, y)
    check(lambda a, b: mx.np.exp(a - b).min(axis=0, keepdims=True), x, y)
    check(lambda a, b: ((a - b) * a).sum(axis=(0, 1), keepdims=True), x, y, same=False)


def test_means_need_blocks_of_one_size():
    x = rand(1024, 256)
    assert len(check(lambda a: (a * a - 1).mean(), x, same=False)) == 2
    check(lambda a: (a * a - 1).mean(axis=0), rand(1021, 256), same=False)  # a prime: no such blocks


def test_what_others_read_comes_out():
    def body(x):
        d = x - x.max(axis=-1, keepdims=True)
        e = mx.np.exp(d)
        return d, e / e.sum(axis=-1, keepdims=True), mx.np.dot(e, mx.np.ones((256, 3)))

    check(body, rand(BIG, 256))


def test_a_way_around_the_group_keeps_its_order():
    def body(x, w):
        e = mx.np.exp(x - x.max(axis=-1, keepdims=True))
        s = mx.np.dot(e, w)  # needs e, and is needed by the last call
        return (e / e.sum(axis=-1, keepdims=True)) * s

    check(body, rand(BIG, 256), rand(256, 1, seed=1))


def test_the_first_axis_of_a_broadcast_input_is_no_row():
    x, column = rand(256, 2000), rand(256, 1, seed=1)
    check(lambda a, c: softmax(a * c) + c.sum(axis=0), x, column)
    check(lambda a: softmax(a) + a.sum(axis=-1), rand(600, 600))  # rows, then columns of one square


def test_gradients_are_those_of_the_plain_graph():
    x, gamma, beta = rand(BIG, 256), rand(256, seed=1), rand(256, seed=2)
    results = []
    for function in (mx.jit(norm), mx.jit(norm, without=["everything"]), norm):
        arrays = [a.copy() for a in (x, gamma, beta)]
        for a in arrays:
            a.attach_grad()
        with autograd.record():
            loss = (softmax(function(*arrays)) * x).sum()
        loss.backward()
        results.append([loss.asnumpy()] + [a.grad.asnumpy() for a in arrays])
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_half_precision_and_integers():
    check(softmax, rand(BIG, 512).astype("float16"))
    x = mx.np.array(np.random.default_rng(0).integers(-5, 5, (BIG, 256)).astype("int32"))
    check(lambda a: (a * 3 - a.max(axis=-1, keepdims=True)).sum(axis=0), x)


def test_transposed_inputs_and_views():
    check(lambda a: softmax(a.T), rand(256, BIG))
    check(lambda a: softmax(a[100:]), rand(BIG + 100, 256))
    check(lambda a: mx.np.expand_dims(a.max(axis=1), 1) * a, rand(BIG, 256))


def test_many_threads_run_one_graph():
    x = rand(BIG, 256)
    compiled, want = mx.jit(softmax), softmax(x).asnumpy()
    wrong = []

    def work():
        for _ in range(5):
            if not (compiled(x).asnumpy() == want).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_graphs_with_every_group_in_a_loop(first, monkeypatch):
    monkeypatch.setenv("TWIBIL_FUSE_ROWS_BYTES", "0")
    failures = [w for seed in range(first, first + 50) if (w := RandomGraph(seed).check([]))]
    assert not failures, "\n".join(failures)
