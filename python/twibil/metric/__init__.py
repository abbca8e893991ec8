# SPDX-License-Identifier: Apache-2.0
"""Metrics: `mx.metric` and `gluon.metric`. Each sums over batches, so that the size of a batch does not matter unless
said ('macro')."""
from __future__ import annotations

from .base import CompositeEvalMetric, CustomMetric, EvalMetric, alias, check_label_shapes, create, np, register
from .binary import F1, MCC, BinaryAccuracy, Fbeta
from .classification import Accuracy, CrossEntropy, NegativeLogLikelihood, Perplexity, TopKAccuracy
from .regression import MAE, MSE, RMSE, Loss, MeanCosineSimilarity, MeanPairwiseDistance, PearsonCorrelation

__all__ = ["EvalMetric", "CompositeEvalMetric", "CustomMetric", "register", "alias", "create", "np",
           "check_label_shapes", "Accuracy", "TopKAccuracy", "F1", "Fbeta", "BinaryAccuracy", "MCC", "Perplexity",
           "MAE", "MSE", "RMSE", "CrossEntropy", "NegativeLogLikelihood", "PearsonCorrelation", "Loss",
           "MeanCosineSimilarity", "MeanPairwiseDistance"]
