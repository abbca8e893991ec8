# SPDX-License-Identifier: Apache-2.0
"""Reads the values that MXNet 1.9.1 computed (tools/make_fixtures.py) for the tests to compare with."""
import json
import os

import numpy as onp

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "mxnet")


class Case:
    """One call of MXNet: `name`, `call`, `args`, other plain values of its record in `more`, arrays by role.

    Operators have the roles in.NAME, out.0, out.1, ..., and where there is a gradient head (of out.0) and grad.NAME.
    after.NAME is an input that the call changes, such as a running mean.
    """

    def __init__(self, record, arrays):
        self.more = dict(record)
        self.name, self.call, self.args = (self.more.pop(k) for k in ("name", "call", "args"))
        if isinstance(self.args, dict):  # JSON has no tuples; MXNet's arguments are never lists
            self.args = {k: tuple(v) if isinstance(v, list) else v for k, v in self.args.items()}
        self.arrays = arrays

    def __getitem__(self, role):
        return self.arrays[role]

    def __contains__(self, role):
        return role in self.arrays

    def group(self, prefix):
        """The arrays of roles `prefix`.NAME, by NAME, in order."""
        return {role[len(prefix) + 1:]: a for role, a in self.arrays.items() if role.startswith(prefix + ".")}

    def __repr__(self):
        return self.name


def load(subject):
    """All cases of a subject: optimizers, losses, metrics, lr_schedulers, pooling, convolution, ..."""
    with onp.load(os.path.join(FOLDER, subject + ".npz"), allow_pickle=False) as file:
        index = json.loads(str(file["index"]))
        return [Case({k: v for k, v in record.items() if k != "roles"}, {r: file[f"{i}.{r}"] for r in record["roles"]})
                for i, record in enumerate(index)]


def params_path(name):
    """A .params file that MXNet wrote: list, names, numpy_shapes, gluon, version0, version1, sparse, empty."""
    return os.path.join(FOLDER, "params", name + ".params")
