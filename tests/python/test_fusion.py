# SPDX-License-Identifier: Apache-2.0
"""What the rewriting passes make of graphs: which kernels are left, and that the bits are those of the eager way."""
import numpy as np
import pytest

import twibil as mx
from twibil import _core, autograd

F = _core.operators()


def rand(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return mx.np.array(values.astype("float32")).astype(dtype)


def kernels(function, *arrays, without=(), training=False, wants=None):
    """Names of the kernels that a call runs, after the bits were compared with the eager way."""
    trace = _core.Trace()
    with trace:
        out = function(*[trace.input(f"x{i}", a) for i, a in enumerate(arrays)])
    out = out if isinstance(out, (list, tuple)) else [out]
    graph = trace.finish(list(out), tuple(without), ())
    want = function(*arrays)
    want = want if isinstance(want, (list, tuple)) else [want]
    for g, w in zip(graph.call(*arrays), want):
        assert g.dtype == w.dtype and g.shape == w.shape
        assert g.astype("float64").asnumpy().tobytes() == w.astype("float64").asnumpy().tobytes()
    report = graph.report([(a.shape, a.dtype) for a in arrays], training, wants or [False] * len(arrays))
    return [k[1] for k in report["kernels"]]


X, Y, ROW = rand(6, 8), rand(6, 8, seed=1), rand(8, seed=2)


class TestFusion:
    def test_the_small_sigmoid_is_one_kernel(self):
        assert kernels(lambda x: 1 / (1 + F["exp"](-x)), X) == ["fused negative exp add true_divide"]

    def test_trees_with_broadcasting(self):
        column = rand(6, 1, seed=3)
        names = kernels(lambda x, y, r, c: F["relu"](x * r + c) - F["tanh"](y), X, Y, ROW, column)
        assert names == ["fused multiply add relu tanh subtract"]

    def test_what_is_smaller_is_computed_once_at_its_size(self):
        assert kernels(lambda x, r: x + F["exp"](r), X, ROW) == ["exp", "add"]

    def test_truth_values_stay_truth_values(self):
        def f(x, y):
            return F["where"](F["logical_and"](x > 0, F["logical_not"](y < 0)), x, y * (x > 1))

        assert len(kernels(f, X, Y)) == 1

    def test_a_value_with_two_readers_is_made_once(self):
        def f(x):
            e = F["exp"](x)
            return F["sum"](e), e + 1

        assert kernels(f, X) == ["exp", "sum", "add"]
        assert kernels(lambda x: (lambda e: e * (e + 1))(F["exp"](x)), X) == ["fused exp add multiply"]

    def test_an_output_is_a_value_that_stays(self):
        def f(x):
            y = x * 2
            return y, F["tanh"](y)

        assert kernels(f, X) == ["multiply", "tanh"]

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_not_through_a_rounding_to_halves(self, dtype):
        assert len(kernels(lambda x: F["exp"](x * 1.1 + 0.3), rand(6, 8, dtype=dtype))) == 3

    def test_halves_at_the_edges(self):
        half = rand(6, 8, dtype="float16")
        assert len(kernels(lambda h, x: (h + x) * x, half, X)) == 1

    def test_not_through_other_dtypes(self):
        whole = mx.np.array(np.arange(48).reshape(6, 8), dtype="int32")
        names = kernels(lambda i, x: (i * 3 + i) * x, whole, X)
        assert names == ["fused multiply add", "multiply"]

    def test_long_chains_are_cut(self):
        def f(x):
            for i in range(150):
                x = F["sin"](x) + 0.01 * i
            return x

        assert 1 < len(kernels(f, X)) < 12

    def test_many_arguments_are_cut(self):
        arrays = [rand(6, 8, seed=i) for i in range(30)]
        assert 1 < len(kernels(lambda *xs: sum(xs[1:], xs[0]), *arrays)) < 6

    def test_the_parts_of_training_stay_apart(self):
        x = rand(6, 8)
        trace = _core.Trace()
        with trace:
            v = trace.input("x", x)
            out = F["tanh"](F["exp"](v) + 1)
        graph = trace.finish([out], (), ())
        names = [k[1] for k in graph.report([(x.shape, x.dtype)], True, [True])["kernels"]]
        assert len(names) == 3, names  # exp is kept for its own gradient
        grads = []
        for f in (lambda a: F["tanh"](F["exp"](a) + 1), lambda a: graph.call(a)[0]):
            x.attach_grad()
            with autograd.record():
                y = f(x)
            y.backward()
            grads.append(x.grad.asnumpy().tobytes())
        assert grads[0] == grads[1]

    def test_an_update_between_keeps_the_old_value(self):
        def f(x, y):
            old = x * 3
            _core.call_operator("assign", [x, y])
            return old + 1 + x

        got = []
        for compiled in (False, True):
            x, y = rand(6, 8), rand(6, 8, seed=1)
            if compiled:
                trace = _core.Trace()
                with trace:
                    out = f(trace.input("x", x), trace.input("y", y))
                got.append(trace.finish([out], (), ()).call(x, y)[0].asnumpy().tobytes() + x.asnumpy().tobytes())
            else:
                got.append(f(x, y).asnumpy().tobytes() + x.asnumpy().tobytes())
        assert got[0] == got[1]

    @pytest.mark.parametrize("shape", [(5_000_001,), (2001, 2050), (3, 1_700_000)])
    def test_large_results_written_past_the_caches(self, shape):
        x, y = rand(*shape), rand(shape[-1], seed=1)
        assert len(kernels(lambda a, b: F["relu"](a * 2 + b) - 0.5, x, y)) == 1


class TestSimplify:
    @pytest.mark.parametrize("f", [
        lambda x: x * 1, lambda x: x / 1, lambda x: x - 0, lambda x: F["power"](x, 1), lambda x: -(-x),
        lambda x: F["transpose"](F["transpose"](x)), lambda x: F["reshape"](F["reshape"](x, newshape=(48,)), newshape=(6, 8)),
        lambda x: F["cast"](x, dtype="float32"), lambda x: F["copy"](x), lambda x: F["positive"](x),
        lambda x: F["broadcast_like"](x, x + 1), lambda x: F["reshape_like"](x, x), lambda x: F["swapaxes"](F["swapaxes"](x, 0, 1), 0, 1),
        lambda x: F["broadcast_to"](x, shape=(6, 8)),
    ], ids=range(14))
    def test_what_changes_nothing_goes(self, f):
        assert kernels(lambda x: F["exp"](f(x)), X) == ["exp"]

    def test_adding_zero_stays_because_of_minus_zero(self):
        x = mx.np.array([-0.0, 0.0, 1.0])
        assert kernels(lambda v: F["copysign"](1.0, v + 0), x) == ["fused add copysign"]
        assert str(x.asnumpy()[0]) == "-0.0"

    def test_arrays_of_one_number_become_numbers(self):
        assert kernels(lambda x: x * F["ones_like"](x) + F["zeros_like"](x), X) == ["fused multiply add"]

    def test_spread_values_are_read_as_they_are(self):
        assert kernels(lambda x, r: x * F["broadcast_like"](r, x), X, ROW) == ["multiply"]

    def test_a_cast_to_another_dtype_stays(self):
        assert kernels(lambda x: F["cast"](F["cast"](x, dtype="float16"), dtype="float32") * 1, X) == ["cast", "cast"]


class TestConstants:
    def test_calls_on_constants_run_while_compiling(self):
        x = mx.sym.Variable("x")
        c = mx.sym.Constant(mx.np.array([1.0, 4.0, 9.0]))
        f = mx.sym.compile(x + F["sqrt"](c) * 2)
        np.testing.assert_array_equal(f(mx.np.zeros((2, 3))).asnumpy(), [[2, 4, 6]] * 2)
        assert f.num_kernels == 1

    def test_what_depends_on_shapes_alone_is_a_constant(self):
        def f(x):
            return F["cumsum"](F["full_like"](x, fill_value=2.5), axis=0) * x

        assert kernels(f, X) == ["multiply"]
        assert kernels(f, X, without=("fold_constants", "split_prologue")) == ["full_like", "cumsum", "multiply"]

    def test_strided_constants_are_read_as_they_are(self):
        gamma, beta = rand(3), rand(3, seed=1)

        def f(x):
            ones = F["broadcast_to"](F["ones_like"](x[:, :1]), shape=(3, 4))
            return F["layer_norm"](ones, gamma, beta, axis=0) + x, F["cumsum"](F["transpose"](ones), axis=0)

        kernels(f, rand(3, 4))
        values = np.arange(12, dtype="float32").reshape(4, 3)
        x, c = mx.sym.Variable("x"), mx.sym.Constant(mx.np.array(values).T)
        g = mx.sym.compile(F["softmax"](x + F["softmax"](c, axis=-1)))
        want = F["softmax"](F["softmax"](mx.np.array(values.T.copy()), axis=-1))
        assert g(mx.np.zeros((3, 4))).asnumpy().tobytes() == want.asnumpy().tobytes()

    def test_large_results_stay_calls(self):
        x = mx.sym.Variable("x")
        f = mx.sym.compile(F["broadcast_like"](mx.sym.Constant(mx.np.ones((1, 1))), mx.sym.Constant(mx.np.ones((300, 300)))) + x)
        assert f(mx.np.zeros((300, 300))).asnumpy().sum() == 90000


class TestShapes:
    def test_what_only_gives_a_shape_is_not_computed(self):
        assert kernels(lambda x, y: F["ones_like"](F["exp"](x)), X, Y) == ["copy"]  # of a constant
        assert kernels(lambda x, y: F["ones_like"](F["exp"](x)), X, Y, without=("fold_constants",)) == ["ones_like"]
        assert kernels(lambda x, r: F["sum_to_like"](x * 2, F["tanh"](r)), X, ROW) == ["multiply", "sum_to_like"]


def test_each_pass_can_be_left_out_and_unknown_ones_are_refused():
    names = {name for name, _, needed in _core.passes() if not needed}
    assert {"cut_shapes", "fold_constants", "simplify", "merge_equal", "fold_batch_norm", "fuse_pointwise"} <= names
    for name in sorted(names | {"split_prologue", "plan_memory", "everything"}):
        kernels(lambda x, r: F["relu"](x * 1 + r) + F["relu"](x * 1 + r), X, ROW, without=(name,))
    with pytest.raises(ValueError, match="there is no pass fuse"):
        kernels(lambda x: x + 1, X, without=("fuse",))
