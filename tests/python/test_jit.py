# SPDX-License-Identifier: Apache-2.0
"""`twibil.jit`: traced functions compute, write and differentiate as the functions they were made from."""
import collections
import threading

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, np, npx


def rand(*shape, seed=0):
    return np.array(onp.random.RandomState(seed).randn(*shape).astype("float32"))


def same(a, b):
    onp.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_decorator_and_call():
    calls = []

    @mx.jit
    def f(x, y):
        """Adds."""
        calls.append(1)
        return np.tanh(x) * y + 1

    g = mx.jit(lambda x: x + 1)
    a, b = rand(3, 4), rand(4, seed=1)
    same(f(a, b), np.tanh(a) * b + 1)
    same(f(a, y=b), f.__wrapped__(a, b))
    f(a, b)
    assert f.__doc__ == "Adds." and len(calls) == 3 and f.cache_size == 2  # by position and by name; __wrapped__
    same(g(a), a + 1)


def test_nested_arguments_and_results():
    Pair = collections.namedtuple("Pair", "left right")

    @mx.jit
    def f(tree, scale=2):
        x, (y, z) = tree["x"], tree["rest"]
        return {"sum": x + y, "pair": Pair(z * scale, [x, None]), "text": "hi", "shape": x.shape}

    tree = {"x": rand(2), "rest": [rand(2, seed=1), rand(3)]}
    out = f(tree)
    assert list(out) == ["sum", "pair", "text", "shape"] and out["text"] == "hi" and out["shape"] == (2,)
    assert isinstance(out["pair"], Pair) and out["pair"].right[1] is None
    same(out["sum"], tree["x"] + tree["rest"][0])
    same(out["pair"].left, tree["rest"][1] * 2)
    same(f(tree, 3)["pair"].left, tree["rest"][1] * 3)


def test_one_trace_for_each_kind_of_arguments():
    seen = []

    @mx.jit
    def f(x, k):
        seen.append((x.shape, str(x.dtype), k, autograd.is_training()))
        return x * k

    for k in (1, 1.0, True):  # equal, but not the same
        f(rand(2), k)
        f(rand(2), k)
    f(rand(3), 1)
    f(rand(2).astype("float64"), 1)
    with autograd.train_mode():
        f(rand(2), 1)
    assert len(seen) == f.cache_size == 6
    f.clear()
    f(rand(2), 1)
    assert len(seen) == 7


def test_captured_arrays_are_read_at_each_run():
    w = rand(3)
    f = mx.jit(lambda x: (x * w, w.T, w[0] + 1))
    x = rand(3, seed=1)
    for _ in range(2):
        for got, wanted in zip(f(x), (x * w, w, w[0] + 1)):
            same(got, wanted)
        w += 1


def test_arrays_made_inside_are_new_each_time():
    @mx.jit
    def f(x):
        total, table = np.zeros((3,)), np.array([1.0, 2.0, 3.0])
        total += x
        table[1] = total.sum()
        return total, table

    x = rand(3)
    for _ in range(3):
        total, table = f(x)
        same(total, x)
        onp.testing.assert_allclose(table.asnumpy(), [1, x.asnumpy().sum(), 3], rtol=1e-6)


@pytest.mark.parametrize("write", [
    lambda x, w: x.__iadd__(1), lambda x, w: x.__setitem__(1, 7), lambda x, w: w.__setitem__(slice(0, 2), x[1:]),
    lambda x, w: w.__imul__(x), lambda x, w: np.exp(x, out=w), lambda x, w: w.__setitem__(w > 0, 5),
    lambda x, w: x.__setitem__(np.array([0, 2], dtype="int64"), w[:2]), lambda x, w: w.__setitem__(Ellipsis, x)],
    ids=["iadd", "item", "slice", "imul", "out", "mask", "positions", "all"])
def test_writes_reach_the_callers_arrays(write):
    results = []
    for wrap in (lambda f: f, mx.jit):
        x, w = rand(3), rand(3, seed=1)

        @wrap
        def f(x):
            write(x, w)
            return x * 2 + w
        results.append([f(x), f(x), x, w])
    for a, b in zip(*results):
        same(a, b)


def test_gradients():
    w = rand(4)
    w.attach_grad()
    x = rand(3, 4, seed=1)
    x.attach_grad(grad_req="add")

    def f(x):
        with autograd.pause():
            constant = x * w
        return np.exp(x * w) + constant + x.detach() * w, (x > 0), x.sum()

    grads = []
    for function in (f, mx.jit(f)):
        x.grad[...] = 0
        for _ in range(2):
            with autograd.record():
                y, positive, s = function(x)
                loss = (y * y).sum() + s * 2
            loss.backward()
        assert str(positive.dtype) == "bool"
        grads.append([x.grad.copy(), w.grad.copy()])
    for a, b in zip(*grads):
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)


def test_gradients_of_gradients():
    x = rand(3)
    x.attach_grad()
    f = mx.jit(lambda x: x * x * x)
    with autograd.record():
        g = autograd.grad(f(x), x, create_graph=True)
        (g * x).sum().backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), 9 * x.asnumpy() ** 2, rtol=1e-5)


def test_a_whole_training_step():
    runs = []
    for wrap in (lambda f: f, mx.jit):
        w = rand(3)
        w.attach_grad()

        @wrap
        def step(x):
            with autograd.record():
                loss = ((x * w) ** 2).sum()
            loss.backward()
            w[...] = w - 0.1 * w.grad
            return loss
        runs.append([step(rand(3, seed=1)).item() for _ in range(4)] + w.asnumpy().tolist() + w.grad.asnumpy().tolist())
    assert runs[0] == runs[1]


def test_random_numbers_are_those_of_eager_calls():
    def f(x):
        a = np.random.normal(size=(3,))
        return npx.dropout(x, p=0.5) + a, np.random.uniform(size=(2,))

    drawn = []
    for function in (f, mx.jit(f)):
        mx.random.seed(3)
        with autograd.train_mode():
            drawn.append([v.asnumpy() for _ in range(3) for v in function(rand(3))])
    for a, b in zip(*drawn):
        onp.testing.assert_array_equal(a, b)


def test_inner_modes_stay():
    x = np.ones((1000,))

    def f(x):
        with autograd.train_mode():
            a = npx.dropout(x, p=0.5)
        return a, npx.dropout(x, p=0.5)

    dropped, kept = mx.jit(f)(x)
    assert (dropped.asnumpy() == 0).any() and (kept.asnumpy() == 1).all()


@pytest.mark.parametrize("bad", [lambda x: float(x.sum()), lambda x: 1 if x.sum() > 0 else 0, lambda x: x.asnumpy(),
                                 lambda x: x.tolist(), lambda x: x[0].item(), lambda x: int(x[0]), lambda x: f"{x[0]:.2f}",
                                 lambda x: onp.asarray(x), lambda x: x[x > 0], lambda x: npx.nonzero(x)])
def test_elements_are_not_known(bad):
    x = rand(3)
    with pytest.raises(RuntimeError, match="traced function|depends on the values"):
        mx.jit(bad)(x)
    assert not mx._core.is_tracing()
    same(mx.jit(lambda x: x + 1)(x), x + 1)


def test_what_follows_from_the_shape():
    def f(x):
        assert "traced array float32 [2, 3]" in repr(x) and "traced" in str(x)
        rows = [row * i for i, row in enumerate(x)]
        a, b = x
        return len(x), x.size, x.ndim, rows, a + b
    x = rand(2, 3)
    n, size, ndim, rows, total = mx.jit(f)(x)
    assert (n, size, ndim) == (2, 6, 2)
    same(rows[1], x[1])
    same(total, x[0] + x[1])


def test_mistakes():
    with pytest.raises(TypeError, match="a function is needed"):
        mx.jit(3)
    with pytest.raises(ValueError, match="donate names 'z'"):
        mx.jit(lambda x: x, donate="z")
    with pytest.raises(TypeError, match="must be hashable"):
        mx.jit(lambda x, s: x)(rand(2), {1, 2})
    kept = []
    f = mx.jit(lambda x: kept.append(x * 2) or x)
    f(rand(2))
    with pytest.raises(RuntimeError, match="trace that is over|not known yet"):
        kept[0] + 1
    view = rand(2, 2)
    inner = view[0]

    def writes_under_a_view(x):
        view[...] = x
        return inner + x
    with pytest.raises(RuntimeError, match="view or an alias made outside"):
        mx.jit(writes_under_a_view)(rand(2, 2))

    def writes_a_view(x):
        row = x[0]
        row += 1
        return x
    with pytest.raises(RuntimeError, match="a view cannot be written"):
        mx.jit(writes_a_view)(rand(2, 2))

    def line(x):
        return np.matmul(x, x[:1])
    with pytest.raises(ValueError, match="matmul"):
        mx.jit(line)(rand(2, 2))


def test_errors_while_running_name_the_line():
    @mx.jit
    def f(x, i):
        return x[i]
    with pytest.raises(IndexError, match=r"test_jit\.py:\d+"):
        f(rand(3), np.array([7], dtype="int64")).asnumpy()


def test_functions_call_each_other_and_no_arrays():
    inner = mx.jit(lambda x: x * 2)
    outer = mx.jit(lambda x: inner(x) + inner(x + 1))
    x = rand(3)
    same(outer(x), x * 2 + (x + 1) * 2)
    assert inner.cache_size == 0 and mx.jit(lambda: 3)() == 3 and mx.jit(lambda x: "text")(x) == "text"
    same(mx.jit(lambda: np.ones(3))(), np.ones(3))
    same(mx.jit(lambda x: x + 1)(x.asnumpy()), x + 1)


def test_methods_and_lower():
    class Model:
        w = rand(3)

        @mx.jit
        def run(self, x):
            return x * self.w + 1

    model, x = Model(), rand(3, seed=1)
    same(model.run(x), x * Model.w + 1)
    compiled = mx.jit(lambda x, y: np.exp(x) + y).lower(x, x)
    assert compiled.num_kernels >= 1 and compiled.planned_bytes >= 36 and compiled.names == ["x", "y"]
    same(compiled(x, x), np.exp(x) + x)


def test_threads():
    w = rand(8, 8)
    f = mx.jit(lambda x: np.tanh(np.matmul(x, w)))
    wanted = {n: np.tanh(np.matmul(rand(n, 8), w)).asnumpy() for n in range(1, 5)}
    wrong = []

    def work(n):
        for _ in range(30):
            if not onp.array_equal(f(rand(n, 8)).asnumpy(), wanted[n]):
                wrong.append(n)
    threads = [threading.Thread(target=work, args=(1 + i % 4,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and f.cache_size == 4


def _shifts(a, b):
    a[1:] = a[:-1]
    return a * b


def _writes_one(a, b):
    a += 1
    return a + b


def _writes_a_part(a, b):
    a[0] = 5
    return b * 2


@pytest.mark.parametrize("function", [_shifts, _writes_one, _writes_a_part])
@pytest.mark.parametrize("second", [lambda x: x.copy(), lambda x: x, lambda x: x[:]])
def test_writes_to_memory_that_is_read_elsewhere(function, second):
    results = []
    for f in (function, mx.jit(function)):
        for _ in range(2):
            x = np.arange(4.0)
            results.append((f(x, second(x)).asnumpy().tolist(), x.asnumpy().tolist()))
    assert results[0] == results[1] == results[2] == results[3]


def test_views_that_a_write_would_change_are_refused():
    def keeps_a_view(x):
        view = x[:-1]
        x[1:] = view
        return view + 1
    with pytest.raises(RuntimeError, match="make it anew"):
        mx.jit(keeps_a_view)(rand(3))
