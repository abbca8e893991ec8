# SPDX-License-Identifier: Apache-2.0
"""Products, sorting, distinct elements, padding and the sequence functions against NumPy, with their gradients."""

import numpy as onp
import pytest

from twibil import autograd, np, npx

RNG = onp.random.default_rng(2)


def data(*shape):
    return RNG.standard_normal(shape).astype("float32")


def close(a, b, tol=2e-5):
    onp.testing.assert_allclose(a.asnumpy(), b, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    "a,b",
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((2, 2, 3), (3,)),
        ((2, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((0, 3), (3, 2)),
    ],
)
def test_dot(a, b):
    x, y = data(*a), data(*b)
    close(np.dot(np.array(x), np.array(y)), onp.dot(x, y))


def test_dot_of_numbers_and_out():
    assert float(np.dot(np.array(2.0), 3)) == 6
    out = np.zeros((2, 2))
    np.dot(np.ones((2, 3)), np.ones((3, 2)), out=out)
    assert out.tolist() == [[3, 3], [3, 3]]
    with pytest.raises(ValueError):
        np.dot(np.ones((2, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("axes", [0, 1, 2, ([0, 1], [1, 0]), (-1, 0), ([2], [0])])
def test_tensordot(axes):
    x, y = data(3, 4, 4), data(4, 3, 4)
    if axes == 2:
        y = data(4, 4, 2)
    close(np.tensordot(np.array(x), np.array(y), axes=axes), onp.tensordot(x, y, axes=axes))


def test_tensordot_errors():
    with pytest.raises(ValueError, match="axis 1 of the first array has size 3"):
        np.tensordot(np.ones((2, 3)), np.ones((2, 3)), axes=1)
    with pytest.raises(ValueError, match="axis 5 is out of range"):
        np.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=([5], [0]))


@pytest.mark.parametrize(
    "text,shapes",
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij,j", [(2, 3), (3,)]),
        ("ijk->k", [(2, 3, 4)]),
    ],
)
def test_einsum(text, shapes):
    arrays = [data(*s) for s in shapes]
    close(np.einsum(text, *map(np.array, arrays)), onp.einsum(text, *arrays), 1e-4)


def test_einsum_errors():
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match="name 2 arrays; got 1"):
        np.einsum("ij,jk", x)
    with pytest.raises(ValueError, match="give array 0 3 axes"):
        np.einsum("ijk->i", x)
    with pytest.raises(ValueError, match="einsum"):
        np.einsum("ij,ji->i", x, x)
    with pytest.raises(ValueError, match="axis in the result that no array has"):
        np.einsum("ij->ik", x)


def test_product_gradients():
    x, y = np.array(data(2, 3, 4)), np.array(data(4, 5))
    x.attach_grad(), y.attach_grad()
    with autograd.record():
        z = (np.einsum("bij,jk->bik", x, y) ** 2).sum()
    z.backward()
    a, b = x.asnumpy(), y.asnumpy()
    close(x.grad, onp.einsum("bik,jk->bij", 2 * a @ b, b), 1e-4)
    close(y.grad, onp.einsum("bij,bik->jk", a, 2 * a @ b), 1e-4)


def test_batch_dot():
    x, y = data(3, 2, 4), data(3, 5, 4)
    close(npx.batch_dot(np.array(x), np.array(y), transpose_b=True), x @ y.swapaxes(1, 2))
    close(
        npx.batch_dot(np.array(x.swapaxes(1, 2)), np.array(y), transpose_a=True, transpose_b=True), x @ y.swapaxes(1, 2)
    )
    with pytest.raises(ValueError, match="batch_dot: a and b must have shape"):
        npx.batch_dot(np.ones((2, 3)), np.ones((3, 2)))


def test_sort_and_unique():
    x = RNG.integers(0, 5, (3, 6)).astype("float32")
    a = np.array(x)
    close(np.sort(a), onp.sort(x))
    close(np.sort(a, axis=0), onp.sort(x, axis=0))
    close(np.sort(a, axis=None), onp.sort(x, axis=None))
    assert np.argsort(a, axis=1).tolist() == onp.argsort(x, axis=1, kind="stable").tolist()
    assert str(a.argsort().dtype) == "int64"
    got = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    expect = onp.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for g, e in zip(got, expect):
        assert g.reshape(-1).tolist() == onp.asarray(e).reshape(-1).tolist()
    assert np.unique(a).tolist() == onp.unique(x).tolist()
    values, places = npx.topk(a, k=2, ret_typ="both", axis=1)
    assert values.tolist() == (-onp.sort(-x, axis=1))[:, :2].tolist() and str(places.dtype) == "float32"
    assert a.topk(k=1, ret_typ="value").shape == (3, 1)


def test_nonzero_and_where():
    x = onp.array([[0, 1, 0], [2, 0, 3]], "float32")
    a = np.array(x)
    for got, expect in zip(np.nonzero(a), onp.nonzero(x)):
        assert got.tolist() == expect.tolist()
    assert [v.tolist() for v in np.where(a > 1)] == [v.tolist() for v in onp.where(x > 1)]
    close(np.where(a > 1, a, -1), onp.where(x > 1, x, -1))
    assert npx.nonzero(a).tolist() == onp.argwhere(x).tolist()
    with pytest.raises(ValueError, match="both x and y"):
        np.where(a, 1)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad(mode):
    x = data(3, 4)
    more = {"constant_values": 7} if mode == "constant" else {}
    for width in (1, (1, 2), ((1, 0), (2, 1))):
        close(np.pad(np.array(x), width, mode=mode, **more), onp.pad(x, width, mode=mode, **more))
    with pytest.raises(ValueError, match="pad_width must be"):
        np.pad(np.array(x), ((1, 1),) * 3)


def test_sequences():
    x = data(4, 3, 2)
    lengths = np.array([1, 4, 2])
    masked = npx.sequence_mask(np.array(x), lengths, True, value=-1.0)
    expect = x.copy()
    for b, n in enumerate((1, 4, 2)):
        expect[n:, b] = -1
    close(masked, expect)
    close(npx.sequence_mask(np.array(x.swapaxes(0, 1)), lengths, True, -1.0, axis=1), expect.swapaxes(0, 1))
    close(npx.sequence_last(np.array(x), lengths, True), onp.stack([x[0, 0], x[3, 1], x[1, 2]]))
    back = x.copy()
    for b, n in enumerate((1, 4, 2)):
        back[:n, b] = x[:n, b][::-1]
    close(npx.sequence_reverse(np.array(x), lengths, True), back)


def test_small_extensions():
    x = data(3, 4)
    a = np.array(x)
    close(npx.slice(a, begin=(0, None), end=(2, None), step=(1, 2)), x[0:2, ::2])
    close(npx.slice_axis(a, axis=1, begin=1, end=3), x[:, 1:3])
    close(npx.slice_like(a, np.ones((2, 2))), x[:2, :2])
    assert npx.arange_like(a, axis=1).tolist() == [0, 1, 2, 3] and npx.shape_array(a).tolist() == [3, 4]
    assert npx.batch_flatten(np.ones((2, 3, 4))).shape == (2, 12)
    close(
        npx.index_update(a, np.array([[0, 2], [1, 3]], dtype="int64"), 5.0),
        [[x[0, 0], 5, *x[0, 2:]], x[1], [*x[2, :3], 5]],
    )
    close(npx.index_add(a, 1, 1.0)[1], x[1] + 1)
    a.attach_grad()
    with autograd.record():
        y = (npx.stop_gradient(a) * a).sum()
    y.backward()
    close(a.grad, x)


def test_methods():
    x = data(2, 3)
    a = np.array(x)
    assert a.flatten().shape == (6,) and a.ravel().shape == (6,) and a.reshape_view(3, 2).shape == (3, 2)
    close(a.dot(np.array(x.T)), x @ x.T)
    close(a.sort(), onp.sort(x))
    assert [p.shape for p in a.split(3, axis=1)] == [(2, 1)] * 3
    close(a.softmax(), onp.exp(x) / onp.exp(x).sum(-1, keepdims=True))
    assert np.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    values, gap = np.linspace(0, 1, 4, endpoint=False, retstep=True)
    assert gap == 0.25 and values.shape == (4,)
