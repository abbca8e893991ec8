# SPDX-License-Identifier: Apache-2.0
"""What the networks of the zoo share: `Classifier`, small stacks of layers, and the functions that make networks by name."""
from __future__ import annotations

from ... import nn
from ...block import HybridBlock
from ..model_store import get_model_file


class Classifier(HybridBlock):
    """`features`, then `output`: scores of classes (no softmax is applied)."""

    def forward(self, x):
        return self.output(self.features(x))


def stack(*layers) -> nn.HybridSequential:
    """Layers one after the other."""
    block = nn.HybridSequential()
    block.add(*layers)
    return block


def side_by_side(*branches) -> nn.HybridConcatenate:
    """Branches on one input, joined along the channels."""
    block = nn.HybridConcatenate(axis=1)
    block.add(*branches)
    return block


def relu() -> nn.Activation:
    """The rectifier as a layer."""
    return nn.Activation("relu")


def load_pretrained(net, name, pretrained, ctx, root):
    """`net`, with the weights of `name` if they are asked for."""
    if pretrained:
        net.load_parameters(get_model_file(name, root), ctx=ctx)
    return net


def constructor(function_name, doc, make, *args, **fixed):
    """A function of the zoo: `make(*args, **fixed, **kwargs)` under a name of its own."""
    def construct(**kwargs):
        return make(*args, **{**kwargs, **fixed})
    construct.__name__ = construct.__qualname__ = function_name
    construct.__doc__ = f"""{doc}

    classes: number of scores. pretrained: load weights from a file in `root`, to the device `ctx`
    (`model_store.get_model_file` tells which); other arguments go to the network's class."""
    construct.__module__ = make.__module__
    return construct
