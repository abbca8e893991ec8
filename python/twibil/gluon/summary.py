# SPDX-License-Identifier: Apache-2.0
"""The table that `Block.summary` prints."""
from __future__ import annotations

import math

from .. import _core, autograd

_FORM = "{:>20}  {:>42} {:>15}"


def _shapes(value):
    """Shapes in a nest of lists of arrays, as text."""
    if isinstance(value, _core.ndarray):
        return str(tuple(value.shape))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shapes(v) for v in value) + "]"
    return "?"


def print_summary(net, inputs) -> None:
    """Runs `inputs` through `net` with hooks and prints a row for each block in order of completion."""
    rows, handles = [("Input", _shapes(list(inputs)) if len(inputs) > 1 else _shapes(inputs[0]), 0)], []
    seen: dict = {}
    repeated = 0

    def watch(block):
        def note(b, _, out):
            nonlocal repeated
            count = 0
            for p in b._own_params().values():
                n = math.prod(p.shape)
                count += n
                if id(p) in seen:
                    repeated += n
                seen[id(p)] = (n, p.grad_req != "null")
            rows.append((f"{type(b).__name__}-{len(rows)}", _shapes(out), count))
        handles.append(block.register_forward_hook(note))

    net.apply(watch)
    try:
        with autograd.pause():
            net(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    total = sum(n for n, _ in seen.values())
    trainable = sum(n for n, t in seen.values() if t)
    print("-" * 80)
    print(_FORM.format("Layer (type)", "Output Shape", "Param #"))
    print("=" * 80)
    for row in rows:
        print(_FORM.format(*row))
    print("=" * 80)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {total + repeated}")
    print(f"   Trainable params: {trainable}")
    print(f"   Non-trainable params: {total - trainable}")
    print(f"Shared params in forward computation graph: {repeated}")
    print(f"Unique parameters in model: {total}")
    print("-" * 80)
