# SPDX-License-Identifier: Apache-2.0
"""PyTorch's weights for networks of the same structure."""
from __future__ import annotations

from ...base import describe
from ...serialization import load_torch

_KINDS = {"weight": ("weight", "gamma"), "bias": ("bias", "beta"), "running_mean": ("running_mean",),
          "running_var": ("running_var",)}


def load_torch_parameters(net, source, ctx=None) -> None:
    """Gives `net` the weights that PyTorch's `torch.save(model.state_dict(), file)` wrote.

    source: the file, or its dictionary of arrays. The names of the two sides differ, so tensors are taken in their order:
    the network must have the same layers in the same order. ValueError where kinds, shapes or numbers disagree; then
    nothing is changed."""
    state = source if isinstance(source, dict) else load_torch(source)
    state = next((state[k] for k in ("state_dict", "model") if isinstance(state, dict) and isinstance(state.get(k), dict)),
                 state)
    if not isinstance(state, dict):
        raise ValueError(f"load_torch_parameters: a dictionary of tensors is needed; got {describe(state)}")
    tensors = {name: a for name, a in state.items() if not name.endswith("num_batches_tracked")}
    params = net._collect_params_with_prefix()
    if len(tensors) != len(params):
        raise ValueError(f"load_torch_parameters: the file has {len(tensors)} weights, the network {len(params)}")
    for theirs, ours in zip(tensors, params):
        kind = theirs.rpartition(".")[2]
        if ours.rpartition(".")[2] not in _KINDS.get(kind, ()):
            raise ValueError(f"load_torch_parameters: {theirs} of the file meets {ours} of the network; the layers differ")
    net.load_dict(dict(zip(params, tensors.values())), ctx=ctx, source="load_torch_parameters")
