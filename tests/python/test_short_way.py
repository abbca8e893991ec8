# SPDX-License-Identifier: Apache-2.0
"""Small calls take a way of their own (src/runtime/plain_call.cc); it and the long way give the same, errors too."""
import numpy
import pytest

from twibil import autograd, np


def both(shape, dtype="float32", seed=0):
    a = numpy.random.RandomState(seed).uniform(-4, 4, shape).astype(dtype)
    return a, np.array(a, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("m, k, n", [(8, 8, 8), (1, 1, 1), (7, 3, 5), (9, 8, 16), (17, 8, 8), (3, 0, 4), (0, 3, 4), (25, 25, 25),
                                     (27, 27, 27), (32, 128, 32), (33, 5, 33), (1, 2000, 1), (4, 8, 33)])
def test_products_on_both_sides_of_the_limits(m, k, n, dtype):
    (a, x), (b, y) = both((m, k), dtype), both((k, n), dtype, 1)
    got = np.matmul(x, y).asnumpy()
    assert got.shape == (m, n) and got.dtype == dtype
    numpy.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)
    numpy.testing.assert_array_equal((x @ y).asnumpy(), got)
    numpy.testing.assert_allclose(np.matmul(y.T, x.T).asnumpy(), got.T, rtol=1e-4, atol=1e-4)


def test_products_of_two_dtypes_take_the_long_way():
    (a, x), (b, y) = both((3, 4)), both((4, 2), "int32", 1)
    numpy.testing.assert_allclose((x @ y).asnumpy(), a @ b, rtol=1e-5)
    with pytest.raises(ValueError, match="matmul: the last dimension of a, 4"):
        x @ x


@pytest.mark.parametrize("size", [100, 16383, 16384, 16385])
def test_sums_and_joins_around_the_largest_small_array(size):
    a, x = both((size,))
    assert abs(float(x.sum()) - a.sum()) < 0.5
    numpy.testing.assert_array_equal(np.concatenate([x, x]).asnumpy(), numpy.concatenate([a, a]))
    numpy.testing.assert_array_equal(np.concatenate((x, x, x, x, x)).asnumpy(), numpy.concatenate([a] * 5))


def test_gradients_are_recorded():
    x, w = np.ones((3, 4)), np.ones((4, 2))
    x.attach_grad(), w.attach_grad()
    with autograd.record():
        y = np.matmul(x, w).sum() + x[np.array([0, 2], dtype="int32")].sum() + x.T.reshape(-1).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [[4] * 4, [3] * 4, [4] * 4] and (w.grad == 3).all()


@pytest.mark.parametrize("n", [1, 2, 7, 8, 63, 64, 70])
@pytest.mark.parametrize("where", [(), (0,), (-1,), (0, -1), "all"])
def test_positions_of_extrema_with_nan_and_ties(n, where):
    a = numpy.random.RandomState(n).randint(-3, 3, (5, n)).astype("float32")
    for i in range(n) if where == "all" else where:
        a[1:3, i] = numpy.nan
    x = np.array(a)
    numpy.testing.assert_array_equal(np.argmax(x, axis=1).asnumpy(), numpy.argmax(a, axis=1))
    numpy.testing.assert_array_equal(np.argmin(x, axis=1).asnumpy(), numpy.argmin(a, axis=1))


def test_rows_by_an_array_of_integers():
    a, x = both((4, 3))
    for index in ([1, 3, -1], 2, [[0, 1], [2, 3]], list(range(4)) * 10, []):
        i = numpy.array(index, "int64")
        numpy.testing.assert_array_equal(x[np.array(i, dtype="int64")].asnumpy(), a[i])
    with pytest.raises(IndexError, match="index 4 is out of range for axis 0 with size 4"):
        x[np.array([0, 4], dtype="int32")].wait_to_read()
    with pytest.raises(IndexError):
        np.array(1.0)[np.array([0], dtype="int32")]


@pytest.mark.parametrize("wanted", [24, -1, (2, 12), (2, -1, 2), (24, 1, 1), (1, -1)])
def test_reshapes(wanted):
    a, x = both((4, 6))
    for b, y in ((a, x), (a.T, x.T), (a[::2], x[::2])):
        if wanted in (24, (2, 12), (24, 1, 1)) and b.size != 24:
            with pytest.raises(ValueError, match="does not fit newshape"):
                y.reshape(wanted)
        else:
            numpy.testing.assert_array_equal(y.reshape(wanted).asnumpy(), b.reshape(wanted))
    empty = np.zeros((0, 3))
    assert empty.reshape((3, 0)).shape == (3, 0)
    for bad in ((-1, -1), (-2, 12), (5, -1), (0, -1)):
        with pytest.raises(ValueError):
            x.reshape(bad)
    with pytest.raises(ValueError):
        empty.reshape((0, 1 << 62, 1 << 62))
