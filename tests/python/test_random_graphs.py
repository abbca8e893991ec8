# SPDX-License-Identifier: Apache-2.0
"""Eager = compiled with all passes = with none = with each one left out, over random graphs (random_graphs.py; 10,000
of them run with `python tests/python/random_graphs.py 10000`)."""
import numpy as np
import pytest
import random_graphs
from random_graphs import RandomGraph, bits, optional_passes
from registry import BY_NAME, OPERATORS, array, call, sample_values

import twibil as mx
from twibil import _core


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_compiled_graphs_give_eager_bits(first):
    failures = [w for seed in range(first, first + 50) if (w := RandomGraph(seed).check(optional_passes()))]
    assert not failures, "\n".join(failures)


def test_driver_notices_a_wrong_result():
    """A driver that compares nothing passes everything."""
    graph = next(g for g in map(RandomGraph, range(100)) if not g.gradient and any(n[0] == "s" for n in g.outputs))
    want = graph.run(graph.body)

    def changed(variables):
        out = graph.body(variables)
        return [_core.operators()["logical_not"](out[0])] + out[1:]

    assert graph.run(changed) != want


def test_graphs_have_gradients_updates_and_finite_numbers():
    graphs = [RandomGraph(seed) for seed in range(150)]
    assert sum(g.gradient for g in graphs) > 40 and sum(g.training for g in graphs) > 30
    assert len({s.op["name"] for g in graphs for s in g.steps}) > 150
    assert any(s.op["updates"] for g in graphs for s in g.steps)
    assert any(s.op["random"] for g in graphs for s in g.steps)
    assert any(0 in v.shape for g in graphs for v, _ in g.variables)
    floats = [np.frombuffer(x[2], "float32") for g in graphs[:40] for x in g.run(g.body) if x[0] == "float32"]
    assert np.isfinite(np.concatenate(floats)).mean() > 0.6


def test_main_reports(capsys):
    assert random_graphs.main(3, 0) == 0
    assert "3 graphs" in capsys.readouterr().out


def _operators_with_shape_only_inputs():
    return [op["name"] for op in OPERATORS if op["shape_only"]]


@pytest.mark.parametrize("name", _operators_with_shape_only_inputs())
def test_inputs_declared_as_shape_only_are_not_read(name):
    """Other elements in such an input change nothing."""
    op = BY_NAME[name]
    for sample in op["samples"]:
        dtype = next(d for d in ("float32", "int64") if d in op["dtypes"])
        values = sample_values(op, sample, dtype)
        last = len(op["inputs"]) - 1
        results = []
        for fill in (0, 1):
            arrays = [v if v is None or min(i, last) not in op["shape_only"] else np.full_like(v, fill) for i, v in enumerate(values)]
            mx.random.seed(1)
            results.append([bits(o) for o in call(op, [array(a) for a in arrays], sample["attrs"])])
        assert results[0] == results[1]
