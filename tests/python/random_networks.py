# SPDX-License-Identifier: Apache-2.0
"""Random convolutional networks, compiled with blocked channels and without: results must agree, for every batch size,
with parameters changing between runs.

    python tests/python/random_networks.py 1000 [first seed]     prints what fails
"""
from __future__ import annotations

import sys

import numpy as np

import twibil as mx
from twibil import _core

F = _core.operators()
CHANNELS = (3, 8, 16, 17, 24, 32, 40, 48)


class RandomNetwork:
    """`forward(x)` is a function on arrays; `parameters` are found outside by it, so that they are fixed."""

    def __init__(self, seed: int, size: int | None = None):
        self.rng = np.random.default_rng(seed)
        self.parameters = []
        self.channels = int(self.rng.choice((1, 3, 5, 16, 24)))
        self.height, self.width = (int(n) for n in self.rng.integers(8, 22, 2))
        self.program = []  # (function of the values so far, operands)
        self.shapes = [(self.channels, self.height, self.width)]
        for _ in range(size or int(self.rng.integers(3, 16))):
            self._step()
        read = {i for _, operands in self.program for i in operands}
        ends = [i for i in range(1, len(self.shapes)) if i not in read]
        middle = [i for i in range(1, len(self.shapes)) if i in read and self.rng.random() < 0.15]
        self.outputs = (ends + middle) or [0]

    def x(self, batch):
        return mx.np.array(self.rng.standard_normal((batch, self.channels, self.height, self.width)).astype("float32"))

    def forward(self, x):
        values = [x]
        for function, operands in self.program:
            values.append(function(*[values[i] for i in operands]))
        return [values[i] for i in self.outputs]

    # ---- steps ----

    def _parameter(self, *shape, low=None, high=None, scale=1.0):
        values = self.rng.uniform(low, high, shape) if low is not None else self.rng.standard_normal(shape) * scale
        self.parameters.append(mx.np.array(values.astype("float32")))
        return len(self.parameters) - 1

    def _pick(self, wanted=lambda s: True):
        fits = [i for i, s in enumerate(self.shapes) if wanted(s)]
        return fits[max(self.rng.integers(len(fits)), self.rng.integers(len(fits)))] if fits else None

    def _add(self, function, operands, shape):
        self.program.append((function, operands))
        self.shapes.append(shape)

    def _step(self):
        kinds = ("convolution",) * 6 + ("relu", "clip", "formula", "batch_norm", "pool", "pool", "global", "lrn") + (
            "sum",) * 2 + ("join",) * 2 + ("gate", "number", "shift")
        getattr(self, "_" + kinds[self.rng.integers(len(kinds))])()

    def _convolution(self):
        i = self._pick()
        channels, height, width = self.shapes[i]
        kernel = ((1, 1), (3, 3), (3, 3), (5, 5), (1, 7), (7, 1), (1, 3), (2, 3), (7, 7))[self.rng.integers(9)]
        stride = (1, 1) if self.rng.random() < 0.7 else tuple(int(n) for n in self.rng.integers(1, 4, 2))
        dilate = (1, 1) if self.rng.random() < 0.85 else (2, 1)
        pad = tuple(int(self.rng.integers(0, k)) if self.rng.random() < 0.5 else k // 2 for k in kernel)
        sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, p, d, k, s in zip((height, width), pad, dilate, kernel, stride)]
        if min(sizes) < 1:
            return
        groups, filters = 1, int(self.rng.choice(CHANNELS))
        if self.rng.random() < 0.2:
            groups = filters = channels
        elif self.rng.random() < 0.15 and channels % 2 == 0 and filters % 2 == 0:
            groups = 2
        window = (channels // groups, *kernel)
        w = self._parameter(filters, *window, scale=float((1.5 / np.prod(window)) ** 0.5))
        b = self._parameter(filters) if self.rng.random() < 0.6 else None

        def function(x):
            return F["convolution"](x, self.parameters[w], None if b is None else self.parameters[b], kernel=kernel,
                                    stride=stride, dilate=dilate, pad=pad, num_filter=filters, num_group=groups,
                                    no_bias=b is None)
        self._add(function, [i], (filters, *sizes))

    def _relu(self):
        i = self._pick()
        self._add(F["relu"], [i], self.shapes[i])

    def _clip(self):
        i = self._pick()
        low, high = sorted(float(n) for n in self.rng.uniform(-2, 6, 2))
        kind = self.rng.integers(3)
        self._add(lambda x: x.clip(low, high) if kind == 0 else mx.np.maximum(x, low) if kind == 1 else x.clip(0, 6), [i],
                  self.shapes[i])

    def _formula(self):
        i = self._pick()
        names = ("sigmoid", "tanh", "negative", "absolute", "exp", "softsign")
        name = names[self.rng.integers(len(names))]
        formulas = {"exp": lambda x: mx.np.exp(-mx.np.abs(x)), "softsign": lambda x: x / (1 + mx.np.abs(x))}
        self._add(formulas.get(name) or F[name], [i], self.shapes[i])

    def _number(self):
        i = self._pick()
        number = float(self.rng.uniform(-2, 2))
        self._add(lambda x: x * number + 1, [i], self.shapes[i])

    def _shift(self):
        i = self._pick()
        shape = ((self.shapes[i][0], 1, 1), (1, self.shapes[i][0], 1, 1), (1, *self.shapes[i]))[self.rng.integers(3)]
        p = self._parameter(*shape)
        self._add((lambda x: x + self.parameters[p]) if self.rng.random() < 0.5 else (lambda x: self.parameters[p] * x), [i],
                  self.shapes[i])

    def _batch_norm(self):
        i = self._pick()
        c = self.shapes[i][0]
        gamma, beta, mean = self._parameter(c), self._parameter(c), self._parameter(c)
        var = self._parameter(c, low=0.5, high=1.5)
        self._add(lambda x: F["batch_norm"](x, *[self.parameters[k] for k in (gamma, beta, mean, var)], fix_gamma=False,
                                            eps=1e-3), [i], self.shapes[i])

    def _pool(self):
        i = self._pick(lambda s: min(s[1:]) >= 3)
        if i is None:
            return
        c, *sizes = self.shapes[i]
        kernel, stride = int(self.rng.integers(2, 4)), int(self.rng.integers(1, 3))
        pad, full = int(self.rng.integers(0, kernel)), bool(self.rng.random() < 0.3)
        kind, counts = ("max", "avg", "avg", "sum")[self.rng.integers(4)], bool(self.rng.random() < 0.5)
        out = [(-((kernel - n - 2 * pad) // stride) if full else (n + 2 * pad - kernel) // stride) + 1 for n in sizes]
        if full and any((o - 1) * stride >= n + pad for o, n in zip(out, sizes)):  # a window of padding alone
            return
        self._add(lambda x: F["pooling"](x, kernel=(kernel,) * 2, stride=(stride,) * 2, pad=(pad,) * 2, pool_type=kind,
                                         count_include_pad=counts, pooling_convention="full" if full else "valid"), [i],
                  (c, *out))

    def _global(self):
        i = self._pick()
        kind = ("avg", "max")[self.rng.integers(2)]
        self._add(lambda x: F["pooling"](x, pool_type=kind, global_pool=True), [i], (self.shapes[i][0], 1, 1))

    def _lrn(self):
        i = self._pick()
        self._add(lambda x: mx.nd.LRN(x, nsize=5, alpha=1e-2), [i], self.shapes[i])

    def _sum(self):
        i = self._pick()
        j = self._pick(lambda s: s == self.shapes[i])
        self._add((lambda x, y: x + y) if self.rng.random() < 0.8 else (lambda x, y: x * y), [i, j], self.shapes[i])

    def _join(self):
        i = self._pick()
        same = [k for k, s in enumerate(self.shapes) if s[1:] == self.shapes[i][1:]]
        parts = [int(k) for k in self.rng.choice(same, min(len(same), int(self.rng.integers(1, 5))), replace=False)]
        if sum(self.shapes[k][0] for k in parts) > 200:
            return
        self._add(lambda *x: mx.np.concatenate(x, axis=1), parts,
                  (sum(self.shapes[k][0] for k in parts), *self.shapes[i][1:]))

    def _gate(self):
        i = self._pick()
        j = self._pick(lambda s: s == (self.shapes[i][0], 1, 1))
        if j is not None:
            self._add(lambda x, y: x * F["sigmoid"](y), [i, j], self.shapes[i])


def compiled(network, x, without=()):
    trace = _core.Trace()
    with trace:
        out = network.forward(trace.input("x", x))
    return trace.finish(out, tuple(without), ())


def names(graph, x):
    return [k[1] for k in graph.report([(x.shape, x.dtype)], False, [])["kernels"]]


def difference(got, want):
    """The largest difference, as a share of the largest number (float64)."""
    worst = 0.0
    for y, w in zip(got, want):
        y, w = y.asnumpy().astype("float64"), w.asnumpy().astype("float64")
        if not np.isfinite(y).all() and np.isfinite(w).all():
            return float("inf")
        if w.size and np.isfinite(w).all():
            worst = max(worst, float(np.abs(y - w).max() / max(np.abs(w).max(), 1e-3)))
    return worst


def check(seed, size=None, tolerance=3e-5):
    """A sentence that says what failed, or None."""
    network = RandomNetwork(seed, size)
    x = network.x(int(network.rng.integers(1, 4)))
    graph = compiled(network, x)
    if graph is None:
        return None
    for run in range(3):
        want = network.forward(x)
        worst = difference(graph.call(x), want)
        if worst > tolerance:
            return f"seed {seed}, run {run}, batch {x.shape[0]}: {worst:.1e} of the largest number"
        if run == 0:  # another batch size
            x = network.x(x.shape[0] + 1)
        elif network.parameters:  # other parameters
            p = network.parameters[network.rng.integers(len(network.parameters))]
            p *= 1.25
    return None


def main():
    count, first = int(sys.argv[1]) if len(sys.argv) > 1 else 100, int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed = 0
    for seed in range(first, first + count):
        try:
            problem = check(seed)
        except Exception as error:  # noqa: BLE001 - every failure is reported with its seed
            problem = f"seed {seed}: {type(error).__name__}: {error}"
        if problem:
            failed += 1
            print(problem)
    print(f"{count} networks, {failed} failures")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
