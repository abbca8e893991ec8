# SPDX-License-Identifier: Apache-2.0
"""The table that `Block.summary` prints."""
from __future__ import annotations

import math

from .. import _core, autograd
from ..explain.text import bytes_text, count_text

_FORM = "{:>20}  {:>42} {:>15} {:>15} {:>12}"
_WIDTH = 108


def _arrays(value, found: list) -> list:
    """The arrays in a nest of lists, tuples and dicts."""
    if isinstance(value, _core.ndarray):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _arrays(v, found)
    elif isinstance(value, dict):
        _arrays(list(value.values()), found)
    return found


def _shapes(value) -> str:
    """Shapes in a nest of lists of arrays, as text."""
    if isinstance(value, _core.ndarray):
        return str(tuple(value.shape))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shapes(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_shapes(v)}" for k, v in value.items()) + "}"
    return "?"


def _bytes(value) -> int:
    return sum(a.size * a.dtype.itemsize if hasattr(a.dtype, "itemsize") else 2 * a.size for a in _arrays(value, []))


def _traced(value, names):
    """`value` with traced arrays in place of its arrays."""
    if isinstance(value, _core.ndarray):
        return next(names)(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_traced(v, names) for v in value)
    return value


def describe(block, inputs):
    """What the compiler makes of a call of `block`, as `_core.Compiled.describe` tells; None where the call cannot be a
    graph (results that depend on values)."""
    tracer = _core.Trace()
    try:
        with tracer, autograd.pause(train_mode=False):
            names = (lambda a, i=i: tracer.input(f"data{i}", a) for i in range(1 << 30))
            outputs = _arrays(block.forward(*_traced(tuple(inputs), names)), [])
            compiled = tracer.finish(outputs, (), ())
    except (RuntimeError, ValueError, TypeError):
        return None
    sigs = [(a.shape, a.dtype) for a in _arrays(list(inputs), [])]
    try:
        return compiled.describe((sigs, False, []))
    except (RuntimeError, ValueError):
        return None


def multiply_adds(data) -> float:
    """Of matrix products and convolutions, as they are counted: half of their arithmetic operations."""
    nodes = data["after"]["nodes"]
    return sum(nodes[i]["operations"] for i in data["steps"] if nodes[i]["heavy"]) / 2


class _Table:
    """Rows of blocks, in the order in which they are done."""

    def __init__(self, inputs):
        self.rows = [("Input", _shapes(inputs) if len(inputs) > 1 else _shapes(inputs[0]), 0, "", "")]
        self.seen: dict = {}  # of each parameter: how many elements, whether it is trained
        self.repeated = 0
        self.kept = 0  # bytes of all results of blocks without children
        self.whole = None

    def add(self, block, inputs, out, outermost: bool) -> None:
        count = 0
        for p in block._own_params().values():
            n = math.prod(p.shape)
            count += n
            if id(p) in self.seen:
                self.repeated += n
            self.seen[id(p)] = (n, p.grad_req != "null")
        data = describe(block, inputs)
        size = _bytes(out)
        if not block._children:
            self.kept += size
        if outermost:
            self.whole = data
        work = "?" if data is None else count_text(multiply_adds(data))
        self.rows.append((f"{type(block).__name__}-{len(self.rows)}", _shapes(out), count, work, bytes_text(size)))

    def print(self) -> None:
        total = sum(n for n, _ in self.seen.values())
        trainable = sum(n for n, t in self.seen.values() if t)
        print("-" * _WIDTH)
        print(_FORM.format("Layer (type)", "Output Shape", "Param #", "Multiply-adds", "Output bytes"))
        print("=" * _WIDTH)
        for row in self.rows:
            print(_FORM.format(*row))
        print("=" * _WIDTH)
        print("Parameters in forward computation graph, duplicate included")
        print(f"   Total params: {total + self.repeated}")
        print(f"   Trainable params: {trainable}")
        print(f"   Non-trainable params: {total - trainable}")
        print(f"Shared params in forward computation graph: {self.repeated}")
        print(f"Unique parameters in model: {total}")
        print(f"Activation bytes: {bytes_text(self.kept)} in layers' results"
              + ("" if self.whole is None else f", {bytes_text(self.whole['arena_bytes'] + self.whole['output_bytes'])} "
                                               "planned as one graph for prediction"))
        if self.whole is not None:
            print(f"Multiply-adds: {multiply_adds(self.whole):.0f}")
        print("-" * _WIDTH)


def print_summary(net, inputs) -> None:
    """Runs `inputs` through `net` with hooks and prints a row for each block in order of completion. A block's
    multiply-adds include those of the blocks inside it."""
    if not inputs:
        raise TypeError(f"{type(net).__name__}.summary: the inputs of the network are needed, as in summary(x)")
    table = _Table(inputs)

    def note(block, given, out):
        if not _core.is_tracing():  # tracing a block to count its work calls the hooks of those inside again
            table.add(block, given, out, block is net)

    watched: dict = {}  # a block that stands in several places has one hook
    net.apply(lambda block: watched.setdefault(id(block), block))
    handles = [block.register_forward_hook(note) for block in watched.values()]
    try:
        with autograd.pause():
            net(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    table.print()
