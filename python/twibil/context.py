# SPDX-License-Identifier: Apache-2.0
"""Devices: where arrays live. `cpu()`, `gpu(i)`, `num_gpus()`, the current device and memory figures."""
from __future__ import annotations

import threading

from . import _core

_TYPES = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}
_NAMES = {code: name for name, code in _TYPES.items()}


class Device:
    """A device of a kind ('cpu', 'gpu', 'cpu_pinned', 'cpu_shared') and a number; equal devices compare equal.

    `with cpu(1):` makes it the current one of this thread. ValueError for a GPU that does not exist."""

    devtype2str = _NAMES
    devstr2type = _TYPES
    _current = threading.local()

    __slots__ = ("device_type", "device_id", "_outer")

    def __init__(self, device_type, device_id: int = 0):
        if isinstance(device_type, Device) or hasattr(device_type, "device_type"):
            device_type, device_id = device_type.device_type, device_type.device_id
        if isinstance(device_type, str) and "(" in device_type:
            device_type, _, number = device_type.rstrip(")").partition("(")
            device_id = int(number or 0)
        if device_type not in _TYPES:
            raise ValueError(f"Device: the kind must be one of {', '.join(_TYPES)}; got {device_type!r}")
        if isinstance(device_id, bool) or not hasattr(device_id, "__index__"):
            raise TypeError(f"Device: the number must be an integer; got {device_id!r}")
        if device_id < 0:
            raise ValueError(f"Device: the number must not be negative; got {device_id}")
        self.device_type = device_type
        self.device_id = int(device_id)
        self._outer = []

    @property
    def device_typeid(self) -> int:
        """MXNet's number of the kind: 1 cpu, 2 gpu, 3 pinned, 5 shared."""
        return _TYPES[self.device_type]

    def __hash__(self):
        return hash((self.device_type, self.device_id))

    def __eq__(self, other):
        kind = getattr(other, "device_type", None)
        return kind == self.device_type and getattr(other, "device_id", None) == self.device_id

    def __str__(self):
        return f"{self.device_type}({self.device_id})"

    __repr__ = __str__

    def __reduce__(self):
        return Device, (self.device_type, self.device_id)

    def __enter__(self):
        if self.device_type == "gpu" and self.device_id >= num_gpus():
            raise ValueError(f"{self}: this build sees {num_gpus()} GPUs, so arrays cannot be made there")
        self._outer.append(current_context())
        Device._current.value = self
        return self

    def __exit__(self, *_):
        Device._current.value = self._outer.pop()

    @classmethod
    def default_ctx(cls) -> Device:
        """The current device of this thread."""
        return current_context()

    def empty_cache(self) -> None:
        """Returns cached, unused memory of this device to the system."""
        _core.empty_cache()


Context = Device


def cpu(device_id: int = 0) -> Device:
    """The processor. All numbers name the same memory."""
    return Device("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Device:
    """Page-locked processor memory."""
    return Device("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Device:
    """The GPU with this number. Making an array on a device that is absent raises ValueError."""
    return Device("gpu", device_id)


def num_gpus() -> int:
    """How many GPUs this build can use; 0 without one."""
    return _core.num_gpus()


def current_context() -> Device:
    """The device on which new arrays are made in this thread; the processor unless a `with` says otherwise."""
    return getattr(Device._current, "value", None) or _DEFAULT


current_device = current_context
_DEFAULT = Device("cpu", 0)


def gpu_memory_info(device_id: int = 0):
    """(free, total) bytes of a GPU; ValueError where there is none."""
    raise ValueError(f"gpu_memory_info: GPU {device_id} does not exist; this build sees {num_gpus()}")


def memory_stats() -> dict:
    """Figures of the caching allocator in bytes: live, peak, cached, limit (see the core's documentation)."""
    return _core.memory_stats()


class NoGradient:
    """`with context.NoGradient():` nothing is recorded for gradients, so nothing is kept for them either; the same as
    `autograd.pause()`."""

    def __enter__(self):
        from . import autograd
        self._scope = autograd.pause()
        self._scope.__enter__()
        return self

    def __exit__(self, *exc):
        return self._scope.__exit__(*exc)
