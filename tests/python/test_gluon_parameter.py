# SPDX-License-Identifier: Apache-2.0
"""Parameters: values, gradients, requests, shapes, constants, dictionaries."""

import warnings

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, init, np


def made(**kwargs):
    p = gluon.Parameter("weight", shape=(2, 3), **kwargs)
    p.initialize(init.One())
    return p


def test_values_and_gradient():
    p = made()
    assert p.data().shape == (2, 3) and p.list_data()[0] is p.data() and p.list_ctx() == [mx.cpu()]
    with autograd.record():
        y = (p.data() * 3).sum()
    y.backward()
    onp.testing.assert_array_equal(p.grad().asnumpy(), onp.full((2, 3), 3))
    assert p.list_grad()[0].shape == (2, 3)
    p.zero_grad()
    onp.testing.assert_array_equal(p.grad().asnumpy(), onp.zeros((2, 3)))


def test_grad_req_add_and_null():
    p = made(grad_req="add")
    for _ in range(2):
        with autograd.record():
            y = p.data().sum()
        y.backward()
    onp.testing.assert_array_equal(p.grad().asnumpy(), onp.full((2, 3), 2))
    p.grad_req = "null"
    with pytest.raises(mx.MXNetError, match="grad_req is 'null'"):
        p.grad()
    p.grad_req = "write"
    assert p.grad().shape == (2, 3)
    with pytest.raises(ValueError, match="grad_req must be one of"):
        p.grad_req = "sometimes"


def test_initialize_twice_warns_and_keeps():
    p = made()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        p.initialize(init.Zero())
    assert "force_reinit" in str(seen[0].message)
    assert float(p.data().sum()) == 6
    p.initialize(init.Zero(), force_reinit=True)
    assert float(p.data().sum()) == 0


def test_set_data():
    p = made()
    p.set_data(np.full((2, 3), 4.0))
    assert float(p.data().sum()) == 24
    p.set_data(onp.zeros((2, 3)))
    assert float(p.data().sum()) == 0
    with pytest.raises(ValueError, match=r"shape must fit \[2, 3\]; got \[3, 2\]"):
        p.set_data(np.ones((3, 2)))
    later = gluon.Parameter("weight", shape=(0, 3), allow_deferred_init=True)
    later.initialize()
    later.set_data(np.ones((5, 3)))
    assert later.shape == (5, 3) and float(later.data().sum()) == 15


def test_set_data_keeps_identity():
    p = made()
    array = p.data()
    p.set_data(np.zeros((2, 3)))
    assert p.data() is array and float(array.sum()) == 0


def test_shape_is_checked():
    with pytest.raises(ValueError, match="a complete shape is needed"):
        gluon.Parameter("weight", shape=(0, 3)).initialize()
    p = gluon.Parameter("weight", shape=(-1, 3), allow_deferred_init=True)
    p.shape = (4, 3)
    assert p.shape == (4, 3)
    with pytest.raises(ValueError, match="shape must fit"):
        p.shape = (4, 5)
    with pytest.raises(NotImplementedError, match="dense"):
        gluon.Parameter("weight", stype="row_sparse")


def test_cast_keeps_values():
    p = made()
    p.cast("float64")
    assert str(p.data().dtype) == "float64" and str(p.grad().dtype) == "float64" and float(p.data().sum()) == 6


def test_own_initializer_wins():
    p = gluon.Parameter("bias", shape=(3,), init="zeros")
    p.initialize(default_init=init.One())
    assert float(p.data().sum()) == 0


def test_constant():
    c = gluon.Constant(np.array([[1.0, 2.0]]))
    c.initialize()
    onp.testing.assert_array_equal(c.data().asnumpy(), [[1, 2]])
    assert c.grad_req == "null"
    old = gluon.Constant("const", [3.0])
    old.initialize()
    assert float(old.data()) == 3


def test_dictionary():
    d = gluon.ParameterDict()
    w = d.get("weight", shape=(2, 0), allow_deferred_init=True)
    assert d.get("weight", shape=(2, 4)) is w and w.shape == (2, 4)
    assert d.get("absent") is None
    with pytest.raises(KeyError, match="Did you mean 'weight'"):
        d["wieght"]
    d.initialize(init.One())
    d.setattr("lr_mult", 0.5)
    assert w.lr_mult == 0.5 and d.list_ctx() == [mx.cpu()]
    assert "Parameter weight (shape=(2, 4), dtype=float32)" in repr(d)
    with pytest.raises(KeyError, match="give a value"):
        d.get_constant("c")
    other = gluon.ParameterDict(shared=d)
    assert other.get("weight") is w


def test_dictionary_files(tmp_path):
    d = gluon.ParameterDict("net_")
    d.get("weight", shape=(2, 2)), d.get("bias", shape=(2,), init="ones")
    d.initialize(init.One())
    path = str(tmp_path / "d.params")
    d.save(path, strip_prefix="net_")
    assert sorted(mx.nd.load(path)) == ["bias", "weight"]
    d.initialize(init.Zero(), force_reinit=True)
    d.load(path, restore_prefix="net_")
    assert float(d["net_weight"].data().sum()) == 4
    with pytest.raises(ValueError, match="is not at the start"):
        d.save(path, strip_prefix="other_")


def test_one_copy_on_the_cpu():
    with pytest.raises(NotImplementedError, match="one copy on the CPU"):
        gluon.Parameter("weight", shape=(2,)).initialize(ctx=[mx.cpu(0), mx.cpu(1)])
