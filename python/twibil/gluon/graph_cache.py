# SPDX-License-Identifier: Apache-2.0
"""The compiled graphs of a hybridized block: one for each kind of arguments, kept true to the block's structure and to
the arrays of its parameters."""
from __future__ import annotations

import threading
import warnings
from typing import Any

from .. import _core
from ..trace import Program, rebuild, trace, unhashable
from . import generation

EAGER = object()  # in place of a program: these arguments cannot be traced


class GraphCache:
    """Traces of one block. `programs` maps what `_core.signature` says of a call to its program, or to `EAGER`."""

    def __init__(self, block):
        self.block = block
        self.programs: dict[Any, Any] = {}
        self.generation = None
        self.runs_eagerly = True  # for now: parameters are not complete, or somebody watches inner blocks
        self.lock = threading.RLock()
        self._structure: list = []
        self.example: tuple | None = None

    def refresh(self) -> None:
        """Compares the block with what was traced: other children or parameters end all traces; a parameter's new array
        is read from now on, and one of another shape or dtype ends the traces that read it."""
        with self.lock:
            now = generation.current
            structure, pending, watched = _structure(self.block)
            if len(structure) != len(self._structure) or any(a is not b for a, b in zip(structure, self._structure)):
                self.programs.clear()
                self._structure = structure
            self.runs_eagerly = pending or watched
            if not pending:
                for key, program in list(self.programs.items()):
                    if program is not EAGER and not _follow(program):
                        del self.programs[key]
                self.generation = now
            else:
                self.generation = None  # initialization is noticed when it has happened

    def program(self, key, args, kwargs, arrays):
        """The program for a call, traced where it is not known; `EAGER` where it cannot be."""
        try:
            found = self.programs.get(key)
        except TypeError:
            raise unhashable(args, kwargs, f"hybridize of {type(self.block).__name__}") from None
        if found is not None:
            return found
        with self.lock:
            found = self.programs.get(key)
            if found is None:
                found = self.programs[key] = self._trace(args, kwargs, arrays)
            return found

    def remember(self, args, kwargs) -> None:
        """Keeps the shapes of a call, for `export`."""
        arrays, key = _core.signature((args, kwargs))
        if arrays is not None:
            holes = iter(lambda: HOLE, None)
            self.example = (rebuild(args, holes), rebuild(kwargs, holes), [(a.shape, a.dtype) for a in arrays])

    def _trace(self, args, kwargs, arrays):
        self.remember(args, kwargs)
        try:
            return traced(self.block, args, kwargs, arrays)
        except DataDependent as error:
            kind = type(self.block).__name__
            warnings.warn(f"hybridize: {kind} runs eagerly, as the shape of a result depends on values. Its child blocks "
                          f"are still compiled where they can be. ({error})", stacklevel=5)
            return EAGER


HOLE = _core.array([0.0])


class DataDependent(RuntimeError):
    """A trace met an operator whose result's shape depends on elements."""


def traced(block, args, kwargs, arrays, arguments_too=False) -> Program:
    """A trace of a block's `forward`, whose parameters are called by their names in the block."""
    names = ["data"] if len(arrays) == 1 else [f"data{i}" for i in range(len(arrays))]
    program = trace(block.forward, args, kwargs, arrays, names, data_dependent=DataDependent,
                    arguments_too=arguments_too, outside_too=True, keep=block._keep,
                    rules=block._rules)
    places = {id(a): i for i, a in enumerate(program.captured)}
    found = []
    for name, p in block._collect_params_with_prefix().items():
        array = p._single
        place = None if array is None else places.pop(id(array), None)
        if place is not None:
            program.compiled.name_captured(place, name)
            found.append((place, p))
    program.parameters = tuple(found)
    return program


def _follow(program: Program) -> bool:
    """Lets a program read the arrays that parameters have now; False where it was made for other shapes or dtypes."""
    for place, p in program.parameters:
        now, then = p._single, program.captured[place]
        if now is then:
            continue
        if now is None or now.shape != then.shape or now.dtype != then.dtype:
            return False
        program.compiled.replace_captured(place, now)
        program.captured[place] = now
    return True


def _structure(block) -> tuple:
    """The objects that a block is made of, whether some parameter has no array yet, and whether an inner block has
    hooks, which want to see arrays."""
    objects, pending, watched = [], False, False
    seen: set = set()
    stack = [block]
    while stack:
        b = stack.pop()
        objects.append(b)
        if id(b) in seen:
            continue
        seen.add(id(b))
        watched |= b is not block and bool(b._forward_hooks or b._forward_pre_hooks)
        for p in b._own_params().values():
            objects.append(p)
            pending |= p._data is None
        stack.extend(b._children.values())
    return objects, pending, watched
