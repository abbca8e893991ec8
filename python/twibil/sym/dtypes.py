# SPDX-License-Identifier: Apache-2.0
"""dtypes of a graph whose shapes are not known: every operator keeps the dtype of its inputs but those that have an
attribute `dtype`."""
from __future__ import annotations

import numpy as _np


def _dtype(value):
    from .. import _core
    return _np.dtype(str(_core.array(0, dtype=value).dtype)) if value is not None else None


def infer_types(symbol, given: dict):
    """(dtypes of arguments, of outputs, of auxiliary states), as NumPy's types."""
    nodes, heads = symbol._nodes()
    known = [None] * len(nodes)
    for i, node in enumerate(nodes):
        if node["kind"] == "variable" and node["name"] in given:
            known[i] = _dtype(given[node["name"]])
        elif node.get("dtype") is not None:
            known[i] = _np.dtype(str(node["dtype"]))
        elif node["kind"] in ("captured", "constant") and node["value"].ndim:
            known[i] = _np.dtype(str(node["value"].dtype))
    numbers = {i for i, node in enumerate(nodes) if node["kind"] == "constant" and known[i] is None}
    for _ in range(2):  # the second round serves variables that are read before something with a dtype
        for i, node in enumerate(nodes):
            if not node["inputs"] and node["kind"] != "call":
                continue
            inputs = [e[0] for e in node["inputs"] if e is not None and e[0] not in numbers]
            types = [known[k] for k in inputs if known[k] is not None]
            common = _np.result_type(*types) if types else None
            if common is not None:
                for k in inputs:
                    known[k] = known[k] or common
            said = node["attrs"].get("dtype", "None")
            known[i] = _dtype(said) if said != "None" else common
    types = {node["name"]: (known[i] or _np.dtype("float32")).type
             for i, node in enumerate(nodes) if node["kind"] == "variable"}
    outputs = [(known[n] or _np.dtype("float32")).type for n, _ in heads]
    return ([types[n] for n in symbol.list_arguments()], outputs, [types[n] for n in symbol.list_auxiliary_states()])
