# SPDX-License-Identifier: Apache-2.0
"""Six well-known networks for pictures as symbols: what the tables of memory and of compile time are about.

    net = networks.build("resnet-50")
    net.symbol                      # probabilities, (batch, 1000)
    net.shapes(batch=8)             # {name of a variable: shape}, the data first
"""
from __future__ import annotations

import twibil as mx

SIZE = {"alexnet": 224, "vgg16": 224, "inception-bn": 224, "inception-v3": 299, "resnet-50": 224, "resnet-152": 224}


class Network:
    """Builds a symbol; every layer takes and gives (symbol, channels, height, width)."""

    def __init__(self, size):
        self._parameters, self._states, self._count = {}, [], 0
        self._size = size
        self._variable = mx.sym.Variable
        self.symbol = None

    def shapes(self, batch):
        """Shapes of all variables in the order of `symbol.list_inputs()`."""
        known = {"data": (batch, 3, self._size, self._size), **self._parameters}
        return {name: known[name] for name in self.symbol.list_inputs()}

    def wants(self):
        """For each variable, whether training asks for its gradient: parameters, without data and statistics."""
        return [name != "data" and name not in self._states for name in self.symbol.list_inputs()]

    def _name(self, kind):
        self._count += 1
        return f"{kind}{self._count}"

    def _parameter(self, name, *shape):
        self._parameters[name] = shape
        return self._variable(name)

    def data(self):
        return mx.sym.Variable("data"), 3, self._size, self._size

    def convolution(self, x, width, kernel, stride=1, pad=0, bias=True):
        data, channels, height, columns = x
        kernel, pad = _pair(kernel), _pair(pad)
        name = self._name("convolution")
        inputs = [data, self._parameter(name + "_weight", width, channels, *kernel)]
        if bias:
            inputs.append(self._parameter(name + "_bias", width))
        y = mx.npx.convolution(*inputs, kernel=kernel, stride=_pair(stride), pad=pad, num_filter=width,
                               no_bias=not bias)
        sizes = [(n + 2 * p - k) // stride + 1 for n, p, k in zip((height, columns), pad, kernel)]
        return y, width, *sizes

    def dense(self, x, width):
        data, channels, height, columns = x
        name = self._name("dense")
        weight = self._parameter(name + "_weight", width, channels * height * columns)
        y = mx.npx.fully_connected(data, weight, self._parameter(name + "_bias", width), num_hidden=width)
        return y, width, 1, 1

    def batch_norm(self, x):
        data, channels, height, columns = x
        name = self._name("batch_norm")
        vectors = [self._parameter(f"{name}_{part}", channels) for part in ("gamma", "beta", "mean", "var")]
        self._states += [name + "_mean", name + "_var"]
        return mx.npx.batch_norm(data, *vectors, eps=1e-5, fix_gamma=False), channels, height, columns

    def relu(self, x):
        return mx.npx.relu(x[0]), *x[1:]

    def response_norm(self, x):
        return mx.nd.LRN(x[0], alpha=1e-4, beta=0.75, knorm=2.0, nsize=5), *x[1:]

    def pool(self, x, kind, kernel, stride, pad=0):
        data, channels, *sizes = x
        y = mx.npx.pooling(data, kernel=_pair(kernel), stride=_pair(stride), pad=_pair(pad), pool_type=kind)
        return y, channels, *[(n + 2 * pad - kernel) // stride + 1 for n in sizes]

    def global_pool(self, x):
        return mx.npx.pooling(x[0], pool_type="avg", global_pool=True), x[1], 1, 1

    def join(self, parts):
        y = mx.np.concatenate([p[0] for p in parts], axis=1)
        return y, sum(p[1] for p in parts), *parts[0][2:]

    def add(self, x, y):
        return x[0] + y[0], *x[1:]

    def classify(self, x):
        return mx.npx.softmax(self.dense(x, 1000)[0])

    def unit(self, x, width, kernel, stride=1, pad=0, bias=True):
        """Convolution, batch norm, relu."""
        return self.relu(self.batch_norm(self.convolution(x, width, kernel, stride, pad, bias)))

    def chain(self, x, *layers, bias=True):
        """One unit after the other."""
        for layer in layers:
            x = self.unit(x, *layer, bias=bias)
        return x


def _pair(n):
    return n if isinstance(n, tuple) else (n, n)


def _alexnet(net, x):
    x = net.relu(net.convolution(x, 96, 11, 4))
    x = net.pool(net.response_norm(x), "max", 3, 2)
    x = net.relu(net.convolution(x, 256, 5, 1, 2))
    x = net.pool(net.response_norm(x), "max", 3, 2)
    for width in (384, 384, 256):
        x = net.relu(net.convolution(x, width, 3, 1, 1))
    x = net.pool(x, "max", 3, 2)
    for _ in range(2):
        x = net.relu(net.dense(x, 4096))
    return net.classify(x)


def _vgg16(net, x):
    for count, width in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            x = net.relu(net.convolution(x, width, 3, 1, 1))
        x = net.pool(x, "max", 2, 2)
    for _ in range(2):
        x = net.relu(net.dense(x, 4096))
    return net.classify(x)


def _inception_bn(net, x):
    def same(x, one, three, double, kind, pooled):
        return net.join([net.unit(x, one, 1),
                         net.chain(x, (three[0], 1), (three[1], 3, 1, 1)),
                         net.chain(x, (double[0], 1), (double[1], 3, 1, 1), (double[1], 3, 1, 1)),
                         net.unit(net.pool(x, kind, 3, 1, 1), pooled, 1)])

    def half(x, three, double):
        return net.join([net.chain(x, (three[0], 1), (three[1], 3, 2, 1)),
                         net.chain(x, (double[0], 1), (double[1], 3, 1, 1), (double[1], 3, 2, 1)),
                         net.pool(x, "max", 3, 2, 1)])

    x = net.pool(net.unit(x, 64, 7, 2, 3), "max", 3, 2)
    x = net.pool(net.chain(x, (64, 1), (192, 3, 1, 1)), "max", 3, 2)
    x = same(x, 64, (64, 64), (64, 96), "avg", 32)
    x = same(x, 64, (64, 96), (64, 96), "avg", 64)
    x = half(x, (128, 160), (64, 96))
    x = same(x, 224, (64, 96), (96, 128), "avg", 128)
    x = same(x, 192, (96, 128), (96, 128), "avg", 128)
    x = same(x, 160, (128, 160), (128, 160), "avg", 128)
    x = same(x, 96, (128, 192), (160, 192), "avg", 128)
    x = half(x, (128, 192), (192, 256))
    x = same(x, 352, (192, 320), (160, 224), "avg", 128)
    x = same(x, 352, (192, 320), (192, 224), "max", 128)
    return net.classify(net.global_pool(x))


def _inception_v3(net, x):
    row, column = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))

    def chain(x, *layers):
        return net.chain(x, *layers, bias=False)

    def pooled(x, width):
        return chain(net.pool(x, "avg", 3, 1, 1), (width, 1))

    def wide(x, width):
        return net.join([chain(x, (64, 1)), chain(x, (48, 1), (64, 5, 1, 2)),
                         chain(x, (64, 1), (96, 3, 1, 1), (96, 3, 1, 1)), pooled(x, width)])

    def long(x, n):
        return net.join([chain(x, (192, 1)), chain(x, (n, 1), (n, *row), (192, *column)),
                         chain(x, (n, 1), (n, *column), (n, *row), (n, *column), (192, *row)), pooled(x, 192)])

    def both(x):
        return net.join([chain(x, (384, (1, 3), 1, (0, 1))), chain(x, (384, (3, 1), 1, (1, 0)))])

    def last(x):
        return net.join([chain(x, (320, 1)), both(chain(x, (384, 1))), both(chain(x, (448, 1), (384, 3, 1, 1))),
                         pooled(x, 192)])

    x = net.pool(chain(x, (32, 3, 2), (32, 3), (64, 3, 1, 1)), "max", 3, 2)
    x = net.pool(chain(x, (80, 1), (192, 3)), "max", 3, 2)
    for width in (32, 64, 64):
        x = wide(x, width)
    x = net.join([chain(x, (384, 3, 2)), chain(x, (64, 1), (96, 3, 1, 1), (96, 3, 2)), net.pool(x, "max", 3, 2)])
    for n in (128, 160, 160, 192):
        x = long(x, n)
    x = net.join([chain(x, (192, 1), (320, 3, 2)), chain(x, (192, 1), (192, *row), (192, *column), (192, 3, 2)),
                  net.pool(x, "max", 3, 2)])
    return net.classify(net.global_pool(last(last(x))))


def _resnet(net, x, blocks):
    x = net.pool(net.unit(x, 64, 7, 2, 3, bias=False), "max", 3, 2, 1)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for i in range(count):
            stride = 2 if i == 0 and stage else 1
            y = net.chain(x, (width, 1), (width, 3, stride, 1), bias=False)
            y = net.batch_norm(net.convolution(y, 4 * width, 1, bias=False))
            if i == 0:
                x = net.batch_norm(net.convolution(x, 4 * width, 1, stride, bias=False))
            x = net.relu(net.add(x, y))
    return net.classify(net.global_pool(x))


_BUILD = {"alexnet": _alexnet, "vgg16": _vgg16, "inception-bn": _inception_bn, "inception-v3": _inception_v3,
          "resnet-50": lambda net, x: _resnet(net, x, (3, 4, 6, 3)),
          "resnet-152": lambda net, x: _resnet(net, x, (3, 8, 36, 3))}
NAMES = tuple(_BUILD)


def build(name, size=None):
    """The network `name` for pictures of `size` x `size` (by default what it was made for)."""
    net = Network(size or SIZE[name])
    net.symbol = _BUILD[name](net, net.data())
    return net


def forward(name, arrays, x):
    """The network on an array of pictures, with parameters from the dict `arrays`: what a trace sees."""
    net = Network(x.shape[2])
    net._variable = arrays.__getitem__
    return _BUILD[name](net, (x, *x.shape[1:]))
