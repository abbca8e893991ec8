# SPDX-License-Identifier: Apache-2.0
"""Predictions of six networks, kernel by kernel: which algorithm, how long, how much of the multiply-add roof.

    python benchmarks/profile_networks.py [networks...] [--batch 1] [--layers] [--without PASS ...] [--exact] [--autotune]

For each network: images a second, milliseconds by kind of kernel, the share of the roof, and with --layers every kernel.
"""
from __future__ import annotations

import argparse
import collections
import time

import networks
import numpy as onp

import twibil as mx
from twibil import _core
from twibil.explain.machine import machine


def arrays_of(net, batch):
    random, arrays = onp.random.RandomState(0), []
    for name, shape in net.shapes(batch).items():
        value = random.standard_normal(shape).astype("float32")
        if name.endswith("_weight"):
            value *= onp.float32((2 / onp.prod(shape[1:])) ** 0.5)
        elif name != "data":
            value = onp.full(shape, name.endswith(("_gamma", "_var")), "float32")
        arrays.append(mx.np.array(value))
    return arrays


def compiled(net, args):
    graph = _core.compile(net.symbol, list(net.shapes(1)), tuple(args.without), ())
    graph.fix(tuple(n for n in net.shapes(1) if n != "data"))
    graph.rules(args.exact, args.autotune)
    return graph


def profile(name, args):
    net = networks.build(name)
    arrays, graph = arrays_of(net, args.batch), compiled(net, args)
    begin = time.perf_counter()
    graph.call(*arrays)[0].wait_to_read()
    first = time.perf_counter() - begin
    best = float("inf")
    for _ in range(args.repeats):
        begin = time.perf_counter()
        graph.call(*arrays)[0].wait_to_read()
        best = min(best, time.perf_counter() - begin)
    signature = ([(a.shape, str(a.dtype)) for a in arrays], False, [])
    data = graph.describe(signature)
    seconds = graph.measure(signature, arrays, args.seconds)
    nodes, kinds, operations = data["after"]["nodes"], collections.Counter(), 0.0
    roof = machine().flops
    for k, node in enumerate(data["steps"]):
        n, algorithm = nodes[node], data["algorithms"][k]
        kinds[f"{n['op'][:40]} {algorithm}".strip()] += seconds[k]
        operations += n["operations"] if n["heavy"] else 0
        if args.layers:
            rate = f"{n['operations'] / seconds[k] / 1e9:7.1f} GFLOP/s {100 * n['operations'] / seconds[k] / roof:4.0f} %" if n["heavy"] else " " * 22
            print(f"{seconds[k] * 1e6:9.1f} us {rate} {algorithm:16} {n['op'][:30]:30} {n['outputs'][0][0]} {n['attrs'][:150]}")
    total = sum(seconds)
    print(f"{name}, batch {args.batch}: {args.batch / best:.1f} images/s, {best * 1e3:.2f} ms a run ({total * 1e3:.2f} ms kernel by kernel), "
          f"{operations / total / 1e9:.0f} GFLOP/s of {roof / 1e9:.0f}, first call {first * 1e3:.0f} ms")
    for kind, s in kinds.most_common():
        print(f"    {s * 1e3:9.3f} ms {100 * s / total:5.1f} %  {kind}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="*", default=networks.NAMES)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0, help="time to spend on measuring kernels")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--autotune", action="store_true")
    args = parser.parse_args()
    for name in args.networks:
        profile(name, args)


if __name__ == "__main__":
    main()
