# SPDX-License-Identifier: Apache-2.0
"""Pooling layers: maximum or mean of windows, or of everything, in one to three dimensions."""
from __future__ import annotations

from ... import npx
from ..block import HybridBlock
from .conv import check_layout, window


class _Pool(HybridBlock):
    """What all pooling layers share."""

    dims = 0
    pool_type = "max"

    def __init__(self, pool_size=2, strides=None, padding=0, layout=None, ceil_mode=False, count_include_pad=None,
                 global_pool=False, **kwargs):
        super().__init__(**kwargs)
        kind = type(self).__name__
        size = window(pool_size, self.dims, f"{kind}: pool_size")
        stride = size if strides is None else window(strides, self.dims, f"{kind}: strides")
        self._attrs = {"kernel": size, "stride": stride,
                       "pad": window(padding, self.dims, f"{kind}: padding"), "global_pool": global_pool,
                       "pool_type": self.pool_type,
                       "layout": check_layout(layout or "NC" + "DHW"[3 - self.dims:], self.dims, kind),
                       "pooling_convention": "full" if ceil_mode else "valid"}
        if count_include_pad is not None:
            self._attrs["count_include_pad"] = count_include_pad

    def forward(self, x):
        return npx.pooling(x, **self._attrs)

    def __repr__(self):
        a = self._attrs
        return (f"{type(self).__name__}(size={a['kernel']}, stride={a['stride']}, padding={a['pad']}, "
                f"ceil_mode={a['pooling_convention'] == 'full'}, global_pool={a['global_pool']}, "
                f"pool_type={a['pool_type']}, layout={a['layout']})")


def _layer(name: str, dims: int, pool_type: str, everything: bool):
    """One of the twelve classes."""
    space = "DHW"[3 - dims:]
    if everything:
        def __init__(self, layout="NC" + space, **kwargs):
            _Pool.__init__(self, 1, None, 0, layout, True, global_pool=True, **kwargs)
        doc = f"The {'mean' if pool_type == 'avg' else 'maximum'} of each channel; spatial axes of size 1 remain."
    elif pool_type == "avg":
        def __init__(self, pool_size=2, strides=None, padding=0, ceil_mode=False, layout="NC" + space,
                     count_include_pad=True, **kwargs):
            _Pool.__init__(self, pool_size, strides, padding, layout, ceil_mode, count_include_pad, **kwargs)
        doc = ("The mean of windows; strides default to pool_size. ceil_mode: a last, incomplete window counts.\n"
               "    count_include_pad: padding counts as zeros in the mean.")
    else:
        def __init__(self, pool_size=2, strides=None, padding=0, layout="NC" + space, ceil_mode=False, **kwargs):
            _Pool.__init__(self, pool_size, strides, padding, layout, ceil_mode, **kwargs)
        doc = "The maximum of windows; strides default to pool_size. ceil_mode: a last, incomplete window counts."
    return type(name, (_Pool,), {"dims": dims, "pool_type": pool_type, "__init__": __init__, "__doc__": doc,
                                 "__module__": __name__, "__qualname__": name})


MaxPool1D, MaxPool2D, MaxPool3D = (_layer(f"MaxPool{d}D", d, "max", False) for d in (1, 2, 3))
AvgPool1D, AvgPool2D, AvgPool3D = (_layer(f"AvgPool{d}D", d, "avg", False) for d in (1, 2, 3))
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = (_layer(f"GlobalMaxPool{d}D", d, "max", True) for d in (1, 2, 3))
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = (_layer(f"GlobalAvgPool{d}D", d, "avg", True) for d in (1, 2, 3))
