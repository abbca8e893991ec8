#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hybridized against eager: training steps and predictions of an MLP and of d2l's ResNet-18, in turns.

  hybridized.py [--rounds N] [--networks mlp,resnet18]

Prints, for each, the least CPU time and the least wall time of a call over all rounds (the first is what other programs on the
machine disturb least), their ratios, and the peak of array memory above what the network itself holds."""
from __future__ import annotations

import argparse
import gc
import time

import twibil as mx
from twibil import autograd, gluon, np, npx
from twibil.gluon import nn


class Residual(nn.HybridBlock):
    """The book's residual block."""

    def __init__(self, channels, use_1x1conv=False, strides=1):
        super().__init__()
        self.conv1 = nn.Conv2D(channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(channels, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2D(channels, kernel_size=1, strides=strides) if use_1x1conv else None
        self.bn1, self.bn2 = nn.BatchNorm(), nn.BatchNorm()

    def forward(self, x):
        y = self.bn2(self.conv2(npx.relu(self.bn1(self.conv1(x)))))
        return npx.relu(y + (self.conv3(x) if self.conv3 else x))


def resnet18():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(64, kernel_size=7, strides=2, padding=3), nn.BatchNorm(), nn.Activation("relu"),
            nn.MaxPool2D(pool_size=3, strides=2, padding=1))
    for i, channels in enumerate((64, 128, 256, 512)):
        for j in range(2):
            first = i > 0 and j == 0
            net.add(Residual(channels, first, 2 if first else 1))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10))
    return net


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(10))
    return net


CASES = {"mlp": (mlp, (1, 784), 200), "mlp, batch 256": (mlp, (256, 784), 20), "resnet18": (resnet18, (8, 1, 96, 96), 1)}


def calls(make, shape, hybrid: bool) -> dict:
    """A training step and a prediction."""
    mx.random.seed(0)
    net, loss = make(), gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
        loss.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    x, y = np.random.normal(size=shape), np.random.randint(0, 10, size=(shape[0],))

    def train():
        with autograd.record():
            error = loss(net(x), y)
        error.backward()
        trainer.step(shape[0])
        return error
    return {"train": train, "predict": lambda: net(x)}


def peak_bytes(call) -> int:
    """The most that a call holds besides what was there before."""
    mx.waitall()
    gc.collect()
    mx._core.reset_peak_memory()
    before = mx._core.memory_stats()["current_bytes"]
    call().wait_to_read()
    mx.waitall()
    return mx._core.memory_stats()["peak_bytes"] - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--networks", default=",".join(CASES), help="names with commas between")
    options = parser.parse_args()
    print("| network | call | CPU ms, eager | hybridized | eager / hybridized | wall, eager / hybridized | peak MB, eager | "
          "hybridized |\n|---|---|---|---|---|---|---|---|")
    for name, (make, shape, repeats) in CASES.items():
        if not any(name.startswith(n.strip()) for n in options.networks.split(",")):
            continue
        both = [calls(make, shape, hybrid) for hybrid in (False, True)]
        for kind in ("train", "predict"):
            for c in both:
                for _ in range(3):
                    c[kind]()
            cpu, wall = [9e9, 9e9], [9e9, 9e9]
            for _ in range(options.rounds):
                for k, c in enumerate(both):
                    mx.waitall()
                    start = time.process_time(), time.perf_counter()
                    for _ in range(repeats):
                        out = c[kind]()
                    out.wait_to_read()
                    mx.waitall()
                    cpu[k] = min(cpu[k], (time.process_time() - start[0]) / repeats)
                    wall[k] = min(wall[k], (time.perf_counter() - start[1]) / repeats)
            peaks = [peak_bytes(c[kind]) / 1e6 for c in both]
            print(f"| {name} | {kind} | {cpu[0] * 1e3:.4g} | {cpu[1] * 1e3:.4g} | {cpu[0] / cpu[1]:.2f} | "
                  f"{wall[0] / wall[1]:.2f} | {peaks[0]:.3g} | {peaks[1]:.3g} |", flush=True)


if __name__ == "__main__":
    main()
