# SPDX-License-Identifier: Apache-2.0
"""Gluon: networks from blocks with parameters, their training and their data."""
from __future__ import annotations

from . import metric
from . import data, loss, model_zoo, nn, rnn, utils
from .block import Block, HybridBlock, SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
from .trainer import Trainer

__all__ = ["Block", "HybridBlock", "SymbolBlock", "Parameter", "Constant", "ParameterDict", "Trainer",
           "DeferredInitializationError", "model_zoo", "nn", "rnn", "loss", "data", "utils", "metric"]
