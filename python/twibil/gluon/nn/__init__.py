# SPDX-License-Identifier: Apache-2.0
"""Layers: `gluon.nn`."""
from __future__ import annotations

from ..block import Block, HybridBlock, SymbolBlock
from .activations import ELU, GELU, SELU, Activation, LeakyReLU, PReLU, SiLU, Swish
from .basic import Dense, Dropout, Embedding, Flatten, HybridLambda, Identity, Lambda
from .containers import Concatenate, Concurrent, HybridConcatenate, HybridConcurrent, HybridSequential, Sequential
from .conv import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose
from .norm import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm, SyncBatchNorm
from .pool import (AvgPool1D, AvgPool2D, AvgPool3D, GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D, GlobalMaxPool1D,
                   GlobalMaxPool2D, GlobalMaxPool3D, MaxPool1D, MaxPool2D, MaxPool3D)
from .rearrange import PixelShuffle1D, PixelShuffle2D, PixelShuffle3D, ReflectionPad2D

__all__ = ["Block", "HybridBlock", "SymbolBlock", "Sequential", "HybridSequential", "Concatenate", "HybridConcatenate",
           "Concurrent", "HybridConcurrent", "Dense", "Dropout", "Embedding", "Flatten", "Lambda", "HybridLambda",
           "Identity", "BatchNorm", "BatchNormReLU", "SyncBatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm",
           "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "MaxPool1D",
           "MaxPool2D", "MaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D",
           "GlobalMaxPool3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "Activation", "LeakyReLU",
           "PReLU", "ELU", "SELU", "GELU", "Swish", "SiLU", "ReflectionPad2D", "PixelShuffle1D", "PixelShuffle2D",
           "PixelShuffle3D"]
