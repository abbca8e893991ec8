# SPDX-License-Identifier: Apache-2.0
"""Elements chosen or bounded by other arrays: clip, where, take, one_hot, with NumPy's rules in `np` and MXNet's in `nd`.
What MXNet 1.9.1 gives was taken down from it."""
import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, nd, np, npx

A = onp.random.default_rng(3).standard_normal((3, 4)).astype("float32")
LOW, HIGH = onp.full(4, -0.5, "float32"), onp.linspace(-1, 1, 4).astype("float32")


@pytest.mark.parametrize("low, high", [(LOW, HIGH), (LOW, None), (None, HIGH), (-0.5, HIGH), (LOW[:3, None], 0.25), (-0.5, 0.5),
                                       (None, 0.5), (HIGH, LOW), ([-1.0, 0, 0, 0], None)])
def test_clip_by_arrays(low, high):
    def ours(v):
        return np.array(v) if isinstance(v, onp.ndarray) else v

    want = onp.clip(A, low, high)
    for got in (np.clip(np.array(A), ours(low), ours(high)), np.array(A).clip(ours(low), ours(high)),
                np.clip(np.array(A), a_min=ours(low), a_max=ours(high)), np.array(A).clip(min=ours(low), max=ours(high)),
                np.clip(A, low, high), onp.clip(np.array(A), low, high)):
        assert got.dtype == "float32"
        onp.testing.assert_array_equal(got.asnumpy(), want)
    x = np.array(A)
    assert np.clip(x, ours(low), ours(high), out=x) is x
    onp.testing.assert_array_equal(x.asnumpy(), want)


def test_clip_of_integers():
    x = np.array([1, 5, 9], dtype="int32")
    assert np.clip(x, 2, 8).tolist() == [2, 5, 8] and np.clip(x, 2, 8).dtype == "int32"
    assert np.clip(x, np.array([3, 3, 3], dtype="int32"), None).tolist() == [3, 5, 9]
    assert np.clip(x, None, np.array([2.5, 2.5, 2.5])).dtype == "float32"  # an integer beside a float32
    assert np.clip(x).tolist() == [1, 5, 9]


def test_clip_gives_gradients_to_bounds():
    x, low, high = np.array([-2.0, 0.0, 3.0]), np.array([-1.0]), np.array([1.0, 1.0, 2.0])
    for a in (x, low, high):
        a.attach_grad()
    with autograd.record():
        y = (np.clip(x, low, high) * np.array([1.0, 10.0, 100.0])).sum()
    y.backward()
    assert x.grad.tolist() == [0, 10, 0] and low.grad.tolist() == [1] and high.grad.tolist() == [0, 0, 100]


def test_clip_refuses_bounds_that_do_not_fit():
    with pytest.raises(ValueError, match=r"^clip: "):
        np.clip(np.array(A), np.zeros(5), None)
    with pytest.raises(TypeError, match="^clip: argument a_max must be an array or a number; got str"):
        np.clip(np.array(A), 0, "1")


def test_where_of_nd_chooses_rows():
    x, y = nd.array([[1, 2], [3, 4]]), nd.array([[5, 6], [7, 8]])
    assert nd.where(nd.array([1, 0]), x, y).tolist() == [[1, 2], [7, 8]]  # NumPy broadcasts along the other axis:
    assert np.where(np.array([1, 0]), x, y).tolist() == [[1, 6], [3, 8]]
    assert nd.where(nd.array([[1, 0], [0, 1]]), x, y).tolist() == [[1, 6], [7, 4]]
    cube = nd.array(onp.arange(8).reshape(2, 2, 2))
    assert nd.where(nd.array([0, 1]), cube, -cube).tolist() == [[[0, -1], [-2, -3]], [[4, 5], [6, 7]]]
    assert mx.nd.where(nd.array([1, 0, 1]), nd.array([1, 2, 3]), nd.array([4, 5, 6])).tolist() == [1, 5, 3]
    with pytest.raises(ValueError, match="where: a condition of one dimension needs as many elements as x has rows; got 3"):
        nd.where(nd.array([1, 0, 1]), x, y)


def test_take_of_nd_clips_and_takes_rows():
    x = nd.array([[1, 2], [3, 4]])
    assert nd.take(x, nd.array([5, -1])).tolist() == [[3, 4], [1, 2]]
    assert nd.take(x, nd.array([5, -1]), mode="wrap").tolist() == [[3, 4], [3, 4]]
    assert nd.take(x, nd.array([5, 0]), axis=1).tolist() == [[2, 1], [4, 3]]
    with pytest.raises(IndexError, match="index 5 is out of range for axis 0 with size 2"):
        nd.take(x, nd.array([5, -1]), mode="raise")
    # np's: the flattened array, and an error
    assert np.take(x, np.array([3, -1])).tolist() == [4, 4]
    with pytest.raises(IndexError):
        np.take(x, np.array([4]))
    assert np.take(x, np.array([7, -7]), mode="clip").tolist() == [4, 1]


def test_one_hot_of_an_index_outside_is_a_row_of_off_value():
    assert npx.one_hot(np.array([0, 3, -1, 4, 2.7]), 4).tolist() == [
        [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert nd.one_hot(nd.array([0, 7]), 3, on_value=2, off_value=-1).tolist() == [[2, -1, -1], [-1, -1, -1]]
    assert npx.one_hot(np.array([onp.nan, onp.inf, -onp.inf]), 2).tolist() in ([[0, 0]] * 3, [[1, 0], [0, 0], [0, 0]])
    assert np.array([1], dtype="int64").one_hot(2).tolist() == [[0, 1]]
