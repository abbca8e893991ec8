# SPDX-License-Identifier: Apache-2.0
"""Methods of arrays that are written in Python; the array type takes them where the registry has none of the name."""
from __future__ import annotations

from .. import _core

OWN = ("flatten", "ravel", "argsort", "reshape_view")  # written below
FROM_NP = ("sort", "dot", "nonzero", "split", "diff", "ptp", "trace", "zeros_like", "ones_like", "moveaxis")
FROM_NPX = ("norm", "one_hot", "pick", "topk", "softmax", "log_softmax", "slice_axis", "slice_like", "broadcast_like")


def _from_np(name):
    """A method that is the function of `mx.np` of this name."""
    def method(self, *args, **kwargs):
        from .. import np
        return getattr(np, name)(self, *args, **kwargs)
    method.__name__, method.__doc__ = name, f"`mx.np.{name}` of this array."
    return method


def _from_npx(name):
    """A method that is the function of `mx.npx` of this name."""
    def method(self, *args, **kwargs):
        from .. import npx
        return getattr(npx, name)(self, *args, **kwargs)
    method.__name__, method.__doc__ = name, f"`mx.npx.{name}` of this array."
    return method


def flatten(self, order="C"):
    """A copy with one dimension."""
    return self.reshape(-1).copy()


def ravel(self, order="C"):
    """The elements in one dimension; a view where the layout allows."""
    return self.reshape(-1)


def argsort(self, axis=-1, kind=None, order=None):
    """The order that sorts along `axis`, int64."""
    from .. import np
    return np.argsort(self, axis)


def reshape_view(self, *shape):
    """The elements in another shape; a view where the layout allows."""
    return self.reshape(*shape)


def install() -> None:
    """Gives the array type its Python methods."""
    _core.add_methods({**{n: globals()[n] for n in OWN}, **{n: _from_np(n) for n in FROM_NP},
                       **{n: _from_npx(n) for n in FROM_NPX}})
