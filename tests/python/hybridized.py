# SPDX-License-Identifier: Apache-2.0
"""Runs tests of gluon a second time with every hybrid block hybridized, and compares each outermost call with the eager
one: results, random numbers drawn, running statistics."""
import contextlib
import threading

import numpy as onp

from twibil import _core, autograd
from twibil.gluon import HybridBlock
from twibil.gluon.graph_cache import GraphCache, _structure, traced
from twibil.trace import arrays_in

MODULES = ("test_gluon_block", "test_gluon_fixtures", "test_gluon_layers", "test_gluon_loss", "test_gluon_parameter",
           "test_gluon_rnn", "test_d2l_chapters", "test_d2l_guide")
_local = threading.local()
_graph = HybridBlock._call_graph
counts = {"compared": 0}


def _states(block):
    """Arrays that a call may update: parameters without gradients."""
    return [p._single for p in block._collect_params_with_prefix().values()
            if p.grad_req == "null" and p._single is not None]


@contextlib.contextmanager
def _eagerly():
    _local.eager = True
    try:
        with autograd.pause(train_mode=autograd.is_training()):
            yield
    finally:
        _local.eager = False


def _put(arrays, values):
    with autograd.pause():
        for a, v in zip(arrays, values):
            a[...] = v


def _settled(block, args, kwargs) -> bool:
    """Whether the block can run as a graph; parameters that wait for shapes get them by a trace."""
    graph = block._graph = block._graph or GraphCache(block)
    graph.refresh()
    _, pending, watched = _structure(block)
    if pending and not watched:
        arrays, _ = _core.signature((args, kwargs))
        with contextlib.suppress(Exception):  # the call itself will raise it
            if block._pending:
                block._settle(args)
            traced(block, args, kwargs, arrays)
        graph.refresh()
    return not graph.runs_eagerly


def _compared(block, args, kwargs):
    if getattr(_local, "eager", False) or _core.is_tracing():
        return block.forward(*args, **kwargs) if not block._pending else HybridBlock._call_with_hooks(block, args, kwargs)
    alone = threading.current_thread() is threading.main_thread()  # others may draw random numbers in between
    if not alone or not _settled(block, args, kwargs) or block._op_hooks:
        return _graph(block, args, kwargs)
    counts["compared"] += 1
    states = _states(block)
    before, random = [s.asnumpy() for s in states], _core.random_state()
    with _eagerly():
        expected = block.forward(*args, **kwargs)
    drawn, updated = _core.random_state(), [s.asnumpy() for s in states]
    _put(states, before)
    _core.set_random_state(random)
    out = _graph(block, args, kwargs)
    assert _core.random_state() == drawn, f"{type(block).__name__} draws other random numbers"
    pairs = list(zip(arrays_in(out, []), arrays_in(expected, []), strict=True))
    # Graphs for prediction may convolve pictures by another algorithm, each with an error against the sums in float64.
    other_algorithm = not autograd.is_training() and any(
        p._single is not None and p._single.ndim == 4 for p in block._collect_params_with_prefix().values())
    for got, wanted in [(a.asnumpy(), b.asnumpy()) for a, b in pairs] + list(zip([s.asnumpy() for s in states], updated)):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        atol = max(1e-6, 5e-6 * float(onp.abs(wanted).max(initial=0))) if other_algorithm else 1e-6
        onp.testing.assert_allclose(got, wanted, rtol=1e-5 if wanted.dtype != onp.float16 else 1e-2, atol=atol)
    return out


def install(monkeypatch) -> None:
    """For one test: blocks are hybridized from their birth, and compared."""
    monkeypatch.setattr(HybridBlock, "_active", True)
    monkeypatch.setattr(HybridBlock, "_call_graph", _compared)
