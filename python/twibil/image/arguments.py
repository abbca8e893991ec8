# SPDX-License-Identifier: Apache-2.0
"""What functions on pictures take."""
from __future__ import annotations

import functools

from ..base import describe


def takes_picture(function):
    """The first argument must be an array of (height, width, channels), or a batch of such; TypeError, ValueError."""
    @functools.wraps(function)
    def checked(*args, **kwargs):
        src = args[0] if args else next(iter(kwargs.values()), None)
        if not hasattr(src, "shape") or not hasattr(src, "dtype"):
            raise TypeError(f"{function.__name__}: the picture must be an array; got {describe(src)}. Use np.array(picture)")
        if len(src.shape) not in (3, 4):
            raise ValueError(f"{function.__name__}: the picture must have 3 dimensions (height, width, channels), or 4 "
                             f"for a batch; got {describe(src)}")
        return function(*args, **kwargs)

    return checked
