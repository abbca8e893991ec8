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
from . import sym, visualization
from . import attribute, executor, model, name
from .attribute import AttrScope  # noqa: F401
from .jit import jit
from . import control_flow, operator

operator.add_to(sym)
from . import library, ndarray, lr_scheduler, optimizer, metric, gluon, profiler
from . import onnx, contrib
from .alias import install_as_mxnet
from .util import (is_np_array, is_np_default_dtype, is_np_shape, np_array, np_default_dtype, np_shape,  # noqa: F401
                   reset_np, set_np, set_np_shape, use_np, use_np_array, use_np_default_dtype, use_np_shape)

numpy, numpy_extension = np, npx  # MXNet's long names
waitall = _core.waitall
symbol = sym
viz = visualization
rnd = random
__version__ = _core.__version__

__all__ = ["np", "npx", "nd", "ndarray", "autograd", "gluon", "init", "initializer", "optimizer", "lr_scheduler",
           "metric", "random", "image", "context", "device", "util", "base", "serialization", "cpu", "gpu",
           "cpu_pinned", "num_gpus", "Context", "Device", "current_context", "current_device", "MXNetError", "waitall",
           "install_as_mxnet", "jit", "onnx", "profiler"]
