# SPDX-License-Identifier: Apache-2.0
"""`npx.set_np(dtype=True)`: what has no dtype of its own becomes float64 (whole numbers of `arange` and `full`: int64), in
the whole process; without it float32."""
import threading

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, np, npx, util


@pytest.fixture(autouse=True)
def restored():
    yield
    npx.set_np()


# a call, its dtype with the switch, its dtype without
CASES = [
    (lambda: np.array([1, 2]), "float64", "float32"),
    (lambda: np.array([1.5]), "float64", "float32"),
    (lambda: np.array(2.0), "float64", "float32"),
    (lambda: np.array([True]), "bool", "bool"),
    (lambda: np.array(onp.ones(2, "float32")), "float32", "float32"),
    (lambda: np.zeros(2), "float64", "float32"),
    (lambda: np.ones((2, 3)), "float64", "float32"),
    (lambda: np.empty(2), "float64", "float32"),
    (lambda: np.full(2, 2.5), "float64", "float32"),
    (lambda: np.full(2, 3), "int64", "float32"),
    (lambda: np.full(2, True), "bool", "bool"),
    (lambda: np.arange(3), "int64", "float32"),
    (lambda: np.arange(3, 7, 2), "int64", "float32"),
    (lambda: np.arange(3.0), "float64", "float32"),
    (lambda: np.arange(0, 1, 0.25), "float64", "float32"),
    (lambda: np.eye(2), "float64", "float32"),
    (lambda: np.identity(2), "float64", "float32"),
    (lambda: np.tri(2), "float64", "float32"),
    (lambda: np.linspace(0, 1, 3), "float64", "float32"),
    (lambda: np.logspace(0, 1, 3), "float64", "float32"),
    (lambda: np.indices((2,)), "int64", "int64"),
    (lambda: np.random.uniform(size=2), "float64", "float32"),
    (lambda: np.random.normal(size=2), "float64", "float32"),
    (lambda: np.random.rand(2), "float64", "float32"),
    (lambda: np.random.randn(2), "float64", "float32"),
    (lambda: np.random.gamma(2.0, size=2), "float64", "float32"),
    (lambda: np.random.chisquare(2, 4), "float64", "float32"),
    (lambda: np.random.exponential(size=2), "float64", "float32"),
    (lambda: np.random.laplace(size=2), "float64", "float32"),
    (lambda: np.random.bernoulli(0.5, size=2), "float64", "float32"),
    (lambda: np.random.bernoulli(np.full(2, 0.5)), "float64", "float32"),
    (lambda: np.random.randint(3), "int64", "int64"),
    (lambda: np.array([1, 2], dtype="int32") / 2, "float64", "float32"),
    (lambda: np.array([1, 2], dtype="int32") + 0.5, "float64", "float32"),
    (lambda: np.sqrt(np.array([1, 2], dtype="int64")), "float64", "float32"),
    (lambda: np.mean(np.array([1, 2], dtype="int64")), "float64", "float32"),
    (lambda: np.var(np.array([1, 2], dtype="int64")), "float64", "float32"),
    (lambda: npx.softmax(np.array([1, 2], dtype="int64")), "float64", "float32"),
    (lambda: npx.one_hot(np.array([1], dtype="int64"), 3), "float64", "float32"),
    # what has a dtype keeps it
    (lambda: np.ones(2, dtype="float32") + 0.5, "float32", "float32"),
    (lambda: np.ones(2, dtype="float32") + np.ones(2, dtype="int64"), "float32", "float32"),
    (lambda: np.zeros_like(np.ones(2, dtype="float16")), "float16", "float16"),
    (lambda: np.ones(2, dtype="float32").sum(), "float32", "float32"),
    (lambda: mx.nd.zeros(2), "float32", "float32"),
]


@pytest.mark.parametrize("call, on, off", CASES, ids=[str(i) for i in range(len(CASES))])
def test_dtype_of_results(call, on, off):
    npx.set_np(dtype=True)
    assert str(call().dtype) == on
    npx.set_np()
    assert str(call().dtype) == off


def test_values_are_those_of_numpy():
    npx.set_np(dtype=True)
    assert (np.arange(0, 1, 0.1).asnumpy() == onp.arange(0, 1, 0.1)).all()
    assert (np.linspace(0, 1, 7).asnumpy() == onp.linspace(0, 1, 7)).all()
    assert np.array([0.1]).asnumpy()[0] == 0.1 and float(np.array([1, 2], dtype="int32").mean() / 3) == 0.5
    assert np.random.uniform(size=1000).asnumpy().astype("float32").astype("float64").tolist() != \
        np.random.uniform(size=1000).asnumpy().tolist()


def test_gradients_have_the_dtype():
    npx.set_np(dtype=True)
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = (np.exp(x) * 1.5).mean()
    y.backward()
    assert x.grad.dtype == "float64"
    onp.testing.assert_allclose(x.grad.asnumpy(), onp.exp([1.0, 2.0]) * 0.75, rtol=1e-15)


def test_names_and_scopes():
    assert not npx.is_np_default_dtype() and not mx.is_np_default_dtype()
    assert npx.set_np_default_dtype(True) is False and util.is_np_default_dtype()
    assert npx.set_np_default_dtype(False) is True
    with mx.np_default_dtype(True):
        assert np.ones(2).dtype == "float64"
        with util.np_default_dtype(False):
            assert np.ones(2).dtype == "float32"
        assert np.ones(2).dtype == "float64"
    assert np.ones(2).dtype == "float32"
    assert mx.use_np_default_dtype(lambda: np.ones(2).dtype)() == "float64" and not npx.is_np_default_dtype()
    npx.set_np(dtype=True)
    npx.reset_np()
    assert not (npx.is_np_default_dtype() or npx.is_np_array() or npx.is_np_shape())
    with pytest.raises(TypeError, match="the default dtype must be float32 or float64; got int32"):
        mx._core.set_default_dtype("int32")


def test_holds_for_other_threads():
    """As in MXNet 2: workers of a DataLoader make arrays of the same dtype as the program."""
    npx.set_np(dtype=True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(str(np.ones(1).dtype)))
    thread.start()
    thread.join()
    assert seen == ["float64"]
    data = gluon.data.DataLoader([1.5, 2.5], batch_size=2, num_workers=1)
    assert [str(b.dtype) for b in data] == ["float64"]
    pad = gluon.data.batchify.Pad()
    assert pad([[1.0], [1.0, 2.0]]).dtype == "float64"
    npx.set_np()
    assert pad([[1.0], [1.0, 2.0]]).dtype == "float32"
    assert pad([np.ones(1, dtype="float64"), np.ones(2, dtype="float64")]).dtype == "float64"


def test_printing_leaves_the_default_out():
    npx.set_np(dtype=True)
    assert repr(np.array([1.0])) == "array([1.])"
    assert repr(np.array([1.0], dtype="float32")) == "array([1.], dtype=float32)"
    npx.set_np()
    assert repr(np.array([1.0], dtype="float64")) == "array([1.], dtype=float64)"
    assert repr(np.array([1.0]).astype("bfloat16")) == "array([1.], dtype=bfloat16)"


def test_layers_keep_their_dtype():
    npx.set_np(dtype=True)
    net = gluon.nn.Dense(2)
    net.initialize()
    assert net(np.ones((1, 3), dtype="float32")).dtype == "float32"
    net.cast("float64")
    assert net(np.ones((1, 3))).dtype == "float64"
