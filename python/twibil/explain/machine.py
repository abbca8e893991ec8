# SPDX-License-Identifier: Apache-2.0
"""How fast this machine is, measured once per process in about 0.1 s, and what that predicts for a kernel."""
from __future__ import annotations

import functools
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """Rates of the machine as it is now, with whatever else runs on it."""

    flops: float  # arithmetic operations per second of a large matrix product
    pointwise: float  # of a short formula on numbers in the cache
    bandwidth: tuple  # (bytes touched, bytes per second), by growing size
    start: float  # seconds of a kernel that has nothing to do

    def bandwidth_for(self, size: float) -> float:
        """Bytes per second when a kernel touches `size` bytes; between measured sizes the smaller one's rate counts."""
        for most, rate in self.bandwidth:
            if size <= most:
                return rate
        return self.bandwidth[-1][1]

    def predict(self, operations: float, moved: float, heavy: bool) -> float:
        """Seconds: the slower of arithmetic and memory, and the start. (The roofline model.)"""
        rate = self.flops if heavy else self.pointwise
        return max(operations / rate, moved / self.bandwidth_for(moved)) + self.start


def _least(call, repeats: int, batch: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(batch):
            y = call()
        y.wait_to_read()
        best = min(best, (time.perf_counter() - begin) / batch)
    return best


@functools.lru_cache(maxsize=1)
def machine() -> Machine:
    """Measures on the first call."""
    from .. import np
    start = _least(lambda x=np.ones(1): x + 1, 5, 50)
    bandwidth = []
    for size in (1 << 16, 1 << 19, 1 << 22, 1 << 26):  # first- and second-level cache, third level, memory
        x, out = np.ones(size // 8), np.ones(size // 8)
        seconds = _least(lambda: np.add(x, 1, out=out), 5, max(1, (1 << 20) // size))
        bandwidth.append((size, size / max(seconds - start, seconds / 10)))
    n = 384
    a = np.ones((n, n))
    flops = 2 * n ** 3 / _least(lambda: np.dot(a, a), 4, 1)
    x, out = np.ones(1 << 13), np.ones(1 << 13)
    pointwise = 20 * (1 << 13) / _least(lambda: np.exp(x, out=out), 5, 10)  # an exponential is some 20 operations
    return Machine(flops, pointwise, tuple(bandwidth), start)
