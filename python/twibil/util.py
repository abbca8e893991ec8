# SPDX-License-Identifier: Apache-2.0
"""NumPy-semantics switches (`set_np` and friends) and other small tools of MXNet's `util` module.

Arrays of this package always follow NumPy's rules (zero-size and zero-dimensional shapes included), so the switches
of shapes and arrays only steer what `is_np_array()` and `is_np_shape()` report to code that asks, in this thread. The
switch of dtypes changes the default dtype, in the whole process, as in MXNet 2."""
from __future__ import annotations

import functools
import os
import threading
from typing import Any

from . import _core


class _State(threading.local):
    shape = True
    array = True


_state = _State()


def _set(name: str, on: bool) -> bool:
    if name == "dtype":
        previous = is_np_default_dtype()
        _core.set_default_dtype("float64" if on else "float32")
        return previous
    previous = getattr(_state, name)
    setattr(_state, name, bool(on))
    return previous


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """Declares NumPy semantics; `dtype=True` also makes float64 the default dtype of new arrays (else float32).

    dtype: what has no dtype of its own becomes float64: lists, Python numbers, random numbers, means and quotients of
    integers; `arange` and `full` of integers become int64. int32 + float32 stays float32. The layers of `gluon` keep
    their `dtype` argument, float32. `array=True` needs `shape=True`, as in MXNet: otherwise ValueError."""
    if array and not shape:
        raise ValueError("set_np: NumPy arrays need NumPy shapes; got array=True with shape=False")
    _set("shape", shape), _set("array", array), _set("dtype", dtype)


def reset_np() -> None:
    """Makes `is_np_array()` and `is_np_shape()` report False and the default dtype float32."""
    set_np(shape=False, array=False, dtype=False)


def is_np_shape() -> bool:
    """Whether shapes are declared to follow NumPy in this thread."""
    return _state.shape


def is_np_array() -> bool:
    """Whether arrays are declared to follow NumPy in this thread."""
    return _state.array


def is_np_default_dtype() -> bool:
    """Whether float64 is the default dtype of new arrays."""
    return _core.default_dtype() == "float64"


def set_np_shape(active: bool) -> bool:
    """Sets what `is_np_shape()` reports; returns the previous value."""
    return _set("shape", active)


def set_np_default_dtype(active: bool = True) -> bool:
    """Turns the float64 default dtype on or off, in all threads at once; returns the previous value."""
    return _set("dtype", active)


class _Scope:
    """`with np_shape(True):` and its siblings: sets one switch and restores it."""

    def __init__(self, name: str, active: bool):
        self._name, self._active = name, active

    def __enter__(self):
        self._previous = _set(self._name, self._active)
        return self

    def __exit__(self, *_):
        _set(self._name, self._previous)


def np_shape(active: bool = True) -> _Scope:
    """A scope in which `is_np_shape()` reports `active`."""
    return _Scope("shape", active)


def np_array(active: bool = True) -> _Scope:
    """A scope in which `is_np_array()` reports `active`."""
    return _Scope("array", active)


def np_default_dtype(active: bool = True) -> _Scope:
    """A scope in which new arrays default to float64 (or float32).

    The default belongs to the process: other threads, such as the workers of a `DataLoader`, follow it while the scope
    is open, and of two threads with scopes of their own the last one decides. Say `dtype=` where that matters."""
    return _Scope("dtype", active)


def _wrap(func: Any, names: tuple) -> Any:
    if isinstance(func, type):
        return func
    if not callable(func):
        raise TypeError(f"use_np: a function or a class is needed; got {type(func).__name__}")

    @functools.wraps(func)
    def call(*args, **kwargs):
        previous = [_set(name, True) for name in names]
        try:
            return func(*args, **kwargs)
        finally:
            for name, value in zip(names, previous):
                _set(name, value)
    return call


def use_np_shape(func):
    """Decorator: NumPy shapes inside `func`. A class is returned as it is."""
    return _wrap(func, ("shape",))


def use_np_array(func):
    """Decorator: NumPy arrays inside `func`. A class is returned as it is."""
    return _wrap(func, ("array",))


def use_np(func):
    """Decorator: NumPy shapes and arrays inside `func`. A class is returned as it is."""
    return _wrap(func, ("shape", "array"))


def use_np_default_dtype(func):
    """Decorator: float64 default dtype inside `func`, in all threads while it runs (see `np_default_dtype`)."""
    return _wrap(func, ("dtype",))


def set_module(module: str):
    """Decorator that sets `__module__`, for names that are documented elsewhere than they are defined."""
    def decorate(obj):
        if module is not None:
            obj.__module__ = module
        return obj
    return decorate


def makedirs(path) -> None:
    """Makes a folder and its parents; an existing one is fine."""
    os.makedirs(os.path.expanduser(path), exist_ok=True)


def getenv(name: str):
    """The environment variable `name` or None."""
    return os.environ.get(name)


def setenv(name: str, value) -> None:
    """Sets the environment variable `name`; None removes it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = str(value)


def get_gpu_count() -> int:
    """Number of GPUs this build can use."""
    from .context import num_gpus
    return num_gpus()


def default_array(source, ctx=None, dtype=None):
    """An array made from any array-like, on `ctx`."""
    return _core.array(source, dtype=dtype, ctx=ctx)
