# SPDX-License-Identifier: Apache-2.0
"""Eager = compiled with all passes = with none = with each one left out, over random graphs (random_graphs.py; 10,000
of them run with `python tests/python/random_graphs.py 10000`)."""
import numpy as np
import pytest
import random_graphs
from random_graphs import RandomGraph, optional_passes

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
