# SPDX-License-Identifier: Apache-2.0
"""Twibil in a race of CPU inference: answers the race's line protocol (its protocol.py must be importable: it lies beside
race.py, which starts workers in its own folder) with the networks of the folder RACE_MODELS.

    RACE_MODELS=models python race.py --worker 'twibil=python .../benchmarks/race_worker.py' --worker 'ort=python worker_ort.py'

RACE_OPTIONS: options of hybridize, such as autotune=1,exact=1."""
from __future__ import annotations

import os
import sys

sys.path[:0] = [os.getcwd(), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")]
import protocol  # noqa: E402


def load(name, batch, threads):
    """A function that classifies the race's sample pictures and waits for the result."""
    os.environ["TWIBIL_NUM_THREADS"] = str(threads)  # read when the first operation runs
    import twibil as mx
    net = mx.onnx.load(os.path.join(os.environ["RACE_MODELS"], name + ".onnx"))
    options = dict(word.split("=") for word in os.environ.get("RACE_OPTIONS", "").split(",") if word)
    net.hybridize(**{key: bool(int(value)) for key, value in options.items()})
    x = mx.np.array(protocol.sample(name, batch))
    return lambda: net(x).asnumpy()


if __name__ == "__main__":
    protocol.serve(load)
