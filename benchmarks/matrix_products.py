# SPDX-License-Identifier: Apache-2.0
"""Matrix products and dense layers against PyTorch and, where it is installed, ONNX Runtime; the contestants in turns.

  python benchmarks/matrix_products.py [--threads N] [--seconds S] [products|dense]

Prints Markdown: microseconds of the best of many batches, GFLOP/s, for dense layers also GB/s of weights.
"""
from __future__ import annotations

import argparse
import os
import time

import numpy as np

PRODUCTS = [(64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (1024, 128, 1024),
            (128, 1024, 128), (64, 64, 1024), (1024, 64, 64), (16, 4096, 256), (2048, 8, 512), (100, 100, 100)]
LAYERS = [(4096, 4096), (4096, 25088), (1000, 2048)]
BATCHES = [1, 2, 4, 8, 16, 32]


def best_of(contestants, seconds):
    """The least time of a call of each, in turns of about a millisecond."""
    count, best = {}, {}
    for name, call in contestants.items():
        call()
        begin = time.perf_counter()
        call()
        count[name] = max(1, int(1e-3 / max(1e-9, time.perf_counter() - begin)))
        best[name] = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in contestants.items():
            begin = time.perf_counter()
            for _ in range(count[name]):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / count[name])
    return best


def products(mx, torch, seconds):
    print("| rows x columns x depth | Twibil us | GFLOP/s | PyTorch us | ratio |\n|---|---|---|---|---|")
    for transposed in (False, True):
        for m, n, k in PRODUCTS:
            a = np.random.rand(m, k).astype("float32")
            b = np.random.rand(*((n, k) if transposed else (k, n))).astype("float32")
            x, y, u, v = mx.np.array(a), mx.np.array(b), torch.from_numpy(a), torch.from_numpy(b)
            if transposed:
                y, v = y.T, v.T
            best = best_of({"ours": lambda: mx.np.matmul(x, y).wait_to_read(), "torch": lambda: u @ v}, seconds)
            print(f"| {m} x {n} x {k}{', B transposed' if transposed else ''} | {best['ours'] * 1e6:.1f} "
                  f"| {2e-9 * m * n * k / best['ours']:.0f} | {best['torch'] * 1e6:.1f} "
                  f"| {best['torch'] / best['ours']:.2f} |", flush=True)


def onnx_layer(weight, bias, threads):
    """The layer as ONNX Runtime's function of a NumPy array, or None."""
    try:
        import onnx
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return None
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)], "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", weight.shape[1]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", weight.shape[0]])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})


def dense(mx, torch, seconds, threads):
    print("| units x inputs | batch | Twibil us | GB/s | GFLOP/s | PyTorch us | ratio | ONNX Runtime us | ratio |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for units, inputs in LAYERS:
        weight = np.random.rand(units, inputs).astype("float32")
        bias = np.random.rand(units).astype("float32")
        w, b, tw, tb = mx.np.array(weight), mx.np.array(bias), torch.from_numpy(weight), torch.from_numpy(bias)
        layer = onnx_layer(weight, bias, threads) if weight.nbytes < 1 << 30 else None
        for batch in BATCHES:
            data = np.random.rand(batch, inputs).astype("float32")
            x, t = mx.np.array(data), torch.from_numpy(data)
            contestants = {"ours": lambda: mx.npx.fully_connected(x, w, b, num_hidden=units).wait_to_read(),
                           "torch": lambda: torch.nn.functional.linear(t, tw, tb)}
            if layer:
                contestants["onnx"] = lambda: layer(data)
            best = best_of(contestants, seconds)
            ours, theirs, third = best["ours"], best["torch"], best.get("onnx")
            last = f"{third * 1e6:.0f} | {third / ours:.2f}" if third else "- | -"
            print(f"| {units} x {inputs} | {batch} | {ours * 1e6:.0f} | {weight.nbytes / ours * 1e-9:.0f} "
                  f"| {2e-9 * batch * units * inputs / ours:.0f} | {theirs * 1e6:.0f} | {theirs / ours:.2f} | {last} |",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="?", choices=["products", "dense"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    args = parser.parse_args()
    os.environ["TWIBIL_NUM_THREADS"] = str(args.threads)
    import torch
    import twibil as mx
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    if args.what != "dense":
        products(mx, torch, args.seconds)
    if args.what != "products":
        dense(mx, torch, args.seconds, args.threads)


if __name__ == "__main__":
    main()
