# SPDX-License-Identifier: Apache-2.0
"""One file that holds all a training run needs to go on with the same bits: weights, optimizer states, the random
generator's state, the position in the data, and what the curves show so far. Written atomically."""
from __future__ import annotations

import json
import os
import tempfile

import numpy as onp

import twibil as mx
from twibil.serialization import load_params, save_params


def _as_array(value):
    return mx.np.array(onp.frombuffer(json.dumps(value).encode(), onp.uint8))


def _as_value(array):
    return json.loads(array.asnumpy().tobytes())


def save(path, net, trainer, progress: dict) -> None:
    """Replaces the checkpoint; a failure half-way leaves the old one."""
    arrays = {f"net.{name}": p.data() for name, p in net.collect_params().items()}
    with tempfile.TemporaryDirectory() as folder:
        states = os.path.join(folder, "states")
        trainer.save_states(states)
        arrays.update({f"trainer.{name}": a for name, a in load_params(states).items()})
    arrays["progress"] = _as_array(progress)
    arrays["random"] = _as_array(mx.random.get_state())
    save_params(path, arrays)


def load(path, net, trainer) -> dict:
    """Puts everything back and returns the progress. The network must have its shapes already."""
    arrays = load_params(path)
    parameters = net.collect_params()
    saved = {name[4:] for name in arrays if name.startswith("net.")}
    if saved != set(parameters):
        raise ValueError(f"{path}: a checkpoint of another network; it differs in {sorted(saved ^ set(parameters))[:4]}")
    for name, parameter in parameters.items():
        parameter.set_data(arrays[f"net.{name}"])
    with tempfile.TemporaryDirectory() as folder:
        states = os.path.join(folder, "states")
        save_params(states, {n[8:]: a for n, a in arrays.items() if n.startswith("trainer.")})
        trainer.load_states(states)
    mx.random.set_state(_as_value(arrays["random"]))
    return _as_value(arrays["progress"])


def progress_of(path) -> dict:
    """Only the progress, for a look at what the file is."""
    return _as_value(load_params(path)["progress"])
