# SPDX-License-Identifier: Apache-2.0
"""What joining pointwise operators gains: a chain of four operations, and the sigmoid made of small operators.

    PYTHONPATH=python python benchmarks/fusion.py [--stream GB/s]

Compares with PyTorch, eager and compiled, where it is installed. The contestants run in turns; each figure is the least of
many short batches. --stream: the machine's bandwidth as another program measured it, for the share of it.
"""
from __future__ import annotations

import argparse
import time

import numpy as np

import twibil as mx
from twibil import _core

F = _core.operators()


def jit(function, *arrays):
    """The function, compiled for arrays like these."""
    trace = _core.Trace()
    with trace:
        out = function(*[trace.input(f"x{i}", a) for i, a in enumerate(arrays)])
    graph = trace.finish([out], (), ())
    return lambda *a: graph.call(*a)[0]


def race(contestants: dict, batches: int, calls: int, pause: float = 0.0) -> dict:
    """Seconds a call: the least of `batches` batches of `calls` calls, the contestants in turns. Who is far behind after
    five turns rests."""
    best = {name: float("inf") for name in contestants}
    for run in contestants.values():
        run()
    for turn in range(batches):
        for name, run in contestants.items():
            if turn >= 5 and best[name] > 8 * min(best.values()):
                continue
            if pause:
                time.sleep(pause)  # until the threads of the one before no longer spin
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            mx.nd.waitall()  # not only the last one: calls that do not depend on each other end in any order
            best[name] = min(best[name], (time.perf_counter() - begin) / calls)
    return best


def chain(x):
    return F["relu"](x * 2 + 1) - 0.5


def small_sigmoid(x):
    return 1 / (1 + F["exp"](-x))


def torch_contestants(values):
    try:
        import torch
    except ImportError:
        return {}
    torch.set_grad_enabled(False)
    x = torch.from_numpy(values)

    def body(v):
        return torch.relu(v * 2 + 1) - 0.5

    found = {"torch eager": lambda: body(x)}
    try:
        compiled = torch.compile(body)
        compiled(x)
        found["torch.compile"] = lambda: compiled(x)
    except Exception as error:  # noqa: BLE001  it needs a compiler of its own
        print(f"torch.compile does not work here: {type(error).__name__}: {str(error)[:100]}")
    return found


def symbol(function):
    x = mx.sym.Variable("x")
    compiled = mx.sym.compile(function(x))._compiled
    return lambda a: compiled.call(a)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stream", type=float, default=None)
    options = parser.parse_args()
    for elements, batches, calls in ((16 << 20, 60, 2), (16 << 10, 200, 100)):
        values = np.random.default_rng(0).standard_normal(elements).astype("float32")
        x = mx.np.array(values)
        fused = jit(chain, x)
        contestants = {"twibil jit": lambda: fused(x), "twibil eager": lambda: chain(x), **torch_contestants(values)}
        print(f"chain of 4 on {elements * 4 / 2**20:g} MB")
        seconds = race(contestants, batches, calls, 0.02)
        for name, s in seconds.items():
            share = f", {8 * elements / s / 1e9 / options.stream:.0%} of the stream bandwidth" if options.stream else ""
            ratio = "" if name == "twibil jit" else f", jit is {s / seconds['twibil jit']:.2f} times as fast"
            print(f"  {name:14s} {s * 1e6:10.1f} us  {8 * elements / s / 1e9:6.1f} GB/s{share}{ratio}")
    for elements in (1 << 10, 16 << 10, 1 << 20):
        x = mx.np.array(np.random.default_rng(0).standard_normal(elements).astype("float32"))
        traced, declared = jit(small_sigmoid, x), symbol(small_sigmoid)
        built_in, built_in_eager = jit(lambda v: F["sigmoid"](v), x), F["sigmoid"]
        seconds = race({"1/(1+exp(-x)), jit": lambda: traced(x), "1/(1+exp(-x)), symbol": lambda: declared(x),
                        "sigmoid, jit": lambda: built_in(x), "sigmoid, eager": lambda: built_in_eager(x),
                        "1/(1+exp(-x)), eager": lambda: small_sigmoid(x)}, 200, max(1, (1 << 18) // elements))
        print(f"sigmoid of {elements} elements")
        for name, s in seconds.items():
            print(f"  {name:22s} {s * 1e6:8.2f} us, {s / seconds['sigmoid, jit']:.2f} of the built-in one")


if __name__ == "__main__":
    main()
