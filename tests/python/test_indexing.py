# SPDX-License-Identifier: Apache-2.0
"""x[key] and x[key] = value against NumPy, over random keys; gradients through both."""
import numpy as onp
import pytest

from twibil import autograd, np, npx

SHAPE = (4, 5, 3)


def random_key(rng, arrays):
    """A key for SHAPE of integers, slices, None, ..., and where `arrays`, integer arrays and masks."""
    key, axis, dots = [], 0, False
    shape = [(3,), (2, 1), (1, 3)][rng.integers(3)]
    while axis < len(SHAPE):
        n, kind = SHAPE[axis], rng.integers(8 if arrays else 6)
        if kind == 0:
            key.append(int(rng.integers(-n, n)))
        elif kind in (1, 2):
            start, stop = (None if rng.random() < 0.3 else int(rng.integers(-n - 2, n + 3)) for _ in range(2))
            key.append(slice(start, stop, [None, 1, 2, -1, -2][rng.integers(5)]))
        elif kind == 3:
            key.append(None)
            continue
        elif kind == 4 and not dots:
            key.append(Ellipsis)
            dots = True
            axis = int(rng.integers(axis, len(SHAPE) + 1))
            continue
        elif kind == 5:
            break
        elif kind == 6:
            key.append(rng.integers(-n, n, shape))
        elif kind == 7:
            key.append(rng.random(n) < 0.5)
            if shape != (3,) or key[-1].sum() != 3:
                key[-1] = rng.integers(-n, n, shape)
        else:
            key.append(slice(None))
        axis += 1
    return tuple(key)


def ours(key):
    return tuple(np.array(k, dtype=k.dtype.name) if isinstance(k, onp.ndarray) else k for k in key)


@pytest.mark.parametrize("arrays", [False, True])
def test_random_keys_read_write_and_differentiate_as_numpy(arrays):
    rng = onp.random.default_rng(5 + arrays)
    for _ in range(600):
        key = random_key(rng, arrays)
        x = rng.standard_normal(SHAPE).astype("float64")
        try:
            expected = x[key]
        except IndexError:
            with pytest.raises((IndexError, ValueError)):
                np.array(x)[ours(key)]
            continue
        a = np.array(x)
        onp.testing.assert_array_equal(a[ours(key)].asnumpy(), expected, err_msg=str(key))
        value = rng.standard_normal(expected.shape)
        if not any(isinstance(k, onp.ndarray) for k in key):  # NumPy leaves open which of equal indices wins
            written = x.copy()
            written[key] = value
            b = np.array(x)
            b[ours(key)] = np.array(value)
            onp.testing.assert_array_equal(b.asnumpy(), written, err_msg=str(key))
        a.attach_grad()
        with autograd.record():
            y = (a[ours(key)] * np.array(value)).sum()
        y.backward()
        gradient = onp.zeros(SHAPE)
        onp.add.at(gradient, key, value)
        onp.testing.assert_allclose(a.grad.asnumpy(), gradient, rtol=1e-12, err_msg=str(key))


def test_masks_of_several_axes():
    x = onp.arange(24.0).reshape(2, 3, 4)
    mask = x[:, :, 0] > 4
    a = np.array(x)
    onp.testing.assert_array_equal(a[np.array(mask)].asnumpy(), x[mask])
    onp.testing.assert_array_equal(a[a > 5].asnumpy(), x[x > 5])
    a[a > 5] = 0
    onp.testing.assert_array_equal(a.asnumpy(), onp.where(x > 5, 0, x))


def test_views_share_their_elements():
    a = np.zeros((3, 4))
    a[1][2] = 5
    a.T[0, 0] = 7
    a.reshape(12)[-1] = 9
    assert a[1, 2].item() == 5 and a[0, 0].item() == 7 and a[2, 3].item() == 9
    a[1:] = a[:-1]  # overlapping: as if the right side had been copied
    assert a[1, 0].item() == 7 and a[2, 2].item() == 5


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
def test_a_numpy_integer_gives_a_view(kind):
    one = onp.dtype(kind).type(1)
    x = np.zeros((2, 3))
    x[one][:] = 5
    x[one, one][()] = 6
    x[..., one][0:1] = 7
    assert x.tolist() == [[0, 7, 0], [5, 6, 5]]
    for copy in (onp.array(1), np.array(1, dtype="int64")):  # arrays give copies, as in NumPy
        x[copy][:] = 9
    assert x.tolist() == [[0, 7, 0], [5, 6, 5]]
    with pytest.raises(IndexError, match="index 9 is out of range for axis 0"):
        x[onp.int64(9)]


def test_assignment_is_part_of_the_recorded_history():
    x, v = np.ones((3, 4)), np.full((4,), 2.0)
    x.attach_grad()
    v.attach_grad()
    with autograd.record():
        y = x * 3
        y[1] = v
        z = (y * y).sum()
    z.backward()
    assert z.item() == 8 * 9 + 4 * 4
    onp.testing.assert_array_equal(x.grad.asnumpy(), [[18] * 4, [0] * 4, [18] * 4])
    onp.testing.assert_array_equal(v.grad.asnumpy(), [4] * 4)


def test_a_value_overwritten_before_backward_is_an_error_that_names_the_operator():
    x = np.ones((3,))
    x.attach_grad()
    with autograd.record():
        y = x * 2
        z = y * y
    y[:] = 5
    with pytest.raises(RuntimeError, match="multiply"):
        z.backward()


@pytest.mark.parametrize("key, error, message", [
    (5, IndexError, "index 5 is out of range for axis 0 with size 4"),
    ((0, 0, 0, 0), IndexError, "too many indices"),
    ((Ellipsis, Ellipsis), IndexError, "only one ellipsis"),
    ("a", IndexError, "valid indices"),
    (1.5, IndexError, "valid indices"),
])
def test_bad_keys(key, error, message):
    with pytest.raises(error, match=message):
        np.zeros(SHAPE)[key]


def test_values_that_do_not_fit_are_refused_and_nothing_changes():
    a = np.zeros((3, 4))
    with pytest.raises(ValueError, match="does not broadcast"):
        a[0] = np.ones((3,))
    assert a.sum().item() == 0


def test_ranges_are_indices():
    x = onp.arange(12.0).reshape(3, 4)
    a = np.array(x)
    assert a[range(3), [0, 1, 3]].tolist() == x[range(3), [0, 1, 3]].tolist()
    assert a[range(2)].tolist() == x[range(2)].tolist() and a[:, range(3, -1, -2)].tolist() == x[:, range(3, -1, -2)].tolist()
    assert a[range(0)].shape == (0, 4)
    a[range(2), range(2)] = -1
    assert a[0, 0] == -1 and a[1, 1] == -1
    assert np.add(np.ones(3), range(3)).tolist() == [1, 2, 3]
    with pytest.raises(IndexError):
        a[range(4)]


def test_nan_is_no_index():
    x, nan = np.arange(6).reshape(3, 2), np.array([0.0, onp.nan])
    for call in (lambda: x[nan], lambda: np.take(x, nan, axis=0), lambda: npx.pick(x, np.array([0.0, onp.nan, 1.0])),
                 lambda: npx.embedding(nan, x).wait_to_read()):
        with pytest.raises(IndexError):
            call()
    assert x[np.array([0.0, 2.0])].tolist() == [[0, 1], [4, 5]]
    assert np.take(x, nan, axis=0, mode="clip").tolist() == [[0, 1], [0, 1]]
