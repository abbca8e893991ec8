# SPDX-License-Identifier: Apache-2.0
"""Random numbers for work on the host: shuffled indices, augmentation. They follow `mx.random.seed`.

A thread that prepares a batch gets a generator of its own for that batch (`use`), so what a batch holds does not depend
on which worker made it."""
from __future__ import annotations

import os
import threading

import numpy as onp

_local = threading.local()
_lock = threading.Lock()
_process: onp.random.Generator | None = None
_drawn_by: int | None = None  # the process whose entropy seeded the generator; None: somebody chose the seed


def reseed(seed: int) -> None:
    """Starts the process's generator from a seed."""
    _start(seed, None)


def _start(seed: int, drawn_by: int | None) -> None:
    global _process, _drawn_by
    with _lock:
        _process, _drawn_by = onp.random.Generator(onp.random.PCG64(seed)), drawn_by


def _new_process() -> None:
    """A forked child that nobody seeded draws other numbers than its parent."""
    global _lock, _process
    _lock = threading.Lock()  # another thread may have held it at the fork
    if _drawn_by is not None:
        _process = None


os.register_at_fork(after_in_child=_new_process)


def generator() -> onp.random.Generator:
    """The generator of the batch being made in this thread, else the process's, seeded from entropy at first use."""
    mine = getattr(_local, "generator", None)
    if mine is not None:
        return mine
    if _process is None:
        _start(onp.random.SeedSequence().entropy, os.getpid())
    return _process


def draw_seed() -> int:
    """A seed for a stream of generators, from the process's generator."""
    return int(generator().integers(0, 2 ** 63))


class use:
    """`with use(seed, number):` this thread draws from the stream `seed`, generator `number`."""

    def __init__(self, seed: int, number: int):
        self._generator = onp.random.Generator(onp.random.PCG64([seed, number]))

    def __enter__(self):
        self._outer = getattr(_local, "generator", None)
        _local.generator = self._generator
        return self._generator

    def __exit__(self, *_):
        _local.generator = self._outer
