# SPDX-License-Identifier: Apache-2.0
"""Weights and pictures by formula, the same in MXNet's Python, here and in tests/unit/api/models_test.cc."""
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
