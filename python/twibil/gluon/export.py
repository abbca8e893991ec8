# SPDX-License-Identifier: Apache-2.0
"""Networks as files: a graph in `-symbol.json` and its parameters beside it."""
from __future__ import annotations

import os

from .. import autograd
from ..serialization import save_params
from ..trace import for_files
from .graph_cache import GraphCache, traced


def export(block, path, epoch: int) -> tuple:
    """Writes a block's graph for the arguments of its last call; see `HybridBlock.export`."""
    graph = block._graph
    if graph is None or graph.example is None:
        raise RuntimeError(f"export of {type(block).__name__}: the graph is not known yet. Call hybridize(), then run the "
                           "block once")
    program = trace_example(block, graph)
    symbol = program.compiled.declared()
    names = program.compiled.names()
    arrays = dict(zip(names[len(names) - len(program.captured):], program.captured))
    return write(path, epoch, symbol, arrays)


def trace_example(block, graph: GraphCache):
    """The block's trace in prediction mode, for arguments like those of its last call."""
    args, kwargs, sigs = graph.example
    for_files.on = True
    try:
        with autograd.pause(train_mode=False):
            return traced(block, args, kwargs, sigs, arguments_too=True)
    finally:
        for_files.on = False


def write(path, epoch: int, symbol, arrays: dict) -> tuple:
    """Writes both files; arrays the symbol does not read stay out."""
    path = os.fspath(path)
    auxiliary = set(symbol.list_auxiliary_states())
    files = f"{path}-symbol.json", f"{path}-{epoch:04d}.params"
    symbol.save(files[0])
    save_params(files[1], {("aux:" if n in auxiliary else "arg:") + n: arrays[n] for n in symbol.list_inputs()
                           if n in arrays})
    return files
