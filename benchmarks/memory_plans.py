# SPDX-License-Identifier: Apache-2.0
"""Tables of six networks: how long compiling takes, what the memory plan needs against its lower bound, and what
recomputation costs.

    python benchmarks/memory_plans.py [networks...] [--no-training-steps]
"""
from __future__ import annotations

import argparse
import time

import networks
import numpy as onp

import twibil as mx
from twibil import _core, autograd
from twibil.trace import trace

MEGA = 1e6


def table(title, head, rows):
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def compiled(net, batch, training, without=(), keep=1.0):
    """(report, seconds from the symbol to the plan)"""
    graph = _core.compile(net.symbol, list(net.shapes(1)), tuple(without), ())
    graph.keep(keep)
    shapes = [(s, "float32") for s in net.shapes(batch).values()]
    begin = time.perf_counter()
    report = graph.report(shapes, training, net.wants() if training else [])
    return report, time.perf_counter() - begin


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f}"


def seconds_of(function, repeats=5):
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
    return best


def trace_time(name, net):
    """Seconds to trace the network as a function on arrays."""
    arrays = {key: mx.np.zeros(shape) for key, shape in net.shapes(1).items()}
    x = arrays.pop("data")
    mx.nd.waitall()
    return seconds_of(lambda: trace(lambda v: networks.forward(name, arrays, v), (x,), {}, [x], ["x"]))


def compile_times(names, repeats=5):
    rows = []
    for name in names:
        net = networks.build(name)
        row = [name, milliseconds(seconds_of(lambda n=name: networks.build(n))), milliseconds(trace_time(name, net))]
        for batch, training in ((1, False), (8, True)):
            runs = [compiled(net, batch, training) for _ in range(repeats)]
            report, total = min(runs, key=lambda r: r[1])
            passes = sum(s for name, s, _, _ in report["passes"] if name != "plan_memory")
            plan = sum(s for name, s, _, _ in report["passes"] if name == "plan_memory")
            row += [str(report["num_kernels"]), *map(milliseconds, (report["lower_seconds"], passes, plan, total))]
        rows.append(row)
    table("Time to compile, ms: declaring the symbol, or tracing a function on arrays; then for prediction (batch 1) and "
          "training (batch 8, all gradients)",
          ["network", "declare", "trace", *(f"{part} {w}" for w in ("pred.", "train.")
                                   for part in ("kernels", "lower", "passes", "plan", "all of"))], rows)


def plans(names):
    for batch, training in ((1, False), (8, False), (8, True)):
        rows = []
        for name in names:
            net = networks.build(name)
            r, _ = compiled(net, batch, training)
            eager, _ = compiled(net, batch, training, without=["everything"])
            arena, bound = r["arena_bytes"], r["arena_lower_bound_bytes"]
            rows.append([name, f"{eager['arena_bytes'] / MEGA:.2f}", f"{arena / MEGA:.2f}", f"{bound / MEGA:.2f}",
                         f"{arena / bound:.4f}"])
        table(f"Intermediate values, MB: {'training' if training else 'prediction'}, batch {batch}",
              ["network", "each its own", "planned", "lower bound", "ratio"], rows)


def parameters(net, batch):
    """Arrays for all variables, with gradients where training asks for them."""
    random, arrays = onp.random.RandomState(0), []
    for (name, shape), wanted in zip(net.shapes(batch).items(), net.wants()):
        value = random.standard_normal(shape).astype("float32")
        if name.endswith("_weight"):
            value *= onp.float32((2 / onp.prod(shape[1:])) ** 0.5)
        elif name != "data":
            value = onp.full(shape, name.endswith(("_gamma", "_var")), "float32")
        arrays.append(mx.np.array(value))
        if wanted:
            arrays[-1].attach_grad()
    return arrays


def recomputation(name="resnet-152", size=64, batch=4, repeats=8):
    net = networks.build(name, size)
    arrays = parameters(net, batch)
    shares = (1.0, 0.5, 0.25, 0.0)
    graphs = {share: _core.compile(net.symbol, list(net.shapes(1)), (), ()) for share in shares}

    def step(graph):
        with autograd.record():
            y = graph.call(*arrays)[0]
        y.backward()
        mx.nd.waitall()

    best, peak, gradients = {}, {}, {}
    outputs = sum(a.size * 4 for a, wanted in zip(arrays, net.wants()) if wanted)  # new gradients, the same for all
    for share, graph in graphs.items():
        graph.keep(share)
        step(graph)
        before = _core.memory_stats()["current_bytes"]
        _core.reset_peak_memory()
        step(graph)
        peak[share] = _core.memory_stats()["peak_bytes"] - before - outputs
        best[share] = float("inf")
        gradients[share] = arrays[1].grad.asnumpy().tobytes()
    for _ in range(repeats):
        for share, graph in graphs.items():
            begin = time.perf_counter()
            step(graph)
            best[share] = min(best[share], time.perf_counter() - begin)
    assert len(set(gradients.values())) == 1
    arena = {share: compiled(net, batch, True, keep=share)[0]["arena_bytes"] for share in shares}
    rows = [["all" if share == 1 else f"{share:g}", f"{arena[share] / MEGA:.1f}", f"{peak[share] / MEGA:.1f}",
             f"{arena[share] / arena[1.0]:.3f}", f"{best[share] * 1e3:.0f}", f"{best[share] / best[1.0]:.2f}"]
            for share in shares]
    table(f"A training step of {name} at {size} x {size}, batch {batch}, that keeps a share of what gradients read",
          ["share kept", "planned MB", "measured MB", "of all", "ms", "of all"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="*", default=networks.NAMES)
    parser.add_argument("--no-training-steps", action="store_true", help="leave out what runs networks")
    args = parser.parse_args()
    compile_times(args.networks)
    plans(args.networks)
    if not args.no_training_steps:
        recomputation()


if __name__ == "__main__":
    main()
