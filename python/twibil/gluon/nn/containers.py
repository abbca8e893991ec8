# SPDX-License-Identifier: Apache-2.0
"""Blocks made of blocks: one after the other, or side by side."""
from __future__ import annotations

from ... import np
from ..block import Block, HybridBlock, _indent


class _Stack:
    """Adding, indexing, slicing and printing of numbered children."""

    def add(self, *blocks) -> None:
        """Appends blocks."""
        for block in blocks:
            self.register_child(block)

    def forward(self, x, *args):
        """Runs the children in order; further arguments go to the first, and all outputs of one to the next."""
        for block in self._children.values():
            x = block(x, *args)
            args = ()
            if isinstance(x, (tuple, list)):
                args, x = tuple(x[1:]), x[0]
        return (x, *args) if args else x

    def __getitem__(self, key):
        layers = list(self._children.values())
        if not isinstance(key, slice):
            try:
                return layers[key]
            except IndexError:
                raise IndexError(f"{type(self).__name__}: index {key} is out of range for {len(layers)} "
                                 "layers") from None
        part = type(self)()
        part.add(*layers[key])
        return part

    def __len__(self):
        return len(self._children)

    def __iter__(self):
        return iter(self._children.values())

    def __repr__(self):
        lines = "\n".join(f"  ({key}): {_indent(repr(block))}" for key, block in self._children.items())
        return f"{type(self).__name__}(\n{lines}\n)"


class Sequential(_Stack, Block):
    """Blocks run one after the other: `net.add(nn.Dense(10), nn.Dense(2))`. Index and slice it as a list."""


class HybridSequential(_Stack, HybridBlock):
    """`Sequential` of hybrid blocks. TypeError for a block that is not hybrid."""

    def register_child(self, block, name=None):
        if isinstance(block, Block) and not isinstance(block, HybridBlock):
            raise TypeError(f"HybridSequential: children must be HybridBlocks; {type(block).__name__} is not. Use "
                            "Sequential, or derive it from HybridBlock")
        super().register_child(block, name)


class Concatenate(Sequential):
    """Feeds the input to every child and joins their outputs along `axis`."""

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x):
        return np.concatenate([block(x) for block in self._children.values()], axis=self.axis)


class HybridConcatenate(HybridSequential):
    """`Concatenate` of hybrid blocks."""

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    forward = Concatenate.forward


Concurrent, HybridConcurrent = Concatenate, HybridConcatenate
