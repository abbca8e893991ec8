# SPDX-License-Identifier: Apache-2.0
"""Losses: `gluon.loss`. Each gives one value an example: the mean over all axes but the batch's, unless it says so."""
from __future__ import annotations

from .base import Loss
from .classification import (KLDivLoss, SigmoidBCELoss, SigmoidBinaryCrossEntropyLoss, SoftmaxCELoss,
                             SoftmaxCrossEntropyLoss)
from .margin import HingeLoss, LogisticLoss, SquaredHingeLoss, TripletLoss
from .regression import HuberLoss, L1Loss, L2Loss, PoissonNLLLoss
from .similarity import CosineEmbeddingLoss, SDMLLoss

__all__ = ["Loss", "L2Loss", "L1Loss", "SigmoidBinaryCrossEntropyLoss", "SigmoidBCELoss", "SoftmaxCrossEntropyLoss",
           "SoftmaxCELoss", "KLDivLoss", "HuberLoss", "HingeLoss", "SquaredHingeLoss", "LogisticLoss", "TripletLoss",
           "PoissonNLLLoss", "CosineEmbeddingLoss", "SDMLLoss"]
