#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks MXNet 1.9.1 for the parameters and outputs of its model zoo, and writes tests/fixtures/mxnet/zoo.txt:

    mxnet/bin/python tools/zoo_fixtures.py            # the environment of tools/make_fixtures.py
    mxnet/bin/python tools/zoo_fixtures.py --load DIR # checks that MXNet loads DIR/NAME.params, and that outputs agree

Weights are a formula that C++ and Python compute alike (tests/python/zoo_formula.py), so the file is small. Each line is
one network for ten classes: name, side of the square picture, number of parameters, CRC-32 of their names and shapes, and
ten outputs. Inception-BN is not in MXNet's zoo; it is made here as in MXNet's examples.
"""
import os
import sys
import warnings

import numpy as onp

warnings.simplefilter("ignore")
import mxnet as mx  # noqa: E402
from mxnet.gluon import nn  # noqa: E402
from mxnet.gluon.contrib.nn import HybridConcurrent  # noqa: E402
from mxnet.gluon.model_zoo import vision  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "python"))
import zoo_formula  # noqa: E402


class InceptionBN(mx.gluon.HybridBlock):
    """Each unit is a convolution with bias, BatchNorm(eps=1e-5), relu; rows of the table are MXNet's arguments."""
    A = "a"
    B = "b"
    BLOCKS = [(A, 64, 64, 64, 64, 96, "avg", 32), (A, 64, 64, 96, 64, 96, "avg", 64), (B, 128, 160, 64, 96),
              (A, 224, 64, 96, 96, 128, "avg", 128), (A, 192, 96, 128, 96, 128, "avg", 128),
              (A, 160, 128, 160, 128, 160, "avg", 128), (A, 96, 128, 192, 160, 192, "avg", 128), (B, 128, 192, 192, 256),
              (A, 352, 192, 320, 160, 224, "avg", 128), (A, 352, 192, 320, 192, 224, "max", 128)]

    def __init__(self, classes):
        super().__init__()
        net = self.features = nn.HybridSequential()
        net.add(self.chain((64, 7, 2, 3)), nn.MaxPool2D(3, 2), self.chain((64, 1, 1, 0), (192, 3, 1, 1)),
                nn.MaxPool2D(3, 2))
        for kind, *n in self.BLOCKS:
            join = HybridConcurrent(axis=1)
            if kind == self.A:
                n1, r3, n3, rd, nd, pool, proj = n
                last = nn.HybridSequential()
                last.add(nn.AvgPool2D(3, 1, 1) if pool == "avg" else nn.MaxPool2D(3, 1, 1))
                for layer in self.unit(proj, 1, 1, 0):
                    last.add(layer)
                join.add(self.chain((n1, 1, 1, 0)), self.chain((r3, 1, 1, 0), (n3, 3, 1, 1)),
                         self.chain((rd, 1, 1, 0), (nd, 3, 1, 1), (nd, 3, 1, 1)), last)
            else:
                r3, n3, rd, nd = n
                join.add(self.chain((r3, 1, 1, 0), (n3, 3, 2, 1)),
                         self.chain((rd, 1, 1, 0), (nd, 3, 1, 1), (nd, 3, 2, 1)), nn.MaxPool2D(3, 2, 1))
            net.add(join)
        net.add(nn.GlobalAvgPool2D(), nn.Flatten())
        self.output = nn.Dense(classes)

    def unit(self, channels, kernel, stride, pad):
        return [nn.Conv2D(channels, kernel, stride, pad), nn.BatchNorm(epsilon=1e-5), nn.Activation("relu")]

    def chain(self, *units):
        out = nn.HybridSequential()
        for u in units:
            for layer in self.unit(*u):
                out.add(layer)
        return out

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


def make(name):
    return InceptionBN(10) if name == "inception_bn" else vision.get_model(name, classes=10)


def settle(net, side):
    """Gives deferred parameters their shapes; returns the parameters by name."""
    net.initialize()
    net(mx.nd.zeros((1, 3, side, side)))
    return net._collect_params_with_prefix()


def run(name):
    side, net = zoo_formula.SIDES[name], make(name)
    params = settle(net, side)
    for i, (key, p) in enumerate(params.items()):
        p.set_data(mx.nd.array(zoo_formula.parameter(i, key, p.shape)))
    out = net(mx.nd.array(zoo_formula.picture(side))).asnumpy()[0]
    crc = zoo_formula.checksum((key, p.shape) for key, p in params.items())
    return f"{name} {side} {len(params)} {crc} " + " ".join(f"{v:.8g}" for v in out), out


def main():
    if sys.argv[1:2] == ["--load"]:
        for name in zoo_formula.SIDES:
            net, side = make(name), zoo_formula.SIDES[name]
            net.load_parameters(os.path.join(sys.argv[2], name + ".params"))
            out, expect = net(mx.nd.array(zoo_formula.picture(side))).asnumpy()[0], run(name)[1]
            print(name, "differs by", abs(out - expect).max() / abs(expect).max(), flush=True)
        return
    path = os.path.join(HERE, "..", "tests", "fixtures", "mxnet", "zoo.txt")
    lines = []
    for name in zoo_formula.SIDES:
        lines.append(run(name)[0])
        print(lines[-1], flush=True)
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
