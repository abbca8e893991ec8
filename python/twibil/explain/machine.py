# SPDX-License-Identifier: Apache-2.0
"""How fast this machine is, measured once per process in about 0.1 s, and what that predicts for a kernel."""
from __future__ import annotations

import functools
import math
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
        """Bytes per second when a kernel touches `size` bytes; between measured sizes by the logarithm of the size."""
        if not self.bandwidth:
            return 1e10
        before = self.bandwidth[0]
        for most, rate in self.bandwidth:
            if size <= most:
                part = math.log(size / before[0]) / math.log(most / before[0]) if size > before[0] else 0.0
                return before[1] + part * (rate - before[1])
            before = (most, rate)
        return before[1]

    def predict(self, operations: float, moved: float, heavy: bool) -> float:
        """Seconds: the slower of arithmetic and memory, and the start. (The roofline model.)"""
        rate = self.flops if heavy else self.pointwise
        return max(operations / rate, moved / self.bandwidth_for(moved)) + self.start


def _seconds(function, *arrays) -> float:
    """The time of the kernels of a function on arrays, as `explain(measure=True)` takes it."""
    from .. import _core, autograd
    trace = _core.Trace()
    with trace, autograd.pause(train_mode=False):
        y = function(*(trace.input(f"x{i}", a) for i, a in enumerate(arrays)))
        compiled = trace.finish([y], (), ())
    signature = ([(a.shape, a.dtype) for a in arrays], False, [])
    return max(sum(compiled.measure(signature, list(arrays), 0.012)), 1e-9)


@functools.lru_cache(maxsize=1)
def machine() -> Machine:
    """Measures on the first call."""
    from .. import np
    start = _seconds(lambda x: x + 1, np.ones(1))
    bandwidth = []
    for size in (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26):  # from the first cache to memory
        try:
            seconds = _seconds(lambda x: x + 1, np.ones(size // 8))  # reads and writes 4 bytes an element
        except MemoryError:  # under a limit
            break
        bandwidth.append((size, size / max(seconds - start, seconds / 10)))
    n = 384
    flops = 2 * n ** 3 / _seconds(np.dot, np.ones((n, n)), np.ones((n, n)))
    elements = 1 << 13
    pointwise = 20 * elements / _seconds(np.exp, np.ones(elements))  # an exponential is some 20 operations
    return Machine(flops, pointwise, tuple(bandwidth), start)
