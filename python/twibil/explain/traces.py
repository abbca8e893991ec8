# SPDX-License-Identifier: Apache-2.0
"""Explaining what was traced: functions under `jit`, hybridized blocks."""
from __future__ import annotations

from .. import _core, autograd
from . import explain


def explain_program(program, arrays, title: str, html, measure):
    """Of a `trace.Program`, for the signature of its last run, or for that of `arrays` if it never ran."""
    if program.compiled is None:
        raise ValueError(f"explain: {title} returns no array, so it has no graph")
    if program.compiled.last_signature() is None:
        return _explain_signature(program, [(a.shape, a.dtype) for a in arrays], title, html, measure)
    return explain(program.compiled, title=title, html=html, measure=measure)


def _explain_signature(program, sigs, title: str, html, measure):
    return explain(program.compiled, (list(sigs), autograd.is_training(), []), title=title, html=html, measure=measure)


def explain_block(block, args, html, measure):
    """Of a block: for the inputs `args`, or else its trace made last."""
    from ..gluon.export import trace_example
    from ..gluon.graph_cache import EAGER, traced
    title, graph = type(block).__name__, block._graph
    if not args:
        programs = [p for p in graph.programs.values() if p is not EAGER] if graph is not None else []
        if not programs and graph is not None and graph.example is not None:  # it ran once, eagerly, to find shapes
            return _explain_signature(trace_example(block, graph), graph.example[2], title, html, measure)
        if not programs:
            raise RuntimeError(f"explain of {title}: it has no graph yet. Give inputs, as in explain(x), or call "
                               "hybridize(), then run the block once")
        return explain_program(programs[-1], [], title, html, measure)
    arrays, key = _core.signature(args)
    if arrays is None:
        raise TypeError(f"explain of {title}: inputs must be arrays; got symbols")
    if any(p._data is None for p in block.collect_params().values()):
        with autograd.pause():
            block(*args)  # finds the shapes of parameters
    program = graph.programs.get(key) if graph is not None else None
    if program is None or program is EAGER:
        program = traced(block, args, {}, arrays)
    return explain_program(program, arrays, title, html, measure)
