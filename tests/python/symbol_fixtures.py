# SPDX-License-Identifier: Apache-2.0
"""Reads tests/fixtures/mxnet/symbols: graphs, parameters, inputs and results of MXNet 1.9.1."""
import glob
import os

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "mxnet", "symbols")
NAMES = sorted(os.path.basename(p)[:-4] for p in glob.glob(os.path.join(FOLDER, "*.npz")))


class Fixture:
    """`json` and `style` of a file, and its arrays by role: `group("arg")` is {name: array}."""

    def __init__(self, name):
        self.name = name
        with np.load(os.path.join(FOLDER, name + ".npz"), allow_pickle=False) as file:
            self.arrays = {k: file[k] for k in file.files}
        self.json, self.style = str(self.arrays.pop("json")), str(self.arrays.pop("style"))

    def group(self, role):
        return {k[len(role) + 1:]: v for k, v in self.arrays.items() if k.startswith(role + ".")}
