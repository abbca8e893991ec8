# SPDX-License-Identifier: Apache-2.0
"""A call that is refused leaves its arrays whole; composed operators pass their attributes on."""
import os
import subprocess
import sys

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, np, npx


def test_a_refused_write_to_a_read_only_array_keeps_it():
    x = np.array([1.0, 2.0])
    wide = np.broadcast_to(x, (2, 2))
    for _ in range(3):
        with pytest.raises(ValueError, match="read-only"):
            wide[0] = 1.0
    fresh = [np.zeros(2) for _ in range(16)]  # would take over a block that was given back too early
    assert wide.asnumpy().tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert all(f.asnumpy().tolist() == [0.0, 0.0] for f in fresh)


def test_a_refused_write_through_a_view_keeps_it():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        h = x * 1
        view = h[0:1]
        for _ in range(3):
            with pytest.raises(ValueError, match="view of a recorded array"):
                view[:] = 3
        fresh = [np.zeros(1) for _ in range(16)]
        assert view.asnumpy().tolist() == [1.0] and len(fresh) == 16
        y = (h * 2).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [2.0, 2.0]


NOT_TEXT = "\ud800"  # a lone surrogate: a str that has no UTF-8


@pytest.mark.parametrize("call, error", [
    (lambda x: autograd.backward([None]), TypeError), (lambda x: autograd.backward(None), TypeError),
    (lambda x: autograd.backward(3), TypeError), (lambda x: autograd.grad([x], [None]), TypeError),
    (lambda x: autograd.grad([None], [x]), TypeError), (lambda x: autograd.mark_variables([None], [None]), TypeError),
    (lambda x: autograd.mark_variables([x], [None]), TypeError),
    (lambda x: autograd.mark_variables([x], [x.copy()], [1]), TypeError),
    (lambda x: autograd.mark_variables([x], [x.copy()], ["put"]), ValueError),
    (lambda x: mx._core.mark_variables([x], [x.copy()], []), ValueError),
    (lambda x: mx._core.record_function([None], [x], print), TypeError),
    (lambda x: np.sum(x, **{NOT_TEXT: 1}), UnicodeEncodeError),
    (lambda x: np.zeros(3, ctx=NOT_TEXT), UnicodeEncodeError),
    (lambda x: np.zeros(3, order=NOT_TEXT), UnicodeEncodeError), (lambda x: x.astype(NOT_TEXT), UnicodeEncodeError),
    (lambda x: np.zeros(3, order=""), ValueError),
    (lambda x: mx._core.functions(NOT_TEXT), UnicodeEncodeError), (lambda x: mx._core.functions(1), TypeError),
    (lambda x: mx._core.call_operator("sum", [x], {NOT_TEXT: 1}), UnicodeEncodeError),
    (lambda x: mx._core.call_operator("sum", [x], {1: 1}), TypeError),
    (lambda x: mx._core.call_operator("sum", [x], NOT_TEXT), UnicodeEncodeError),
    (lambda x: np.array(onp.datetime64("2020-01-01")), TypeError), (lambda x: x + onp.timedelta64(1, "D"), TypeError),
    (lambda x: np.array(onp.array(["2020-01-01"], "M8[D]")), TypeError), (lambda x: x.__format__(1), TypeError),
    (lambda x: mx._core.recording_scope(x), ValueError), (lambda x: mx._core.set_recording(x), ValueError),
    (lambda x: mx._core.set_training(x), ValueError)])
def test_none_and_text_in_the_wrong_place_are_errors(call, error):
    x = np.ones(2)
    with pytest.raises(error):
        call(x)
    assert not autograd.is_recording() and not autograd.is_training()


def test_a_bad_seed_in_the_environment_is_an_error():
    program = ("import twibil as mx\n"
               "for call in (mx.random.get_state, lambda: mx.np.random.uniform(size=2)):\n"
               "    try: call()\n"
               "    except ValueError as e: assert 'TWIBIL_SEED' in str(e), e\n"
               "    else: raise SystemExit('no error')\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TWIBIL_SEED": "abc"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 2), "keepdims": True}, {"axis": 1, "ddof": 1}])
def test_std_is_the_root_of_var(options):
    x = onp.random.RandomState(0).rand(2, 3, 4).astype("float32")
    onp.testing.assert_allclose(np.std(np.array(x), **options).asnumpy(), onp.std(x, **options), rtol=1e-5)


@pytest.mark.parametrize("call", [
    lambda: np.moveaxis(np.ones((2, 3)), 5, 0), lambda: np.roll(np.ones((2, 3)), 1, axis=2),
    lambda: np.diff(np.ones(()), axis=0), lambda: np.trapz(np.ones(3), axis=1), lambda: np.trace(np.ones(3)),
    lambda: np.diagonal(np.ones(())), lambda: np.cross(np.ones(()), np.ones(3)), lambda: np.rot90(np.ones(3)),
    lambda: np.linalg.norm(np.ones((2, 3)), axis=2), lambda: np.random.permutation(np.ones(())),
    lambda: npx.slice_axis(np.ones(()), 0, 0, 1), lambda: npx.slice_like(np.ones((2, 3)), np.ones(2)),
    lambda: npx.batch_flatten(np.ones(())), lambda: npx.gpu_memory_info(0)])
def test_axes_that_do_not_exist_are_refused(call):
    with pytest.raises(ValueError):
        call()


def test_functions_of_numpy_take_lists():
    assert np.roll([1, 2, 3], 1).tolist() == [3, 1, 2]
    assert np.moveaxis([[1, 2, 3]], 0, 1).shape == (3, 1)
    assert np.roll(np.array([[1, 2], [3, 4]]), (1, 1), axis=0).tolist() == [[1, 2], [3, 4]]
    assert [a.tolist() for a in np.hsplit([1, 2], 2)] == [[1], [2]]
    assert np.diff([1, 3, 6], n=2**62).tolist() == []
    assert np.allclose(np.ones(2), np.ones(2), rtol=np.array(1e-5))
    assert float(np.linalg.norm([3, 4])) == 5


def test_dlpack_says_that_it_is_not_there():
    with pytest.raises(NotImplementedError, match="DLPack"):
        npx.from_dlpack


def test_a_gamma_of_infinite_shape_ends():
    with pytest.raises(ValueError, match="random_gamma: shape and scale must be positive"):
        np.random.gamma(float("inf"), size=2)


@pytest.mark.parametrize("call", [
    lambda gpu: np.zeros(2, ctx=gpu), lambda gpu: gpu.__enter__(), lambda gpu: np.random.uniform(size=2, ctx=gpu),
    lambda gpu: np.random.normal(0.0, 1.0, 2, None, gpu), lambda gpu: np.random.gamma(1.0, size=2, device=gpu),
    lambda gpu: np.random.randint(3, device=gpu), lambda gpu: np.random.choice(3, ctx=gpu),
    lambda gpu: np.random.multinomial(2, [0.5, 0.5], ctx=gpu), lambda gpu: np.random.bernoulli(0.5, ctx=gpu),
    lambda gpu: np.random.permutation(3, ctx=gpu)])
def test_a_device_that_does_not_exist_is_refused(call):
    with pytest.raises(ValueError, match="gpu"):
        call(mx.gpu(0))
    assert mx.current_context() == mx.cpu()


def test_arguments_that_do_not_exist_are_not_swallowed():
    with pytest.raises(TypeError, match="dtyp"):
        mx.nd.zeros((2,), dtyp="int32")
    with pytest.raises(TypeError, match="dtyp"):
        mx.nd.ones((2,), dtyp="int32")
    with pytest.raises(NotImplementedError, match="csr"):
        mx.nd.zeros((2,), stype="csr")
    with pytest.raises(NotImplementedError):
        np.may_share_memory(np.ones(2), np.ones(2))


def test_numbers_that_a_dtype_lacks_are_not_drawn():
    with pytest.raises(ValueError, match="int8"):
        np.random.randint(0, 1000, size=5, dtype="int8")
    assert set(np.random.randint(-128, 128, size=2000, dtype="int8").tolist()) <= set(range(-128, 128))


@pytest.mark.parametrize("name, arrays, attrs", [
    ("embedding_grad", [onp.zeros(9, "int32"), onp.ones((1, 1)), onp.ones((5, 4))], ""),
    ("basic_index_grad", [onp.ones(3), onp.ones((4, 5))], "start=(3, 1), step=(-2, 1), size=(2, -1)"),
    ("convolution_data", [onp.ones((1, 1, 1, 1)), onp.ones((4, 3, 3, 3)), onp.ones((2, 3, 8, 8))], "kernel=(3, 3)"),
    ("convolution_weight", [onp.ones((2, 3, 8, 8)), onp.ones((2, 4, 7, 7)), onp.ones((4, 3, 3, 3))], "kernel=(3, 3)")])
def test_gradient_operators_refuse_shapes_that_do_not_fit(name, arrays, attrs):
    with pytest.raises(ValueError, match=name + ": dy"):
        mx._core.call_operator(name, [np.array(a) for a in arrays], attrs)


def test_choice_draws_nothing_of_probability_0():
    with pytest.raises(ValueError, match="probabilities above 0"):
        np.random.choice(3, size=2, replace=False, p=np.array([1.0, 0.0, 0.0]))
    assert sorted(np.random.choice(3, size=2, replace=False, p=np.array([0.5, 0.0, 0.5])).tolist()) == [0, 2]


@pytest.mark.parametrize("options", [{"stride": (1,), "adj": (1,)}, {"stride": (1,), "target_shape": (5,)},
                                     {"stride": (2,), "adj": (2,)}])
def test_a_transposed_convolution_that_has_no_convolution_is_refused(options):
    with pytest.raises(ValueError, match="smaller than stride"):
        npx.deconvolution(np.ones((1, 1, 4)), np.ones((1, 1, 3)), kernel=(3,), no_bias=True, **options)
    x = np.ones((1, 1, 4))
    x.attach_grad()
    with autograd.record():
        y = npx.deconvolution(x, np.ones((1, 1, 3)), kernel=(3,), no_bias=True, stride=(2,), adj=(1,))
    y.backward()
    assert y.shape == (1, 1, 10) and x.grad.tolist() == [[[3, 3, 3, 3]]]


@pytest.mark.parametrize("call, kind, message", [
    (lambda: mx.cpu("x"), TypeError, "the number must be an integer; got 'x'"),
    (lambda: mx.np.array_split(mx.np.ones(3), 2 ** 63), MemoryError, "sections are more than"),
    (lambda: mx.np.split(mx.np.ones(0), 10 ** 25), MemoryError, "sections are more than"),
    (lambda: mx.gluon.nn.Dense(3, unit=4), TypeError, "Dense: there is no argument 'unit'. Did you mean 'units'"),
    (lambda: mx.gluon.loss.L2Loss()(mx.np.ones(3), None), TypeError, "L2Loss: the second argument must be an array"),
    (lambda: mx.image.imresize([[1]], 2, 2), TypeError, "imresize: the picture must be an array; got list"),
    (lambda: mx.image.random_crop(mx.np.ones((2, 2)), (1, 1)), ValueError, "random_crop: the picture must have 3 dimensions"),
])
def test_mistakes_of_front_ends_are_named(call, kind, message):
    with pytest.raises(kind, match=message.replace("(", r"\\(")):
        call()


def test_the_axis_of_a_batch_norm_layer_is_checked():
    layer = mx.gluon.nn.BatchNorm(axis=5)
    layer.initialize()
    with pytest.raises(ValueError, match="BatchNorm: axis 5 is out of range"):
        layer(mx.np.ones((2, 3)))
