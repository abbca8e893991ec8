# SPDX-License-Identifier: Apache-2.0
"""Numbers, lists and NumPy arrays as arrays: values are kept or refused, gradients are kept or refused."""
import numpy as onp
import pytest

from twibil import autograd, np


def test_uint64_is_kept_rounded_or_refused():
    big = 2**63
    assert np.array([big]).item() == 2.0**63
    assert np.array([big, 2**64 - 1], dtype="float64").tolist() == [2.0**63, 2.0**64]
    assert np.array(onp.array([big], "uint64"), dtype="float32").item() == 2.0**63
    assert np.array(onp.array([0, big], "uint64"), dtype="bool").tolist() == [False, True]
    for refused in (lambda: np.array(onp.array([1, big], "uint64")), lambda: np.array([big], dtype="int64"),
                    lambda: np.ones(1) + onp.uint64(big), lambda: np.array(onp.array([big], ">u8"))):
        with pytest.raises(OverflowError, match=f"{big} does not fit int64.*float64"):
            refused()
    for kept in (onp.array([1, big - 1], "uint64"), onp.zeros((0, 2), "uint64"), onp.array([7], ">u8"),
                 onp.uint64(5)):
        ours = np.array(kept)
        assert ours.dtype == onp.int64 and ours.shape == kept.shape
        assert ours.tolist() == kept.tolist()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("number", [2**63, -2**70])
def test_numbers_beyond_64_bits_are_no_integers(dtype, number):
    x = np.array([1, 2], dtype=dtype)
    for key in (0, slice(None), x > 1, [1]):
        with pytest.raises(OverflowError, match=f"assign: .* 64 bits.*{dtype}"):
            x[key] = number
    with pytest.raises(OverflowError, match=f"array: .* 64 bits.*{dtype}"):
        np.array(number, dtype=dtype)
    assert x.tolist() == [1, 2]
    y = np.zeros(2)
    y[0] = number
    assert y.tolist() == [number, 0] and np.array(number, dtype="float64").item() == number


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i4", "i8", "u1"])
def test_the_other_byte_order_keeps_dtype_and_values(kind):
    ours = np.array(onp.arange(6).reshape(2, 3).astype(">" + kind))
    assert ours.dtype == onp.dtype(kind) and ours.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("dtype", ["float64", "float16", "float32", None])
def test_a_copy_in_another_dtype_has_the_gradient(dtype):
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = np.array(x * 3, dtype=dtype)
    assert y.dtype == onp.dtype(dtype or "float32")
    y.backward()
    assert x.grad.tolist() == [3, 3]


def test_gradients_flow_through_a_list_of_arrays():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = np.array([x[0], 4, x[2] * x[1]])
        nested = np.array([[x[1], 1.0], (x[0], onp.float32(2))], dtype="float64")
        total = (y * np.array([1, 1, 2])).sum() + nested.sum().astype("float32") + np.sum([x[0], x[0]])
    assert y.tolist() == [1, 4, 6] and nested.tolist() == [[2, 1], [1, 2]] and nested.dtype == onp.float64
    total.backward()
    assert x.grad.tolist() == [1 + 1 + 2, 6 + 1, 4]
    with autograd.record(), pytest.raises(ValueError, match=r"array: .* one shape; got \[3\] and \[2\].*concatenate"):
        np.array([x, x[:2]])
    assert np.array([x[0], x[2]]).tolist() == [1, 3]  # nobody records


def test_lists_that_hold_themselves_or_change_are_safe_while_recording():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    endless = [x]
    endless.append(endless)
    class Emptying:
        def __array__(self, *_, **__):
            changing.clear()
            return onp.zeros(2)
    with autograd.record():
        with pytest.raises(ValueError, match="nested at most 8 deep"):
            np.array(endless)
        changing = [x * 2, Emptying(), x * 3]
        y = np.array(changing)
    assert changing == [] and y.tolist() == [[2, 4], [0, 0], [3, 6]]
    y.backward()
    assert x.grad.tolist() == [5, 5]
