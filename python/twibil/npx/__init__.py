# SPDX-License-Identifier: Apache-2.0
"""`mx.npx`: neural-network operators and other extensions of `mx.np`, and the NumPy switches."""
from __future__ import annotations

from .. import _core
from ..base import did_you_mean as _did_you_mean
from ..registry import functions as _functions
from ..context import (Context, Device, cpu, cpu_pinned, current_context, current_device, gpu,  # noqa: F401
                       gpu_memory_info, num_gpus)
from ..util import (is_np_array, is_np_default_dtype, is_np_shape, reset_np, set_np, set_np_default_dtype,  # noqa: F401
                    use_np)

from .shapes import *  # noqa: E402,F401,F403

globals().update((name, f) for name, f in _functions("npx").items() if "." not in name)

from ..np import pad  # noqa: E402,F401
from .calls import *  # noqa: E402,F401,F403
from .. import image  # noqa: E402,F401
from . import random  # noqa: E402,F401
from ..serialization import load, save, savez  # noqa: E402,F401
from ..control_flow import cond, foreach, while_loop  # noqa: E402,F401
from ..operator import Custom  # noqa: E402,F401

waitall = _core.waitall
_LATER = ("from_dlpack", "to_dlpack_for_read", "to_dlpack_for_write")


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _LATER:
        raise NotImplementedError(f"npx.{name}: arrays do not speak DLPack in this version; go through asnumpy()")
    raise AttributeError(f"mx.npx has no attribute {name!r}.{_did_you_mean(name, globals())}")
