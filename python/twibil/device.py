# SPDX-License-Identifier: Apache-2.0
"""MXNet 2 name of `context`."""
from .context import *  # noqa: F401,F403
from .context import Context, Device, cpu, cpu_pinned, current_device, gpu, gpu_memory_info, num_gpus  # noqa: F401
