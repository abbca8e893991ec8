# SPDX-License-Identifier: Apache-2.0
"""ONNX models as bytes, written field by field: for tests that must run without the package `onnx`, and for damaged
models that it would not write."""
from __future__ import annotations

import struct

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def number(field: int, n: int) -> bytes:
    return varint(field << 3) + varint(n)


def block(field: int, content) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, array, raw=True, dims=None, dtype=None, data=None) -> bytes:
    array = np.asarray(array)
    out = b"".join(number(1, d) for d in (array.shape if dims is None else dims))
    out += number(2, TYPES[array.dtype.name] if dtype is None else dtype)
    out += block(8, name)
    if data is not None:
        return out + data
    return out + (block(9, array.tobytes()) if raw else block(7, b"".join(varint(int(v)) for v in array.ravel())))


def attribute(name, value) -> bytes:
    out = block(1, name)
    if isinstance(value, bytes):  # a graph
        return out + block(6, value) + number(20, 5)
    if isinstance(value, np.ndarray):
        return out + block(5, tensor("", value)) + number(20, 4)
    if isinstance(value, str):
        return out + block(4, value) + number(20, 3)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, (list, tuple)):
        return out + block(8, b"".join(varint(v) for v in value)) + number(20, 7)
    return out + number(3, value) + number(20, 2)


def node(op, inputs, outputs, name="", domain="", **attributes) -> bytes:
    out = b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in outputs)
    out += block(3, name) + block(4, op) + (block(7, domain) if domain else b"")
    return out + b"".join(block(5, attribute(k, v)) for k, v in attributes.items())


def value(name, shape=None, dtype="float32") -> bytes:
    kind = number(1, TYPES[dtype] if isinstance(dtype, str) else dtype)
    if shape is not None:
        kind += block(2, b"".join(block(1, number(1, d) if isinstance(d, int) else block(2, d)) for d in shape))
    return block(1, name) + block(2, block(1, kind))


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g") -> bytes:
    return (b"".join(block(1, n) for n in nodes) + block(2, name) + b"".join(block(5, t) for t in initializers)
            + b"".join(block(11, v) for v in inputs) + b"".join(block(12, v) for v in outputs))


def model(g: bytes, opset=13, functions=(), metadata=(), more_opsets=()) -> bytes:
    out = number(1, 8) + block(2, "a test") + block(7, g) + block(8, block(1, "") + number(2, opset))
    out += b"".join(block(8, block(1, d) + number(2, v)) for d, v in more_opsets)
    out += b"".join(block(14, block(1, k) + block(2, v)) for k, v in metadata)
    return out + b"".join(block(25, f) for f in functions)


def function(name, domain, inputs, outputs, nodes, opset=13) -> bytes:
    return (block(1, name) + b"".join(block(4, i) for i in inputs) + b"".join(block(5, o) for o in outputs)
            + b"".join(block(7, n) for n in nodes) + block(9, block(1, "") + number(2, opset)) + block(10, domain))
