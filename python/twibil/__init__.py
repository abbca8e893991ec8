# SPDX-License-Identifier: Apache-2.0
"""Twibil: deep learning with two edges, imperative and symbolic, in MXNet's manner: `import twibil as mx`."""
from __future__ import annotations

from . import _core
from .base import MXNetError
from .context import (Context, Device, cpu, cpu_pinned, current_context, current_device, gpu,  # noqa: F401
                      gpu_memory_info, num_gpus)
from . import autograd, base, context, device, util
from . import np, random
from . import initializer, image, serialization
from . import init, npx, nd
from . import ndarray, lr_scheduler, optimizer, metric, gluon
from .alias import install_as_mxnet
from .util import is_np_array, is_np_shape, np_array, np_shape, set_np, reset_np, set_np_shape, use_np  # noqa: F401

waitall = _core.waitall
rnd = random
__version__ = "0.1.0"  # as in pyproject.toml and CMakeLists.txt

__all__ = ["np", "npx", "nd", "ndarray", "autograd", "gluon", "init", "initializer", "optimizer", "lr_scheduler",
           "metric", "random", "image", "context", "device", "util", "base", "serialization", "cpu", "gpu",
           "cpu_pinned", "num_gpus", "Context", "Device", "current_context", "current_device", "MXNetError", "waitall",
           "install_as_mxnet"]
