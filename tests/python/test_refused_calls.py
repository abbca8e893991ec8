# SPDX-License-Identifier: Apache-2.0
"""A call that is refused leaves its arrays whole; composed operators pass their attributes on."""
import numpy as onp
import pytest

from twibil import autograd, np


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


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 2), "keepdims": True}, {"axis": 1, "ddof": 1}])
def test_std_is_the_root_of_var(options):
    x = onp.random.RandomState(0).rand(2, 3, 4).astype("float32")
    onp.testing.assert_allclose(np.std(np.array(x), **options).asnumpy(), onp.std(x, **options), rtol=1e-5)
