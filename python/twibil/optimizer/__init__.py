# SPDX-License-Identifier: Apache-2.0
"""Optimizers: `mx.optimizer`. Each applies one written formula to `g = clip(rescale_grad * grad) + wd * weight`."""
from __future__ import annotations

from ..lr_scheduler import LRScheduler  # noqa: F401
from .adaptive import AdaDelta, AdaGrad, Adam, RMSProp
from .base import Optimizer, create, register
from .sgd import NAG, SGD
from .updater import Updater, get_updater

__all__ = ["Optimizer", "register", "create", "Updater", "get_updater", "SGD", "NAG", "Adam", "AdaGrad", "AdaDelta",
           "RMSProp"]
